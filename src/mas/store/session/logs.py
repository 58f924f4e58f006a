"""Logs: what MAS did to a session, and what its agents printed."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from functools import lru_cache

from mas.store.files.atomic import append_line
from mas.store.files.descriptors import DIRECTORY
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
_LARGEST_API_LOG = 16 << 20


class Logs:
    """Writes `session.log` and the workspace's log, reads what agents printed."""

    def __init__(self, layout: Layout, now: Callable[[], str]) -> None:
        self._layout = layout
        self._now = now

    def session(self, session_id: str, text: str) -> None:
        """One line in the session's log; a log that cannot be written never stops the work."""
        self._add_to_session(session_id, "session.log", self._stamped(text))

    def workspace(self, text: str) -> None:
        """One line in the workspace's log."""
        _add(self._layout.at("logs", "mas.log"), self._stamped(text))

    def api(self, session_id: str | None, text: str) -> None:
        """One line in the server's log, or in that of one session; past its largest size a new file begins."""
        line = f"{text}\n"
        if session_id is None:
            _add(self._layout.at("logs", "api.log"), line, _LARGEST_API_LOG)
        else:
            self._add_to_session(session_id, "api.log", line, _LARGEST_API_LOG)

    def last_note(self, session_id: str) -> str:
        """When something was last written to the session's log; nothing if there is none."""
        try:
            written = os.lstat(self._layout.session(session_id).session_log()).st_mtime_ns
        except OSError:
            return ""
        return _stamp(written // 1_000_000)

    def tail(self, path: str, lines: int) -> str:
        """The last lines of a log as text, without escape sequences; what is no file of a log's place is empty."""
        from mas.model.errors import NotFound
        from mas.store.files.safe_open import opened_beneath

        directory, name = os.path.split(path)
        root, inner = os.path.split(directory)
        try:
            with opened_beneath(root, (inner, name)) as fd:
                return plain_text(_end_of(fd, lines), lines)
        except NotFound:
            return ""

    def _stamped(self, text: str) -> str:
        one_line = text.replace("\n", " ")
        return f"{self._now()} {one_line}\n"

    def _add_to_session(self, session_id: str, name: str, line: str, largest: int | None = None) -> None:
        """Where agents may write, nothing is followed that leads elsewhere."""
        try:
            directory = os.open(self._layout.session(session_id).logs, DIRECTORY)
        except OSError:
            return
        try:
            _add(name, line, largest, directory)
        finally:
            os.close(directory)


@lru_cache(maxsize=10_000)
def _stamp(milliseconds: int) -> str:
    """A time as ISO 8601 in UTC. Of few sessions it is another from one listing to the next."""
    seconds, rest = divmod(milliseconds, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:03d}Z"


def _add(path: str, line: str, largest: int | None = None, directory: int | None = None) -> None:
    """Add to a log; past its largest size a new file begins."""
    try:
        if largest and os.stat(path, dir_fd=directory, follow_symlinks=False).st_size > largest:
            os.replace(path, f"{path}.1", src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:
        pass
    try:
        append_line(path, line.encode("utf-8", "replace"), directory=directory)
    except OSError:
        return


def _end_of(fd: int, lines: int) -> bytes:
    """What holds the last lines of an open file."""
    position = os.fstat(fd).st_size
    data = b""
    while position and len(data) < _LONGEST_TAIL and data.count(b"\n") <= lines:
        step = min(_TAIL_BLOCK, position)
        position -= step
        data = os.pread(fd, step, position) + data
    return data


def plain_text(data: bytes, lines: int) -> str:
    """The last `lines` lines of terminal output, readable."""
    text = re.sub(_C1, "", re.sub(_ESCAPES, b"", data).decode("utf-8", "replace"))
    return "\n".join(text.rstrip("\n").split("\n")[-lines:] if lines else [])
