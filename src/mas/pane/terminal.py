"""Terminals for the launcher: same size as the pane, every byte passed through unchanged."""

from __future__ import annotations

import errno
import fcntl
import os
import termios
import time

_USUAL = (80, 24)
# A question that every terminal answers once it has taken all that came before.
_ASK, _ANSWER = b"\x1b[5n", b"\x1b[0n"


def copy_size(terminal: int) -> None:
    """Give `terminal` the size of the pane."""
    try:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, fcntl.ioctl(0, termios.TIOCGWINSZ, b"\0" * 8))
    except OSError as error:
        if error.errno not in (errno.EIO, errno.ENOTTY):
            raise


def size_of(terminal: int) -> tuple[int, int]:
    """The columns and rows of `terminal`, or the usual ones if it has none."""
    try:
        size = os.get_terminal_size(terminal)
    except OSError:
        return _USUAL
    return (size.columns, size.lines) if size.columns and size.lines else _USUAL


def write_and_wait(data: bytes, seconds: float) -> None:
    """Write to the pane, and wait at most this long until tmux has read it all; `OSError` if tmux is gone.

    tmux does not always read to the end what a program wrote just before it ended.
    """
    os.set_blocking(1, True)
    if "TMUX" not in os.environ:
        # No terminal that is known to respond.
        os.write(1, data)
        return
    import select  # not before the agent runs

    saved = raw_mode()
    os.write(1, data + _ASK)
    deadline = time.monotonic() + seconds
    heard = b""
    while _ANSWER not in heard and select.select([0], [], [], max(0.0, deadline - time.monotonic()))[0]:
        block = os.read(0, 1 << 12)
        if not block:
            break
        heard = heard[-len(_ANSWER) :] + block
    if saved is not None:
        restore_mode(saved)


def raw_mode() -> list[object] | None:
    """Let every byte pass the pane's terminal untouched."""
    try:
        saved = termios.tcgetattr(0)
    except termios.error:
        return None
    raw = termios.tcgetattr(0)
    raw[0] = 0
    raw[1] = 0
    raw[2] = raw[2] & ~(termios.CSIZE | termios.PARENB) | termios.CS8
    raw[3] = 0
    raw[6][termios.VMIN] = 1
    raw[6][termios.VTIME] = 0
    termios.tcsetattr(0, termios.TCSANOW, raw)
    return saved


def restore_mode(saved: list[object]) -> None:
    try:
        termios.tcsetattr(0, termios.TCSANOW, saved)  # type: ignore[arg-type]
    except termios.error:
        return
