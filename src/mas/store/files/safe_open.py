"""Opens files below a directory and nowhere else: no link is followed, no `..` is allowed.

For everything that is read out of a place where agents can write. The kernel sees to it where it can (`openat2`), else
a walk that opens one directory after the other. Two names of one file are no link; but a file with another
owner than the directory was put there so that a process that may read it does, and is left alone.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from mas.model.errors import BadInput, NotFound
from mas.model.ids import shown
from mas.store.files.descriptors import DIRECTORY, READ
from mas.store.layout import PRIVATE_DIR

_LONGEST_PATH = 4096
_OPENAT2 = 437
_BENEATH = 0x02 | 0x04 | 0x08  # no magic links, no links at all, nothing above
_NOT_BY_THE_KERNEL = (errno.ENOSYS, errno.EPERM, errno.EINVAL)
# A path that changes while the kernel follows it is looked at again so often.
_TRIES = 16


def parse_path(path: str) -> tuple[str, ...]:
    """The names a relative path is made of; `BadInput` for anything that could lead elsewhere."""
    if len(path) > _LONGEST_PATH or "\0" in path or path.startswith("/"):
        raise BadInput(f"Not a relative path: {shown(path)}")
    names = tuple(name for name in path.split("/") if name not in ("", "."))
    if ".." in names:
        raise BadInput(f"A path must not contain '..': {shown(path)}")
    return names


@contextmanager
def opened_beneath(root: str, names: tuple[str, ...]) -> Iterator[int]:
    """A descriptor of the file or directory; `NotFound` where there is none, or a link or a device instead."""
    fd = -1
    try:
        fd = os.open(root, DIRECTORY)
        owner = os.fstat(fd).st_uid
        if names:
            inner = _opened(fd, names)
            os.close(fd)
            fd = inner
        info = os.fstat(fd)
        if not (stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode)) or is_foreign(info, owner):
            raise NotFound(f"Not a file or directory: {shown('/'.join(names))}")
        yield fd
    except PermissionError:
        raise
    except OSError:
        raise NotFound(f"There is no file {shown('/'.join(names))}") from None
    finally:
        if fd >= 0:
            os.close(fd)


def made_beneath(fd: int, names: Iterable[str]) -> int:
    """A descriptor of a directory beneath the open one, which is closed; each on the way is made if it is missing."""
    for name in names:
        try:
            try:
                os.mkdir(name, PRIVATE_DIR, dir_fd=fd)
            except FileExistsError:
                pass
            inner = os.open(name, DIRECTORY, dir_fd=fd)
        finally:
            os.close(fd)
        fd = inner
    return fd


def is_foreign(info: os.stat_result, owner: int) -> bool:
    """Whether this is a hard link to a file with another owner than the tree."""
    return stat.S_ISREG(info.st_mode) and info.st_nlink > 1 and info.st_uid != owner


def _opened(fd: int, names: tuple[str, ...]) -> int:
    """A descriptor of what is beneath the directory that `fd` is."""
    try:
        return _by_the_kernel(fd, "/".join(names))
    except OSError as error:
        if error.errno not in _NOT_BY_THE_KERNEL:
            raise
        return _step_by_step(os.dup(fd), names)


def _by_the_kernel(fd: int, path: str) -> int:
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    how = struct.pack("QQQ", READ, 0, _BENEATH)
    for _ in range(_TRIES):
        inner = libc.syscall(
            ctypes.c_long(_OPENAT2), ctypes.c_int(fd), os.fsencode(path), how, ctypes.c_size_t(len(how))
        )
        if inner >= 0:
            return int(inner)
        if ctypes.get_errno() != errno.EAGAIN:
            break
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)


def _step_by_step(fd: int, names: tuple[str, ...]) -> int:
    for position, name in enumerate(names):
        try:
            inner = os.open(name, READ if position == len(names) - 1 else DIRECTORY, dir_fd=fd)
        finally:
            os.close(fd)
        fd = inner
    return fd
