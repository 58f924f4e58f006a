"""The published `cli-agent-orchestrator` as a side of the comparison: its server, with its mock provider."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any

from tests.site import REPOSITORY, Site, until

from benchmarks.peers.reports import Reports
from benchmarks.peers.server import UNREACHABLE, Refused, Server
from benchmarks.peers.sides import CAO, Serving

BIN = os.path.join(REPOSITORY, ".peers", "bin")
# What a path would be called that starts dead agents of a session again.
_BACK = ("restore", "revive", "recover", "relaunch", "restart")
_AGENT: dict[str, Any] = {"provider": "mock_cli", "agent_profile": "developer"}


class Orchestrator(Serving):
    """Sessions by `POST /sessions` and one more request for each further agent, text by its inbox."""

    name = CAO
    variable = "CAO_TERMINAL_ID"

    def __init__(self, site: Site, reports: Reports, program: Sequence[str]) -> None:
        super().__init__(site, reports, program)
        _write_mock(site, program)
        self.server = Server(site, [os.path.join(BIN, "cao-server")])
        site.env["CAO_API_PORT"] = str(self.server.port)
        self._terminals: dict[str, list[str]] = {}

    def open(self, session: str, agents: int) -> None:
        where = {"working_directory": self.site.home}
        asked = _AGENT | where
        first = self.server.ask("POST", "/sessions", params=asked | {"session_name": session})

        def add(_: int) -> str:
            answer = self.server.ask("POST", f"/sessions/cao-{session}/terminals", params=asked)
            return str(answer["id"])

        # All at once: the quickest way that there is.
        with ExitStack() as undo, ThreadPoolExecutor(max(agents - 1, 1)) as pool:
            undo.callback(self.server.ask, "DELETE", f"/sessions/cao-{session}")
            self._terminals[session] = [first["id"], *pool.map(add, range(agents - 1))]
            undo.pop_all()

    def close(self, session: str) -> None:
        del self._terminals[session]
        self.server.ask("DELETE", f"/sessions/cao-{session}")

    def list(self) -> int:
        return len(self.server.ask("GET", "/sessions"))

    def send(self, session: str, agent: int, text: str) -> None:
        terminal = self._terminals[session][agent]
        params = {"sender_id": terminal, "message": text}
        self.server.ask("POST", f"/terminals/{terminal}/inbox/messages", params=params)

    def type(self, session: str, agent: int, text: str) -> None:
        """Text past its inbox, typed at once."""
        terminal = self._terminals[session][agent]
        self.server.ask("POST", f"/terminals/{terminal}/input", params={"message": text})

    def settle(self, session: str) -> None:
        for terminal in self._terminals[session]:
            until(partial(self._idle, terminal), "an idle agent")

    def ids(self, session: str) -> Sequence[str]:
        return self._terminals[session]

    def hand_in(self, session: str, agent: int, text: str) -> bool:
        try:
            self.send(session, agent, text)
        except (Refused, *UNREACHABLE):
            return False
        return True

    def states(self, session: str) -> Sequence[str]:
        return [self._status(terminal) for terminal in self._terminals[session]]

    def last_message(self, session: str, agent: int) -> str:
        found = self.server.ask("GET", f"/terminals/{self._terminals[session][agent]}/inbox/messages")
        return str(found[-1]["status"]) if found else "no message"

    def bring_back(self, session: str) -> str:
        paths = self.server.ask("GET", "/openapi.json")["paths"]
        found = [path for path in paths if any(word in path for word in _BACK)]
        return ", ".join(found) or f"none of its {len(paths)} paths does that"

    def _idle(self, terminal: str) -> bool:
        return self._status(terminal) in ("idle", "completed")

    def _status(self, terminal: str) -> str:
        return str(self.server.ask("GET", f"/terminals/{terminal}")["status"])


def _write_mock(site: Site, program: Sequence[str]) -> None:
    """The mock provider's program, where the login shells that it is started from find it."""
    directory = os.path.join(site.directory, "bin")
    os.mkdir(directory)
    mock = os.path.join(directory, "mock_cli")
    with open(mock, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\nexec {shlex.join(program)}\n")
    os.chmod(mock, 0o755)
    with open(os.path.join(site.home, ".profile"), "w", encoding="utf-8") as file:
        file.write(f"PATH={directory}:$PATH\n")
    site.env["CAO_HOME_DIR"] = os.path.join(site.directory, "state")
