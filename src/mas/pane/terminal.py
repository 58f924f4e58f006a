"""Terminals as the launcher needs them: of the pane's size, and passing every byte."""

from __future__ import annotations

import errno
import fcntl
import os
import termios

_USUAL = (80, 24)


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
