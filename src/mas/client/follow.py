"""Follows a growing file of a session on a server, as `tail -F` does on this machine."""

from __future__ import annotations

import sys
import time
from typing import Protocol

from mas.model.errors import NoSession, NotFound
from mas.model.files import FilePart
from mas.model.ids import SessionId

_BLOCK = 1 << 20
_LOOK_AGAIN = 0.25


class Reader(Protocol):
    """Anything that can read a session's files."""

    def file(self, session_id: SessionId, path: str, offset: int = 0, most: int = 1 << 20) -> FilePart:
        """Some bytes of a file, and how large it is."""
        ...


def follow(mas: Reader, session_id: SessionId, path: str, lines: int) -> None:
    """Write the last `lines` lines to standard output, then what is added, byte for byte. Does not return."""
    offset, last = _last_lines(mas, session_id, path, lines)
    _write(last)
    while True:
        part = _part(mas, session_id, path, offset)
        if part.size < offset:
            # It was started again, as a log that grew too long is.
            offset = 0
            continue
        offset += len(part.data)
        if part.data:
            _write(part.data)
        else:
            time.sleep(_LOOK_AGAIN)


def _last_lines(mas: Reader, session_id: SessionId, path: str, lines: int) -> tuple[int, bytes]:
    """Where the file ends now, and its last lines."""
    end = begin = _part(mas, session_id, path, 0, 1).size
    data = b""
    # One newline more than lines: the last line ends with one.
    while begin and data.count(b"\n") <= lines:
        step = min(_BLOCK, begin)
        data = _part(mas, session_id, path, begin - step, step).data + data
        begin -= step
    if not lines:
        return end, b""
    whole = data.removesuffix(b"\n")
    return end, b"\n".join(whole.rsplit(b"\n", lines)[-lines:]) + data[len(whole) :]


def _part(mas: Reader, session_id: SessionId, path: str, offset: int, most: int = _BLOCK) -> FilePart:
    try:
        return mas.file(session_id, path, offset, most)
    except NoSession:
        raise
    except NotFound:
        # Nothing has been written yet.
        return FilePart(path, 0, b"")


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
