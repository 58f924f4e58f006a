"""Open files: with which flags they are opened, which locks they hold, and whether a name is still theirs.

Imports next to nothing, because the launcher in every pane opens files too.
"""

from __future__ import annotations

import fcntl
import os
import time

# A link in the place of a file of ours is an error, and no program that is started later has the file open.
SAFE = os.O_NOFOLLOW | os.O_CLOEXEC
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | SAFE
# Not blocking: a pipe in the place of a file would have us wait for ever.
READ = os.O_RDONLY | os.O_NONBLOCK | SAFE
APPEND = os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | SAFE
NEW = os.O_CREAT | os.O_EXCL | SAFE


def utc_now() -> str:
    """The time as every file of MAS has it: ISO 8601 in UTC, to the millisecond."""
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03d}Z"


def write_all(fd: int, data: bytes | bytearray | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def remove_file(path: str, directory: int | None = None) -> bool:
    """Remove `path`, which is relative to an open `directory`; True if it was there."""
    try:
        os.unlink(path, dir_fd=directory)
    except FileNotFoundError:
        return False
    return True


def try_lock(fd: int, shared: bool = False) -> bool:
    """Take the lock on an open file if it is free; with `shared`, others may share it."""
    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def take_lock(fd: int, tries: int, pause: float, shared: bool = False) -> bool:
    """The same, with several tries and a pause in seconds after each; False if others keep the lock that long."""
    for _ in range(tries):
        if try_lock(fd, shared):
            return True
        time.sleep(pause)
    return False


def is_locked(path: str, shared: bool = True) -> bool:
    """Whether a process has the lock on the file `path`, alone or, if not `shared`, in any way."""
    try:
        fd = os.open(path, READ)
    except FileNotFoundError:
        return False
    try:
        return not try_lock(fd, shared)
    finally:
        os.close(fd)


def still_at(fd: int, path: str) -> bool:
    """Whether `path` is still the file behind `fd` (it may have been moved or removed meanwhile)."""
    try:
        there = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    here = os.fstat(fd)
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def is_there(name: str, directory: int) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
