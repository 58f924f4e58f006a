"""An agent's event file: `logs/agent-{id}.events.jsonl`, one JSON object per line.

The launcher writes it, and so does `mas hook`; it shows all that happened to the agent. Past its largest size it starts
again with what still counts: the last start and the last report of each source since then. Writers lock it, so that no
process adds to a file that has been replaced; no process waits long for the lock.

Imports next to nothing, because the launcher in every pane writes here.
"""

from __future__ import annotations

import os
from _json import (
    encode_basestring_ascii as _quoted,
)  # the C half of `json`; all of it would cost 10 ms a start

from mas.store.files.descriptors import APPEND, READ, remove_file, still_at, take_lock

LARGEST = 4 << 20
LONGEST_TEXT = 2048
START = b'"event":"start"'
EXIT = b'"event":"exit"'
_CALLED = b'"event":"hook"'
# What passed to the agent: the first line of a message, the Enter behind it, and that the agent then began to work;
# a mark, which shows its sender how far the launcher has read.
TYPED = b'"event":"typed"'
ENTERED = b'"event":"entered"'
TAKEN = b'"event":"taken"'
MARKED = b'"event":"mark"'
# Such a mark, as it is typed: its first byte is part of no text and no key.
MARK_START, MARK_END = b"\xffmas=", b"\xff"
# A hook that shows which message the agent has taken.
_PROMPT = b'"prompt":"'
_PASSED = (TYPED, ENTERED, TAKEN, MARKED, _PROMPT)
_SAID = b'"event":"state","source":"%s"'
_SOURCES = (b"osc7501", b"hooks", b"title", b"foreground", b"screen", b"composer", b"launcher")
_WRITE = os.O_RDWR | APPEND
# How often to try for the lock, and the seconds between.
_PATIENCE = 20
_PAUSE = 0.001
_BLOCK = 1 << 16
# Controls, and what turns the direction of writing: text of an agent must not be able to draw on anything.
_UNSHOWN = {
    **dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)), " "),
    **dict.fromkeys((0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xFEFF), ""),
}

Fields = dict[str, int | str | list[str]]


def plain(data: bytes, most: int = LONGEST_TEXT) -> str:
    """What an agent says as one line of bounded text, without anything that a terminal would obey."""
    return data[:most].decode("utf-8", "replace" if len(data) <= most else "ignore").translate(_UNSHOWN).strip()


def said_by(source: str) -> bytes:
    """What every line has in which this source reports a state."""
    return _SAID % source.encode()


def json_object(fields: Fields) -> str:
    return "{" + ",".join(f"{_quoted(key)}:{_json(value)}" for key, value in fields.items()) + "}"


def _json(value: int | str | list[str]) -> str:
    if isinstance(value, list):
        return "[" + ",".join(_quoted(item) for item in value) + "]"
    return str(value) if isinstance(value, int) else _quoted(value)


class AgentLog:
    """The file, open for writing within the `with` block; `OSError` if it cannot be opened."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = -1
        self._locked = False

    def __enter__(self) -> AgentLog:
        while True:
            self._fd = os.open(self._path, _WRITE, 0o600)
            self._locked = take_lock(self._fd, _PATIENCE, _PAUSE)
            if not self._locked or still_at(self._fd, self._path):
                # A process that holds the lock this long may be hostile; the event is written anyway.
                return self
            # The file was started again in the meantime.
            os.close(self._fd)

    def __exit__(self, *_: object) -> None:
        try:
            if self._locked and os.fstat(self._fd).st_size > LARGEST:
                _start_again(self._path, self._fd)
        except OSError:
            # The disk is full; then the file does not grow either.
            return
        finally:
            os.close(self._fd)

    def last_run(self) -> list[bytes]:
        return _last_run(self._fd)

    def add(self, fields: Fields) -> None:
        """Add one line in one write, so that readers see whole lines; what was written of half a line is taken back."""
        os.fchmod(self._fd, 0o600)
        line = json_object(fields).encode() + b"\n"
        before = os.fstat(self._fd).st_size
        written = os.write(self._fd, line)
        if written < len(line):
            # The disk is full; half a line would spoil the next one too, unless that is there already.
            if os.fstat(self._fd).st_size == before + written:
                os.ftruncate(self._fd, before)
            raise OSError("the disk is full")


def last_run(path: str) -> list[bytes]:
    """The lines that show the state of the agent's last run, in the order they were written.

    They are its start, the last report of each source, the last message that passed to it and how far, and its exit.
    Empty if no run has begun yet, or the file cannot be read. Reads no more than the run is long.
    """
    try:
        fd = os.open(path, READ)
    except OSError:
        return []
    try:
        return _last_run(fd)
    except OSError:
        return []
    finally:
        os.close(fd)


def has_spoken(path: str, source: str) -> bool:
    """Whether a source has reported a state in the agent's last run."""
    word = said_by(source)
    return any(word in line for line in last_run(path))


def _last_run(fd: int) -> list[bytes]:
    data = b""
    position = os.fstat(fd).st_size
    # Until the line of the last start is there from its beginning.
    while position and b"\n" not in data[: max(0, data.rfind(START))] and len(data) < 2 * LARGEST:
        step = min(max(_BLOCK, len(data)), position)
        position -= step
        data = os.pread(fd, step, position) + data
    start = data.rfind(START)
    if start < 0:
        return []
    run = data[data.rfind(b"\n", 0, start) + 1 : data.rfind(b"\n") + 1]
    places = {run.rfind(word) for word in (*(_SAID % source for source in _SOURCES), *_PASSED, EXIT)}
    lines = {0} | {run.rfind(b"\n", 0, place) + 1 for place in places if place >= 0}
    return [run[line : run.find(b"\n", line)] for line in sorted(lines)]


def passed(path: str, word: bytes, message_id: str) -> int:
    """How often a message passed to the agent, in all runs that are still recorded: `TYPED` or `ENTERED`."""
    line = word + b',"id":"%s"' % message_id.encode()
    return sum(_content(name).count(line) for name in (path, f"{path}.1"))


def has_called(path: str) -> bool:
    """Whether the agent has called a hook in its last run."""
    return _CALLED in _content(path).rpartition(START)[2]


def _content(path: str) -> bytes:
    try:
        fd = os.open(path, READ)
    except OSError:
        return b""
    with open(fd, "rb") as file:
        return file.read(2 * LARGEST)


def _start_again(path: str, fd: int) -> None:
    head = b"".join(line + b"\n" for line in _last_run(fd))
    half = f"{path}.new"
    remove_file(half)
    new = os.open(half, _WRITE | os.O_EXCL, 0o600)
    try:
        os.fchmod(new, 0o600)
        if os.write(new, head) < len(head):
            raise OSError("the disk is full")
    finally:
        os.close(new)
    # A link first: at no moment is there no file.
    remove_file(f"{path}.1")
    os.link(path, f"{path}.1", follow_symlinks=False)
    os.replace(half, path)
