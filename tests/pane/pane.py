"""One launcher on a terminal whose other end the test has."""

from __future__ import annotations

import fcntl
import json
import os
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import mas.pane
from mas.model.launch import LaunchPlan
from mas.store.agent.launch_plan import launch_path, write_plan
from tests.site import AGENTS, Site, until

LAUNCHER = os.path.join(os.path.dirname(mas.pane.__file__), "__main__.py")
# Opening a terminal as leader of a session makes it the controlling one, as tmux does for its panes.
_ON_TERMINAL = 'terminal=$1; shift; exec "$@" <>"$terminal" >&0 2>&0'

# By these a test finds what its programs left behind.
TESTING = ("TMUX_TMPDIR", "MAS_TEST_RUN")


class Pane:
    """What tmux is to a launcher: its terminal, and who reads from it and types into it."""

    agent = "00"

    def __init__(self, site: Site, argv: Sequence[str], env: Mapping[str, str], plan: Mapping[str, Any]) -> None:
        self.site = site
        self.session = os.path.join(site.directory, "session")
        self.output = bytearray()
        for name in (f"unit/{self.agent}", "logs", ".mas/launch"):
            os.makedirs(os.path.join(self.session, name), exist_ok=True)
        write_plan(launch_path(self.session, self.agent), LaunchPlan(argv=tuple(argv), env=dict(env), **plan))

    def start(self, *flags: str, before: str = "", env: Mapping[str, str] | None = None) -> None:
        """Start the launcher; `before` is a shell command that sets its limits."""
        self.master, slave = os.openpty()
        self.resize(100, 30)
        terminal = os.ttyname(slave)
        script = f"{before}\n{_ON_TERMINAL}"
        launcher = [sys.executable, "-ISE", *flags, LAUNCHER, self.session, self.agent]
        self.process = subprocess.Popen(
            ["sh", "-c", script, "sh", terminal, *launcher],
            env={**self.site.env, **(env or {})},
            cwd=self.session,
            start_new_session=True,
        )
        # The launcher must be the last to hold it, and by now it has it open: only then is a hang-up seen.
        until(lambda: self._has_opened(terminal), "the launcher on its terminal")
        os.close(slave)
        self._reading = Event()
        self._reading.set()
        self._closing, self._close = os.pipe()
        self._reader = Thread(target=self._read)
        self._reader.start()

    def _has_opened(self, terminal: str) -> bool:
        try:
            return os.readlink(f"/proc/{self.process.pid}/fd/0") == terminal
        except OSError:
            return self.process.poll() is not None

    def _read(self) -> None:
        while True:
            ready, _, _ = select.select(
                [self._closing, *([self.master] if self._reading.is_set() else [])], [], [], 0.01
            )
            if self._closing in ready:
                return
            if self.master in ready:
                try:
                    data = os.read(self.master, 1 << 16)
                except OSError:
                    return
                self.output += data

    def pause(self) -> None:
        """Stop reading, as a tmux that hangs would."""
        self._reading.clear()

    def go_on(self) -> None:
        self._reading.set()

    def send(self, data: bytes) -> None:
        """Type all of it."""
        while data:
            data = data[os.write(self.master, data[:4096]) :]

    def expect(self, text: bytes) -> None:
        """Wait until the pane has shown it."""
        until(lambda: text in self.output, f"{text!r} in {self.output[-500:]!r}")

    def resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def wait(self) -> int:
        """The exit status of the launcher, once it and all it showed have ended."""
        status = self.process.wait(timeout=90)
        self._reader.join(timeout=90)
        return status

    def hang_up(self) -> None:
        """Close the terminal, as the death of tmux does."""
        os.write(self._close, b"x")
        self._reader.join()
        os.close(self.master)
        self.master = -1

    def path(self, *names: str) -> str:
        """A path in the agent's own directory."""
        return os.path.join(self.session, "unit", self.agent, *names)

    def log(self) -> bytes:
        with open(os.path.join(self.session, "logs", f"agent-{self.agent}.log"), "rb") as file:
            return file.read()

    def events(self) -> list[dict[str, Any]]:
        """What was noted of the agent; every line must be JSON."""
        try:
            with open(os.path.join(self.session, "logs", f"agent-{self.agent}.events.jsonl"), encoding="utf-8") as file:
                return [json.loads(line) for line in file]
        except FileNotFoundError:
            return []

    def event(self, what: str) -> dict[str, Any]:
        """The one event of that kind, once it is there."""
        until(lambda: [event for event in self.events() if event["event"] == what], f"the event {what}")
        (found,) = (event for event in self.events() if event["event"] == what)
        return found

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.go_on()
        self.process.wait(timeout=90)
        os.write(self._close, b"x")
        self._reader.join()
        for fd in (self.master, self._close, self._closing):
            if fd >= 0:
                os.close(fd)


@contextmanager
def pane(
    site: Site,
    *argv: str,
    plan: Mapping[str, Any] | None = None,
    agent_env: Mapping[str, str] | None = None,
    **how: Any,
) -> Iterator[Pane]:
    """A pane that runs `argv` as its agent; `plan` are further fields of its launch plan."""
    given = {name: site.env[name] for name in ("PATH", *TESTING)}
    made = Pane(site, argv, {**given, **(agent_env or {})}, plan or {})
    made.start(*how.pop("flags", ()), **how)
    try:
        yield made
    finally:
        made.close()


def stand_in(name: str) -> tuple[str, str]:
    """The start of the command that runs a program of `tests/agents`."""
    return sys.executable, os.path.join(AGENTS, f"pane_{name}.py")
