"""The writing half of the event log: any process adds a line, never waits long and never fails because of it.

`events/{segment}.jsonl` holds JSON objects, a line each. A writer shares a lock while it appends to the newest
segment; one that finds it full takes the lock alone, just long enough to create the next one, so a
segment that has a successor never grows again. Nothing is brought to the disk by force: events are news, and
the registry's journal is the durable truth. What cannot be written is dropped.

Imports next to nothing, because the launcher in every pane writes here too.
"""

from __future__ import annotations

import fcntl
import os
import time

from mas.store.files.descriptors import SAFE, take_lock

SEGMENT_SIZE = 4 << 20
KEPT = 8
_DIGITS = 10
_SUFFIX = ".jsonl"
# How often to try for a lock, and the seconds between.
_PATIENCE = 50
_ROLL_PATIENCE = 5
_PAUSE = 0.002
# Not blocking: a pipe in a file's place would have us wait for ever.
_FLAGS = os.O_CREAT | SAFE | os.O_NONBLOCK


def append_event(directory: str, text: str) -> None:
    """Add one line, unless the disk will not have it. It is never an error, and hardly ever a wait."""
    try:
        lock = _open_lock(directory)
    except OSError:
        return
    try:
        if _is_full(directory):
            _roll(directory, lock)
        if take_lock(lock, _PATIENCE, _PAUSE, shared=True):
            _append(directory, text)
    except OSError:
        return
    finally:
        os.close(lock)


def segments(directory: str) -> list[int]:
    """The numbers of the segments there are, oldest first."""
    return sorted(
        int(name[:_DIGITS])
        for name in os.listdir(directory)
        if name[_DIGITS:] == _SUFFIX and name.isascii() and name[:_DIGITS].isdecimal()
    )


def segment_path(directory: str, segment: int) -> str:
    return f"{directory}/{segment:0{_DIGITS}d}{_SUFFIX}"


def _open_lock(directory: str) -> int:
    path = f"{directory}/lock"
    try:
        return os.open(path, os.O_RDWR | _FLAGS, 0o600)
    except FileNotFoundError:
        try:
            os.mkdir(directory, 0o700)
        except FileExistsError:
            pass
        return os.open(path, os.O_RDWR | _FLAGS, 0o600)


def _append(directory: str, text: str) -> None:
    found = segments(directory)
    # Numbers begin with the time, so that an id of a removed log means nothing in the next one.
    path = segment_path(directory, found[-1] if found else int(time.time()))
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | _FLAGS, 0o600)
    try:
        # One write, so that no two mix. The line feed before it ends what a killed writer may have left there;
        # to look whether it did would be of no use, with others writing at the same time.
        os.write(fd, b"\n" + text.encode() + b"\n")
    finally:
        os.close(fd)


def _is_full(directory: str) -> bool:
    found = segments(directory)
    return bool(found) and os.lstat(segment_path(directory, found[-1])).st_size >= SEGMENT_SIZE


def _roll(directory: str, lock: int) -> None:
    """Begin the next segment and drop the oldest; if a stopped process holds the newest, it is used for longer."""
    # All who come now want the lock alone, so those who share it are soon through.
    if not take_lock(lock, _ROLL_PATIENCE, _PAUSE):
        return
    if _is_full(directory):
        path = segment_path(directory, segments(directory)[-1] + 1)
        os.close(os.open(path, os.O_WRONLY | _FLAGS, 0o600))
    fcntl.flock(lock, fcntl.LOCK_UN)
    for old in segments(directory)[:-KEPT]:
        os.unlink(segment_path(directory, old))
