"""A command on a real terminal: what it prints there, and what a person types back."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from types import TracebackType

_PATIENCE = 60.0
# A program gets its signals from the keyboard only where the terminal is its session's own.
_OWN_TERMINAL = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(2, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


class Terminal:
    """A program whose standard streams are a terminal; `stdout` may go elsewhere."""

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], cwd: str, stdout: int | None = None, columns: int = 120
    ) -> None:
        self.shown = ""
        self.code: int | None = None
        self._fd, inner = os.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self._process = subprocess.Popen(
            [sys.executable, "-ISc", _OWN_TERMINAL, *argv],
            env=env,
            cwd=cwd,
            stdin=inner,
            stdout=inner if stdout is None else stdout,
            stderr=inner,
        )
        os.close(inner)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.code is None:
            self._process.kill()
            self._process.wait()
        os.close(self._fd)

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def until(self, text: str) -> None:
        """Read until `text` has been shown."""
        while text not in self.shown:
            assert self._read(), f"ended without {text!r}: {self.shown!r}"

    def end(self) -> str:
        """Read to the end, and give all that was shown; the exit code is then in `code`."""
        while self._read():
            pass
        self.code = self._process.wait(_PATIENCE)
        return self.shown

    def _read(self) -> bool:
        ready, _, _ = select.select([self._fd], [], [], _PATIENCE)
        assert ready, f"nothing more after: {self.shown!r}"
        try:
            data = os.read(self._fd, 1 << 16)
        except OSError:
            # How Linux says that the last program has left the terminal.
            return False
        self.shown += data.decode("utf-8", "replace")
        return bool(data)
