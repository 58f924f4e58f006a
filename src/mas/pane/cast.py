"""A recording of an agent's terminal that any asciicast player can replay: `logs/agent-{id}.cast` (version 2).

It has what was printed and when, and every change of size; never what was typed. Output that comes close together
becomes one event, so that floods cost little. Bounded: a recording past its largest size is kept as `.cast.1`, and
the next begins with its own header, in the middle of what the screen shows. A run of the agent begins one too.

Of a flood only samples are kept: no person can follow it, making JSON of it all would slow the agent, and it would push
out what came before. It may be 4 MiB at once and 1 MiB a second in the long run; past that, the last 64 KiB of each
quarter of a second. Nothing is kept while the disk is full. A marker says how many bytes are missing;
`agent-{id}.log` has them.
"""

from __future__ import annotations

import os
import time
from _json import (
    encode_basestring as _quoted,
)  # the C half of `json`; all of it would cost 10 ms a start

from mas.store.files.descriptors import NEW

LARGEST = 8 << 20
# Output is one event for as long as this, or up to so much.
_MOMENT = 0.01
_BLOCK = 1 << 16
_BURST = 4 << 20
_RATE = 1 << 20
_FLOODED = 0.25
_FLAGS = os.O_WRONLY | NEW
_LEADS = ((0xF8, 1), (0xF0, 4), (0xE0, 3), (0xC0, 2))


class Cast:
    """One recording that grows. Never raises: a recording is not worth an agent."""

    def __init__(self, path: str, columns: int, rows: int, term: str) -> None:
        self.due: float | None = None
        """When to write what is waiting, by the monotonic clock."""
        self._path = path
        self._size = (columns, rows)
        self._term = term
        self._fd = -1
        self._length = 0
        self._begun = 0.0
        self._lost = 0
        self._waiting = bytearray()
        self._since = 0.0
        self._room = float(_BURST)
        self._filled = 0.0
        self._flooded = False

    def output(self, data: bytes, now: float) -> None:
        """Add what was printed at `now`."""
        if not self._waiting:
            self._since = now
        self._waiting += data
        if self.due is None:
            self.due = now + _MOMENT
        over = len(self._waiting) - _BLOCK
        if over >= 0:
            self._room = min(_BURST, self._room + (now - self._filled) * _RATE)
            self._filled = now
            if self._room >= len(self._waiting) and not self._flooded:
                self.flush()
            else:
                self._skip(over, now)

    def _skip(self, over: int, now: float) -> None:
        """Leave out what is too much, and wait for the flood to end."""
        if not self._flooded:
            self._flooded = True
            self.due = now + _FLOODED
        del self._waiting[:over]
        self._lost += over
        self._since = now

    def resize(self, columns: int, rows: int, now: float) -> None:
        """The terminal has another size from `now` on."""
        self.flush()
        if (columns, rows) != self._size:
            self._size = (columns, rows)
            if self._fd >= 0:
                self._add(now, "r", f"{columns}x{rows}", 0)

    def flush(self) -> None:
        """Write what waits, but for the beginning of a character whose rest is yet to come."""
        self.due = None
        if self._flooded:
            # What is left begins anywhere; a line is a better place.
            self._flooded = False
            cut = self._waiting.find(b"\n") + 1
            del self._waiting[:cut]
            self._lost += cut
        end = _whole(self._waiting)
        if end:
            self._write(end)

    def close(self) -> None:
        """Write all that waits. Nothing can be added after."""
        if self._waiting:
            self._write(len(self._waiting))
        self._let_go()

    def _write(self, end: int) -> None:
        text = self._waiting[:end].decode("utf-8", "replace")
        del self._waiting[:end]
        self._room -= end
        self._add(self._since, "o", text, end)

    def _add(self, at: float, code: str, text: str, size: int) -> None:
        quoted = _quoted(text)
        try:
            if self._fd < 0:
                self._begin(at)
            if self._lost:
                self._line(at, "m", f'"{self._lost} bytes not recorded"')
                self._lost = 0
            self._line(at, code, quoted)
        except OSError:
            self._lost += size

    def _line(self, at: float, code: str, quoted: str) -> None:
        line = f'[{max(0.0, at - self._begun):.6f},"{code}",{quoted}]\n'.encode()
        if self._length + len(line) > LARGEST:
            self._begin(at)
            line = f'[0.000000,"{code}",{quoted}]\n'.encode()
        self._put(line)

    def _begin(self, at: float) -> None:
        """Start a new file; the one there was becomes the predecessor."""
        self._let_go()
        try:
            os.replace(self._path, f"{self._path}.1")
        except FileNotFoundError:
            pass
        self._fd = os.open(self._path, _FLAGS, 0o600)
        self._length = 0
        self._begun = at
        columns, rows = self._size
        when = int(time.time() - (time.monotonic() - at))
        env = f'{{"TERM":{_quoted(self._term)}}}'
        header = f'{{"version":2,"width":{columns},"height":{rows},"timestamp":{when},"env":{env}}}\n'
        try:
            os.fchmod(self._fd, 0o600)
            self._put(header.encode("utf-8", "replace"))
        except OSError:
            # Tried again with the next event, which must not push the predecessor out.
            self._let_go()
            os.unlink(self._path)
            raise

    def _let_go(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _put(self, line: bytes) -> None:
        written = os.write(self._fd, line)
        if written < len(line):
            # The disk is full; half a line would spoil the recording.
            os.ftruncate(self._fd, self._length)
            os.lseek(self._fd, self._length, os.SEEK_SET)
            raise OSError("the disk is full")
        self._length += written


def _whole(data: bytearray) -> int:
    """How much of it ends with a whole character; what is no character at all counts as one."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            needed = next((count for lead, count in _LEADS if byte >= lead), 1)
            return len(data) - back if needed > back else len(data)
    return len(data)
