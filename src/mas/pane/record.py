"""What the launcher writes down: the agent's output and what happened to it.

A full disk must not stop an agent: what cannot be written is counted and noted once there is room again.
"""

from __future__ import annotations

import os
import time
from _json import (
    encode_basestring_ascii as _quoted,
)  # the C half of `json`; all of it would cost 10 ms a start

_LARGEST_LOG = 32 << 20
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Record:
    """The logs of one agent: `agent-{id}.log` (bytes as they came) and `agent-{id}.events.jsonl`."""

    def __init__(self, session_dir: str, agent: str) -> None:
        self._log = os.path.join(session_dir, "logs", f"agent-{agent}.log")
        self._events = os.path.join(session_dir, "logs", f"agent-{agent}.events.jsonl")
        self._fd = -1
        self._size = 0
        self._lost = 0

    def output(self, data: bytes) -> None:
        """Keep what the agent printed; the log starts anew past its largest size, with one predecessor."""
        try:
            if self._fd < 0 or self._size > _LARGEST_LOG:
                self._open()
            if self._lost:
                note = f"\r\n[{self._lost} bytes of output could not be recorded]\r\n".encode()
                os.write(self._fd, note)
                self._lost = 0
            written = os.write(self._fd, data)
            self._size += written
            self._lost += len(data) - written
        except OSError:
            self._lost += len(data)

    def _open(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            os.replace(self._log, f"{self._log}.1")
        self._fd = os.open(self._log, _FLAGS, 0o600)
        os.fchmod(self._fd, 0o600)
        self._size = os.fstat(self._fd).st_size

    def event(self, what: str, **details: int | str | list[str]) -> None:
        """Append one event in one write, so that readers see whole lines."""
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03d}Z"
        fields = {"at": stamp, "event": what, **details}
        line = "{" + ",".join(f"{_quoted(key)}:{_json(value)}" for key, value in fields.items()) + "}\n"
        try:
            fd = os.open(self._events, _FLAGS, 0o600)
        except OSError:
            return
        try:
            os.fchmod(fd, 0o600)
            before = os.fstat(fd).st_size
            if os.write(fd, line.encode()) < len(line):
                # The disk is full; half a line would spoil the next one too.
                os.ftruncate(fd, before)
        except OSError:
            return
        finally:
            os.close(fd)


def _json(value: int | str | list[str]) -> str:
    if isinstance(value, list):
        return "[" + ",".join(_quoted(item) for item in value) + "]"
    return str(value) if isinstance(value, int) else _quoted(value)
