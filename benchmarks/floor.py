"""The floor: the same work done by tmux alone."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence

from tests.site import Site

from benchmarks.measure import timed

Windows = tuple[tuple[str, int], ...]
"""The names of windows and how many panes each has."""
TEAM: Windows = (("meta", 1), ("design", 4), ("development", 4), ("business", 4))
PROGRAM = ("sleep", "1000")
# The size of window in which the product gives four agents 100 x 30 characters each.
_SIZE = ("-x", "202", "-y", "63")
_SPLITS_BETWEEN_LAYOUTS = 3


class RawTmux:
    """A tmux server spoken to by bare invocations, nothing checked that tmux does not check."""

    def __init__(self, site: Site, socket: str) -> None:
        self.socket = socket
        self.site = site

    def run(self, *commands: Sequence[str], stdin: bytes = b"", cwd: str | None = None) -> bytes:
        """All `commands` in one invocation."""
        argv = ["tmux", "-S", self.socket, "-f", "/dev/null"]
        for position, command in enumerate(commands):
            argv += [";", *command] if position else command
        done = subprocess.run(argv, env=self.site.env, input=stdin, capture_output=True, check=True, cwd=cwd)
        return done.stdout

    def keep(self) -> None:
        """Have the server run whatever else comes and goes: nobody's time holds its start."""
        self.run(["new-session", "-d", "-s", "keeper", *PROGRAM])

    def open(self, name: str, program: Sequence[str] = PROGRAM) -> None:
        """The default team's 4 windows and 13 panes."""
        self.run(*opening(name, lambda _: program))

    def close(self, name: str) -> None:
        self.run(["kill-session", "-t", f"={name}"])

    def time_opening(self, name: str) -> float:
        took = timed(lambda: self.open(name))
        self.close(name)
        return took


def opening(name: str, program: Callable[[int], Sequence[str]], team: Windows = TEAM) -> Iterator[list[str]]:
    """The commands that open a whole team; `program` says what its n-th pane runs."""
    number = 0
    for window, panes in team:
        there = f"={name}:={window}"
        for position in range(panes):
            if number == 0:
                yield ["new-session", "-d", "-s", name, "-n", window, *_SIZE, *program(number)]
            elif position == 0:
                yield ["new-window", "-t", f"={name}:", "-n", window, *program(number)]
            else:
                yield ["split-window", "-t", there, *program(number)]
            if position == _SPLITS_BETWEEN_LAYOUTS:
                yield ["select-layout", "-t", there, "tiled"]
            number += 1


class Control:
    """An open control-mode connection: the least that asking tmux can cost."""

    def __init__(self, site: Site, socket: str, session: str) -> None:
        argv = ["tmux", "-S", socket, "-C", "attach-session", "-f", "no-output,ignore-size", "-t", f"={session}"]
        self._process = subprocess.Popen(argv, env=site.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._answer()

    def ask(self, command: str) -> list[bytes]:
        stdin = self._process.stdin
        assert stdin is not None
        stdin.write(command.encode() + b"\n")
        stdin.flush()
        return self._answer()

    def _answer(self) -> list[bytes]:
        """The lines of the next answer; what tmux tells unasked stands outside of answers."""
        stdout = self._process.stdout
        assert stdout is not None
        lines: list[bytes] = []
        for line in stdout:
            if line.startswith(b"%begin"):
                lines = []
            elif line.startswith((b"%end", b"%error")):
                return lines
            lines.append(line)
        raise RuntimeError("tmux closed its control connection")

    def close(self) -> None:
        self._process.communicate()
