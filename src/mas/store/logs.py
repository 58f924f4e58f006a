"""Logs: what MAS did to a session, and what its agents printed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from mas.store.atomic import append_line
from mas.store.layout import Layout

# Escape sequences (OSC and the like, CSI, two-byte) and the control characters no reader wants. No pattern
# looks past the next escape, or output full of unfinished ones would take hours; none is left behind, or two
# halves could join to one that the reader's terminal obeys.
_ESCAPES = (
    rb"\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[ -/]*[0-~]"
    rb"|[\x00-\x08\x0b-\x1f\x7f]"
)
_C1 = "[\x80-\x9f]"
_TAIL_BLOCK = 1 << 16
# A log need not have lines at all.
_LONGEST_TAIL = 4 << 20


class Logs:
    """Writes `session.log` and the workspace's log, reads what agents printed."""

    def __init__(self, layout: Layout, now: Callable[[], str]) -> None:
        self._layout = layout
        self._now = now

    def session(self, session_id: str, text: str) -> None:
        """One line in the session's log; a log that cannot be written never stops the work."""
        self._line(self._layout.session(session_id).session_log(), text)

    def workspace(self, text: str) -> None:
        """One line in the workspace's log."""
        self._line(self._layout.at("logs", "mas.log"), text)

    def _line(self, path: str, text: str) -> None:
        one_line = text.replace("\n", " ")
        try:
            append_line(path, f"{self._now()} {one_line}\n".encode("utf-8", "replace"))
        except OSError:
            return

    def tail(self, path: str, lines: int) -> str:
        """The last lines of a log as text, without escape sequences."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return ""
        with open(fd, "rb") as file:
            position = file.seek(0, os.SEEK_END)
            data = b""
            while position and len(data) < _LONGEST_TAIL and data.count(b"\n") <= lines:
                step = min(_TAIL_BLOCK, position)
                position -= step
                file.seek(position)
                data = file.read(step) + data
        return plain_text(data, lines)


def plain_text(data: bytes, lines: int) -> str:
    """The last `lines` lines of terminal output, readable."""
    text = re.sub(_C1, "", re.sub(_ESCAPES, b"", data).decode("utf-8", "replace"))
    return "\n".join(text.rstrip("\n").split("\n")[-lines:] if lines else [])
