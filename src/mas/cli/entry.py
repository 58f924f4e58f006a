"""What is typed or piped into a command, with Ctrl-C heard at any moment."""

from __future__ import annotations

import os
import select
import signal
import sys

from mas.model.errors import BadInput

_AT_ONCE = 1 << 16


def everything(what: str) -> bytes:
    """All of standard input; `what` is told to whoever gave none."""
    if sys.stdin is None:
        raise BadInput(f"There is no {what}, and no standard input to read one from")
    return b"".join(iter(_some, b""))


def line() -> str:
    """The next line that a person types."""
    _await()
    return sys.stdin.readline()


def _some() -> bytes:
    _await()
    return os.read(sys.stdin.fileno(), _AT_ONCE)


def _await() -> None:
    """Wait until there is something to read: a signal just before a plain `read` would be seen only after it."""
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    before = signal.set_wakeup_fd(waker)
    try:
        select.select([sys.stdin.fileno(), woken], [], [])
    finally:
        signal.set_wakeup_fd(before)
        os.close(woken)
        os.close(waker)
