"""A workspace for one test: real files, real tmux on its own sockets, the real command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from glob import glob
from typing import Any

import psutil

from mas.bootstrap import build_world
from mas.model.isolation import Mode, Policy
from mas.runtime.control import Connections, end_orphans
from mas.runtime.limits.cgroups import remove_groups
from mas.service.local import LocalMas
from mas.service.world import World
from mas.settings import ServerMode, Settings

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AGENTS = os.path.join(REPOSITORY, "tests", "agents")
# Neither a home nor a place for temporary files, which agents do not see anyhow; None if there is no such place.
ELSEWHERE = next((path for path in ("/srv", "/opt", REPOSITORY) if os.access(path, os.W_OK)), None)
_PATIENCE = 60.0


@contextmanager
def short_directory(within: str = "/tmp") -> Iterator[str]:
    """A temporary directory with a path short enough for sockets (pytest's own are too long)."""
    with tempfile.TemporaryDirectory(prefix="mt", dir=within) as path:
        yield os.path.realpath(path)


def until(fact: Callable[[], Any], what: str = "", patience: float = _PATIENCE) -> Any:
    """Wait for a fact, and give it back; fail if it does not come about."""
    deadline = time.monotonic() + patience
    while not (found := fact()):
        assert time.monotonic() < deadline, f"waited {patience:.0f} s in vain: {what or fact}"
        time.sleep(0.01)
    return found


def words_of(process: psutil.Process) -> list[str]:
    """What a process was started with; none of one that has exited."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


class Site:
    """One workspace and everything a test does with it."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.root = os.path.join(directory, "ws")
        self.home = os.path.join(directory, "home")
        os.makedirs(self.home, exist_ok=True)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": self.home,
            "SHELL": "/bin/sh",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "TMUX_TMPDIR": directory,
            "MAS_WORKSPACE_ROOT": self.root,
            "MAS_TEST_RUN": str(os.getpid()),
            # A test that wants the server to come by itself says so; by default it does. A server is part of all tests
            # in http and web, of e2e/test_server_by_itself, and of those where it changes what tmux sees:
            # e2e/test_beside_a_team, e2e/test_person_in_tmux and, as a connection alone, runtime/test_closing.
            "MAS_SERVER": "off",
            # So does one that is about isolation: it asks for a tier.
            "MAS_ISOLATION": "off",
        }
        self.user_socket = os.path.join(directory, f"tmux-{os.getuid()}", "default")

    def run(self, argv: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a program in the workspace with the site's environment."""
        extra = options.pop("env", {})
        options.setdefault("cwd", self.root if os.path.isdir(self.root) else self.directory)
        options.setdefault("timeout", 60)
        if "input" not in options:
            options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(argv, env={**self.env, **extra}, capture_output=True, text=True, check=False, **options)

    def mas(self, *args: str, code: int | None = 0, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run `mas`; its exit code must be `code` (None: any)."""
        done = self.run([sys.executable, "-m", "mas", *args], **options)
        assert code is None or done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
        return done

    def json(self, *args: str, **options: Any) -> Any:
        return json.loads(self.mas(*args, "--json", **options).stdout)

    def start(self, *args: str, **options: Any) -> str:
        """Start a session (default: one shell) and return its id."""
        return self.mas("start", *(args or ("--team", "solo")), **options).stdout.strip()

    def path(self, *names: str) -> str:
        return os.path.join(self.root, *names)

    def session(self, session_id: str, *names: str) -> str:
        return os.path.join(self.root, "sessions", session_id, *names)

    def statuses(self) -> dict[str, str]:
        """Every listed session and its status."""
        return {info["sessionId"]: info["status"] for info in self.json("list")["sessions"]}

    def four_places(self, session_id: str) -> set[str]:
        """What the four places say of a session's status; consistent means one word."""
        with open(self.path("sessions", ".sessions.index"), encoding="utf-8") as file:
            index = {entry["sessionId"]: entry["status"] for entry in json.load(file)["sessions"]}
        with open(self.path("sessions", ".index"), encoding="utf-8") as file:
            journal = [line.split(":", 2)[:2] for line in file if line.startswith(session_id)]
        with open(self.session(session_id, "metadata.json"), encoding="utf-8") as file:
            metadata = json.load(file)["status"]
        with open(self.session(session_id, ".session"), encoding="utf-8") as file:
            record = dict(line.rstrip("\n").split("=", 1) for line in file)["STATUS"]
        return {index.get(session_id, "absent"), journal[-1][1], metadata, record}

    def tmux(self, *args: str, socket: str | None = None, **options: Any) -> str:
        return self.run(["tmux", "-S", socket or self.user_socket, *args], **options).stdout.strip()

    def tmux_sessions(self) -> set[str]:
        """The tmux sessions on every server of this site."""
        found: set[str] = set()
        for socket in self.sockets():
            found |= set(self.tmux("list-sessions", "-F", "#{session_name}", socket=socket).split())
        return found

    def sockets(self) -> list[str]:
        places = [os.path.dirname(self.user_socket), self.path("sessions", ".mas", "tmux")]
        return [os.path.join(place, name) for place in places if os.path.isdir(place) for name in os.listdir(place)]

    def world(
        self, server: ServerMode = ServerMode.DEFAULT, connections: Connections | None = None, **settings: Any
    ) -> World:
        """The product's parts for this workspace, in this very process."""
        given = {"root": self.root, "user_socket": self.user_socket, "environ": self.env, **settings}
        given.setdefault("isolation", Policy(Mode.OFF))
        private = os.path.join(self.directory, "private")
        return build_world(Settings(private_sockets=private, tmux_server=server, **given), connections)

    def local(self, server: ServerMode = ServerMode.DEFAULT) -> LocalMas:
        return LocalMas(self.world(server))

    def processes(self) -> list[psutil.Process]:
        """Every living process that was started with this site's environment."""
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def commands(self) -> list[list[str]]:
        """What those processes are; of one that has ended meanwhile, nothing."""
        # One that is about to end has no words left.
        return [words for words in map(words_of, self.processes()) if words]

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            environ = process.environ()
            # Agents know nothing of tmux, but in which workspace they are.
            ours = self.directory == environ.get("TMUX_TMPDIR") or self.root == environ.get("MAS_WORKSPACE_ROOT")
            return ours and process.status() != psutil.STATUS_ZOMBIE
        except (psutil.Error, OSError):
            return False

    def close(self) -> None:
        """End the servers of this site; agents end with them."""
        self.end_summoned()
        for depth in ("*", "*/*", "*/*/*"):
            for pid in glob(os.path.join(self.directory, depth, "logs", "api.pid")):
                self.mas("serve", "--workspace", os.path.dirname(os.path.dirname(pid)), "--stop")
        for socket in self.sockets():
            # What a killed server left attached would keep tmux from ending.
            end_orphans(socket)
            self.tmux("kill-server", socket=socket)
        self._remove_groups()

    def _remove_groups(self) -> None:
        """Remove the control groups of sessions that were not stopped."""
        for depth in ("*", "*/*", "*/*/*"):
            for path in glob(os.path.join(self.directory, depth, "sessions", "*", ".mas", "groups")):
                with open(path, encoding="utf-8") as file:
                    groups = tuple(line for line in file.read().splitlines() if line.startswith("/"))
                    assert remove_groups(groups, _PATIENCE) == []

    def summoned(self) -> list[psutil.Process]:
        """Every server that came by itself, those that have only just begun too."""
        return [process for process in self.processes() if "--if-none" in words_of(process)]

    def end_summoned(self) -> None:
        """End servers that came by themselves; there are some only where a test asked for them."""
        while self.env["MAS_SERVER"] != "off" and (left := self.summoned()):
            for process in left:
                with suppress(psutil.Error):
                    process.terminate()
            psutil.wait_procs(left, timeout=_PATIENCE)

    def leftovers(self) -> list[list[str]]:
        """What is still running once it should have ended."""
        deadline = time.monotonic() + _PATIENCE
        # Not a wait for the processes as such: a zombie has ended, however late its parent is.
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.01)
        found = [words_of(process) for process in left]
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        return found


@contextmanager
def fresh_site(within: str = "/tmp") -> Iterator[Site]:
    """A site without a workspace; it fails if anything outlives it that was started there."""
    with short_directory(within) as directory:
        made = Site(directory)
        try:
            yield made
        finally:
            made.close()
        assert made.leftovers() == []


@contextmanager
def fresh_workspace(*options: str, within: str = "/tmp") -> Iterator[Site]:
    """The same with a workspace that `mas init` made with these options."""
    with fresh_site(within) as made:
        made.mas("init", made.root, *options)
        yield made
