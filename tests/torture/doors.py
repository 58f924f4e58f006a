"""The three doors that clients come through: the command line, HTTP, and the Python client."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import httpx

from mas.client.remote import RemoteMas
from mas.model.errors import Conflict, Disk, MasError, NoServer, NotFound, TooMuch, Unavailable
from mas.model.ids import SessionId
from mas.model.isolation import Mode, Policy
from mas.model.run import Run
from mas.model.team import team_named
from mas.service.upkeep.prune import PrunePolicy
from tests.checker import UUID4

PROVIDER = "keeper"
KEEP = 2
# Longer than any verb takes with every fault at once.
PATIENCE = 90.0
_EXIT = {3: "gone", 4: "state", 6: "disk", 7: "unavailable"}
_STATUS = {404: "gone", 409: "state", 410: "state", 429: "state", 503: "unavailable", 507: "disk"}
_ERRORS = ((NotFound, "gone"), (Conflict, "state"), (TooMuch, "state"), (Disk, "disk"), (Unavailable, "unavailable"))


class Wish(NamedTuple):
    """What to ask for. `flag` is the verb's one choice: a clone that runs, a team of two."""

    verb: str
    session: str = ""
    flag: bool = False
    target: str = "00"
    message: str = ""
    text: str = ""
    isolated: bool = False

    @property
    def team(self) -> str:
        return "pair" if self.flag else "solo"

    @property
    def isolation(self) -> Mode:
        return Mode.REQUIRE if self.isolated else Mode.OFF


class Outcome(NamedTuple):
    """How it ended: `done`, `refused` for a reason, or `lost` if that is unknown; `made` is the session it made.

    A refused one has made one where the refusal names it: a clone that could not be started.
    """

    end: str
    why: str = ""
    said: str = ""
    made: str | None = None


class Door(ABC):
    """A way to ask."""

    @abstractmethod
    def ask(self, wish: Wish) -> Outcome:
        """Ask for it and wait for the answer, whatever it is."""

    def close(self) -> None:  # noqa: B027 - not all keep something open
        """Let go of what is kept open between questions."""


class CommandLine(Door):
    """The real command, a process each time."""

    def __init__(self, root: str, env: Mapping[str, str]) -> None:
        self._root = root
        self._env = env

    def ask(self, wish: Wish) -> Outcome:
        argv = [sys.executable, "-m", "mas", *_words(wish), "--json"]
        try:
            done = subprocess.run(
                argv, cwd=self._root, env=self._env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                check=False, timeout=PATIENCE,
            )  # fmt: skip
        except BlockingIOError:
            return Outcome("refused", "not begun")
        except subprocess.TimeoutExpired:
            return Outcome("lost", "hangs", f"no answer in {PATIENCE:.0f} s")
        if done.returncode < 0:
            return Outcome("lost", "killed", done.stderr)
        if done.returncode:
            why = "failed" if "Traceback" in done.stderr else _EXIT.get(done.returncode, "failed")
            return Outcome("refused", why, f"{done.returncode}: {done.stderr}", _left(wish, done.stderr))
        return Outcome("done", made=_made(wish, json.loads(done.stdout)))


def _words(wish: Wish) -> list[str]:
    words = {
        "start": ["--team", wish.team, "--provider", PROVIDER, "--isolation", wish.isolation],
        "clone": [wish.session, *(["--start"] if wish.flag else [])],
        "delete": [wish.session, "--yes"],
        "restart-agent": [wish.session, wish.target, "--force"],
        "send": ["--session", wish.session, "--id", wish.message, wish.target, wish.text],
        "prune": ["--keep", str(KEEP), "--status", "deleted", "--yes"],
        "list": [],
    }
    return [wish.verb, *words.get(wish.verb, [wish.session])]


class Http(Door):
    """Plain requests to the server."""

    def __init__(self, url: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self._client = httpx.Client(base_url=url, headers=headers, timeout=PATIENCE, trust_env=False)

    def close(self) -> None:
        self._client.close()

    def ask(self, wish: Wish) -> Outcome:
        method, path, body = _request(wish)
        try:
            response = self._client.request(method, path, json=body)
        except httpx.TimeoutException:
            return Outcome("lost", "hangs", f"no answer in {PATIENCE:.0f} s")
        except httpx.TransportError as error:
            return Outcome("lost", "silence", repr(error))
        if response.is_error:
            why = _STATUS.get(response.status_code, "failed")
            if response.headers.get("Content-Type") != "application/problem+json":
                why = "failed"
            elif response.json()["code"].startswith("disk"):
                why = "disk"
            return Outcome("refused", why, f"{response.status_code}: {response.text}", _left(wish, response.text))
        return Outcome("done", made=_made(wish, response.json()))


def _request(wish: Wish) -> tuple[str, str, dict[str, Any] | None]:
    session = f"/sessions/{wish.session}"
    requests: dict[str, tuple[str, str, dict[str, Any] | None]] = {
        "start": ("POST", "/runs", {"team": wish.team, "provider": PROVIDER, "isolation": wish.isolation}),
        "clone": ("POST", f"{session}/clone", {"start": wish.flag}),
        "delete": ("DELETE", session, None),
        "restart-agent": ("POST", f"{session}/agents/{wish.target}/restart", {"force": True}),
        "send": ("POST", f"{session}/messages", {"target": wish.target, "message": wish.text, "id": wish.message}),
        "prune": ("POST", "/prune", {"keep": KEEP, "statuses": ["deleted"], "dryRun": False}),
        "list": ("GET", "/sessions", None),
        "show": ("GET", session, None),
        "inbox": ("GET", f"{session}/messages", None),
    }
    return requests.get(wish.verb, ("POST", f"{session}/{wish.verb}", {}))


def _made(wish: Wish, answer: Any) -> str | None:
    return str(answer["sessionId"]) if wish.verb in ("start", "clone") else None


def _left(wish: Wish, said: str) -> str | None:
    """The copy that a refused clone names."""
    named = re.search(rf"mas restore ({UUID4.pattern})", said) if wish.verb == "clone" else None
    return named[1] if named else None


class Client(Door):
    """The Python client, at the server's socket file."""

    def __init__(self, socket: str) -> None:
        self._mas = RemoteMas(f"unix:{socket}")

    def close(self) -> None:
        self._mas.close()

    def ask(self, wish: Wish) -> Outcome:
        try:
            answer = self._call(wish)
        except NoServer as error:
            return Outcome("lost", "silence", str(error))
        except MasError as error:
            why = next((why for kind, why in _ERRORS if isinstance(error, kind)), "failed")
            return Outcome("refused", why, f"{error.code}: {error}", _left(wish, error.hint))
        made = str(answer.session_id) if wish.verb in ("start", "clone") else None
        return Outcome("done", made=made)

    def _call(self, wish: Wish) -> Any:
        mas, session = self._mas, SessionId(wish.session)
        match wish.verb:
            case "start":
                return mas.start(Run(team_named(wish.team), provider=PROVIDER, isolation=Policy(wish.isolation)))
            case "clone":
                return mas.clone(session, None, wish.flag)
            case "restart-agent":
                return mas.restart_agent(session, wish.target, force=True)
            case "send":
                return mas.send(session, wish.target, wish.text, message_id=wish.message)
            case "prune":
                return mas.prune(PrunePolicy(keep=KEEP, statuses=("deleted",)), dry_run=False)
            case "list":
                return mas.list()
            case "inbox":
                return mas.messages(session)
            case verb:
                return getattr(mas, verb)(session)
