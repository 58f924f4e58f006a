"""Durable files: all of the new content or all of the old, whatever happens in between."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mas.model.errors import AlreadyThere, Disk, DiskFull, DiskRefused
from mas.store.files.descriptors import APPEND, NEW, READ, SAFE, remove_file, write_all
from mas.store.layout import PRIVATE_FILE

_BLOCK = 1 << 20
# Most files of MAS are smaller; what is read at once, and is less than was asked for, is all there is.
_SMALL = 1 << 16
_LARGEST = 1 << 28
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}
_BROKEN = {errno.EIO, errno.ESTALE, errno.ENODEV, errno.ENXIO}

Progress = Callable[[int, int], None]
"""Called with bytes done and bytes in all, but only for work that takes over a second."""


@contextmanager
def disk_errors() -> Iterator[None]:
    """Says what the file system refused in MAS's own words; other errors pass through."""
    try:
        yield
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        if error.errno in _FULL:
            raise DiskFull(f"The disk is full{where}", "df -h; mas prune --older-than 7d") from error
        if error.errno in _REFUSED:
            raise DiskRefused(f"{os.strerror(error.errno)}{where}", "mas doctor") from error
        if error.errno in _BROKEN:
            raise Disk(f"The disk failed: {os.strerror(error.errno)}{where}", "dmesg; mas doctor") from error
        if error.errno == errno.EEXIST:
            raise AlreadyThere(f"It already exists{where}", "mas repair") from error
        raise


def write_atomic(path: str, data: bytes | bytearray, mode: int = PRIVATE_FILE) -> None:
    """Replace `path` by `data`, durably. The caller holds the lock that guards the file."""
    temporary = _temporary(path)
    try:
        write_new(temporary, data, mode)
        os.replace(temporary, path)
    except BaseException:
        remove_file(temporary)
        raise
    sync_directory(os.path.dirname(path))


def has_unfinished(*paths: str) -> bool:
    """Whether a `write_atomic` of one of these files is in progress, or was killed."""
    return any(os.path.lexists(_temporary(path)) for path in paths)


def remove_unfinished(*paths: str) -> None:
    """Remove what a killed `write_atomic` of these files left. The caller holds the locks that guard them."""
    for path in paths:
        remove_file(_temporary(path))


def _temporary(path: str) -> str:
    """One fixed name: what a killed writer left is written over by the next, or found by a recovery."""
    directory, name = os.path.split(path)
    return os.path.join(directory, f".{name.lstrip('.')}.tmp")


def write_new(path: str, data: bytes | bytearray, mode: int = PRIVATE_FILE) -> None:
    """Write `data` to `path` and to the disk, not yet caring for its name."""
    flags = os.O_WRONLY | NEW
    try:
        fd = os.open(path, flags, mode)
    except FileExistsError:
        # What a killed writer left; were it a pipe, or another name of some file, it must not be written to.
        remove_file(path)
        fd = os.open(path, flags, mode)
    try:
        os.fchmod(fd, mode)
        write_all(fd, data)
        os.fsync(fd)
    finally:
        os.close(fd)


def read_file(path: str) -> bytes:
    """The content of one of MAS's own files; a link in its place is an error."""
    fd = os.open(path, READ)
    try:
        # A listing reads two files of every session; a file object for each would take half as long again.
        data = os.read(fd, _SMALL)
        if len(data) < _SMALL:
            return data
        # Once more and all at once: put together of pieces, megabytes would be copied again and again.
        data = os.pread(fd, min(os.fstat(fd).st_size, _LARGEST), 0)
        while block := os.pread(fd, _BLOCK, len(data)):
            data += block
            if len(data) > _LARGEST:
                raise OSError(errno.EINVAL, "too large to be a file of MAS", path)
        return data
    finally:
        os.close(fd)


def append_line(path: str, line: bytes, mode: int = PRIVATE_FILE, directory: int | None = None) -> None:
    """Add one line in one write; logs need no more than that. The path is relative to an open `directory`."""
    fd = os.open(path, os.O_WRONLY | APPEND, mode, dir_fd=directory)
    try:
        os.fchmod(fd, mode)
        write_all(fd, line)
    finally:
        os.close(fd)


def make_directory(path: str, mode: int) -> None:
    """Make `path` with exactly `mode`, or not at all; it must not exist."""
    os.mkdir(path, mode)
    try:
        os.chmod(path, mode)
    except BaseException:
        os.rmdir(path)
        raise


def ensure_directory(path: str, mode: int) -> bool:
    """Make `path` unless it is there; True if it was made."""
    try:
        make_directory(path, mode)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
        return False
    return True


def sync_directory(path: str) -> None:
    _sync(path, os.O_DIRECTORY)


def sync_file(path: str) -> None:
    _sync(path, READ)


def _sync(path: str, flags: int) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def set_aside(path: str, now: str) -> str:
    """Keep a damaged file under a name that says so, and give that name back."""
    stamp = now.replace(":", "").replace("-", "").replace(".", "")
    aside = f"{path}.corrupt-{stamp}"
    number = 1
    while os.path.lexists(aside):
        number += 1
        aside = f"{path}.corrupt-{stamp}-{number}"
    os.rename(path, aside)
    sync_directory(os.path.dirname(path))
    return aside


@contextmanager
def locked(path: str) -> Iterator[None]:
    """Hold the lock file `path`, waiting for it; the kernel lets go when the holder dies."""
    fd = open_lock(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def open_lock(path: str) -> int:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | SAFE, PRIVATE_FILE)
    os.fchmod(fd, PRIVATE_FILE)
    return fd
