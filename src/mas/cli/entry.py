"""Input of a command, typed or piped; Ctrl-C works at any moment."""

from __future__ import annotations

import os
import select
import signal
import sys
from argparse import ArgumentTypeError

from mas.model.errors import BadInput, NotFound
from mas.model.ids import shown
from mas.settings import at_once

_AT_ONCE = 1 << 16


def everything(what: str) -> bytes:
    """All of standard input; the error names `what` is missing if there is none."""
    if sys.stdin is None:
        raise BadInput(f"No {what} given, and there is no standard input to read one from")
    return b"".join(iter(_some, b""))


def given_path(text: str) -> str:
    """An argument that is a path: an empty one is a variable that a script forgot to set, not this directory."""
    if not text or "\0" in text:
        raise ArgumentTypeError("the path is empty" if not text else f"not a path: {text[:40]!r}")
    return text


def content(name: str, most: int) -> bytes:
    """The content of a file, at most `most` bytes. A pipe without a writer is empty; we do not wait for one."""
    try:
        with open(name, "rb", opener=at_once) as file:
            data = file.read(most + 1)
    except FileNotFoundError:
        raise NotFound(f"There is no file {shown(name)}") from None
    except OSError as error:
        raise BadInput(f"Cannot read {shown(name)}: {error.strerror}") from None
    if len(data) > most:
        raise BadInput(f"{shown(name)} has more than {most} bytes")
    return data


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
