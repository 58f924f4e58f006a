"""Directory trees: copy, measure, remove. Never follows a link, never leaves the tree it was given."""

# No postponed annotations here: NamedTuple would compile the type of every field anew at each start.
import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from mas.model.errors import BadInput
from mas.store.atomic import write_all

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_RANGE_COPY = {errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP}
_CHUNK = 1 << 26
_BUFFER = 1 << 20
# Each level holds two descriptors; a tree deeper than this was built to break something.
_DEEPEST = 200
_SLOW = 1.0


class Usage(NamedTuple):
    """What a tree holds: regular files, their bytes, and the disk they take."""

    files: int = 0
    size: int = 0
    disk: int = 0


Progress = Callable[[int, int], None]
"""Called with bytes done and bytes in all, but only for work that takes over a second."""


class Entry(NamedTuple):
    """A thing found by `walk`: its path below the tree, how it looks, and the directory to open it in."""

    path: str
    name: str
    info: os.stat_result
    parent: int


def walk(root: str, past_closed: bool = False) -> Iterator[Entry]:
    """Everything below `root`, each directory before its content, opened without following links.

    What vanishes meanwhile is left out, and with `past_closed` what may not be entered; `parent` is only open
    until the next step.
    """
    fd = os.open(root, _DIRECTORY)
    try:
        yield from _walk(fd, "", 0, past_closed)
    finally:
        os.close(fd)


def _walk(fd: int, prefix: str, depth: int, past_closed: bool) -> Iterator[Entry]:
    if depth > _DEEPEST:
        raise BadInput(f"Directories are nested more than {_DEEPEST} deep at {prefix[:80]}…")
    for name in sorted(os.listdir(fd)):
        try:
            info = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except FileNotFoundError:
            continue
        path = f"{prefix}{name}"
        yield Entry(path, name, info, fd)
        if stat.S_ISDIR(info.st_mode):
            try:
                inner = os.open(name, _DIRECTORY, dir_fd=fd)
            except FileNotFoundError:
                continue
            except PermissionError:
                if past_closed:
                    continue
                raise
            try:
                yield from _walk(inner, f"{path}/", depth + 1, past_closed)
            finally:
                os.close(inner)


def usage(root: str) -> Usage:
    """How much lies below `root`; directories an agent closed to everybody are passed by."""
    files = size = disk = 0
    for entry in walk(root, past_closed=True):
        disk += entry.info.st_blocks * 512
        if stat.S_ISREG(entry.info.st_mode):
            files += 1
            size += entry.info.st_size
    return Usage(files, size, disk)


class _Copy:
    """One copy under way: counts, tells of progress, remembers what could not be copied."""

    def __init__(self, source: str, progress: Progress | None) -> None:
        self.source = source
        self.progress = progress
        self.begun = time.monotonic()
        self.total = 0
        self.done = 0
        self.skipped: list[str] = []

    def advance(self, count: int) -> None:
        self.done += count
        if self.progress is None or time.monotonic() - self.begun < _SLOW:
            return
        self.total = self.total or usage(self.source).size
        self.progress(self.done, max(self.total, self.done))


def copy_tree(source: str, target: str, progress: Progress | None = None) -> list[str]:
    """Copy the directory `source` to the new directory `target`; answers what was left out.

    Links are copied as links. Files are new files that share nothing a write could reach (where the file
    system can, their blocks are shared until written). All of it is writable by its owner. Sockets, pipes
    and devices are left out.
    """
    copy = _Copy(source, progress)
    from_fd = os.open(source, _DIRECTORY)
    try:
        os.mkdir(target, 0o700)
        to_fd = os.open(target, _DIRECTORY)
        try:
            _copy_directory(copy, from_fd, to_fd, "")
        finally:
            os.close(to_fd)
    finally:
        os.close(from_fd)
    return copy.skipped


def _copy_directory(copy: _Copy, from_fd: int, to_fd: int, path: str) -> None:
    if path.count("/") > _DEEPEST:
        raise BadInput(f"Directories are nested more than {_DEEPEST} deep at {path[:80]}…")
    with os.scandir(from_fd) as entries:
        for entry in entries:
            name = entry.name
            try:
                if entry.is_symlink():
                    os.symlink(os.readlink(name, dir_fd=from_fd), name, dir_fd=to_fd)
                elif entry.is_dir(follow_symlinks=False):
                    _copy_subdirectory(copy, from_fd, to_fd, name, f"{path}{name}/")
                elif entry.is_file(follow_symlinks=False):
                    _copy_file(copy, from_fd, to_fd, name)
                else:
                    copy.skipped.append(f"{path}{name}")
            except FileNotFoundError:
                # A living agent may remove its files while its session is being cloned.
                copy.skipped.append(f"{path}{name}")
    info = os.fstat(from_fd)
    os.fchmod(to_fd, stat.S_IMODE(info.st_mode) & 0o777 | 0o700)
    os.utime(to_fd, ns=(info.st_atime_ns, info.st_mtime_ns))


def _copy_subdirectory(copy: _Copy, from_fd: int, to_fd: int, name: str, path: str) -> None:
    inner_from = os.open(name, _DIRECTORY, dir_fd=from_fd)
    try:
        os.mkdir(name, 0o700, dir_fd=to_fd)
        inner_to = os.open(name, _DIRECTORY, dir_fd=to_fd)
        try:
            _copy_directory(copy, inner_from, inner_to, path)
        finally:
            os.close(inner_to)
    finally:
        os.close(inner_from)


def _copy_file(copy: _Copy, from_fd: int, to_fd: int, name: str) -> None:
    source = os.open(name, _READ, dir_fd=from_fd)
    try:
        info = os.fstat(source)
        target = os.open(name, _CREATE, 0o600, dir_fd=to_fd)
        try:
            if info.st_size:
                _copy_bytes(source, target, copy)
            os.fchmod(target, stat.S_IMODE(info.st_mode) & 0o777 | 0o600)
            os.utime(target, ns=(info.st_atime_ns, info.st_mtime_ns))
        finally:
            os.close(target)
    finally:
        os.close(source)


def _copy_bytes(source: int, target: int, copy: _Copy) -> None:
    try:
        while count := os.copy_file_range(source, target, _CHUNK):
            copy.advance(count)
    except (OSError, AttributeError) as error:
        if isinstance(error, OSError) and error.errno not in _NO_RANGE_COPY:
            raise
        while data := os.read(source, _BUFFER):
            write_all(target, data)
            copy.advance(len(data))


def remove_tree(root: str) -> None:
    """Remove `root` and all below it, also directories an agent made unreadable. Absent is fine."""
    try:
        top = os.open(os.path.dirname(root), _DIRECTORY)
    except FileNotFoundError:
        return
    waiting = [os.path.basename(root)]
    try:
        while waiting:
            _remove(top, waiting.pop(), 0, _Lift(top, waiting))
    finally:
        os.close(top)


class _Lift(NamedTuple):
    """Where directories too deep to descend into are moved, to be removed from there."""

    top: int
    waiting: list[str]

    def take(self, parent: int, name: str) -> None:
        lifted = f".deep-{os.getpid()}-{time.monotonic_ns()}"
        # A directory that changes its parent must be writable itself: its `..` changes.
        os.chmod(name, 0o700, dir_fd=parent)
        os.rename(name, lifted, src_dir_fd=parent, dst_dir_fd=self.top)
        self.waiting.append(lifted)


def _remove(parent: int, name: str, depth: int, lift: _Lift) -> None:
    try:
        os.unlink(name, dir_fd=parent)
        return
    except FileNotFoundError:
        return
    except IsADirectoryError:
        pass
    except PermissionError:
        # Some systems say this of a directory.
        if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise
    if depth > _DEEPEST:
        lift.take(parent, name)
        return
    try:
        fd = _open_to_empty(parent, name)
        try:
            for inner in os.listdir(fd):
                _remove(fd, inner, depth + 1, lift)
        finally:
            os.close(fd)
        os.rmdir(name, dir_fd=parent)
    except FileNotFoundError:
        return


def _open_to_empty(parent: int, name: str) -> int:
    try:
        fd = os.open(name, _DIRECTORY, dir_fd=parent)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=parent)
        fd = os.open(name, _DIRECTORY, dir_fd=parent)
    os.fchmod(fd, 0o700)
    return fd


def sync_tree(path: str) -> None:
    """Bring everything written below `path` to the disk: one call for its whole file system."""
    from ctypes import CDLL, get_errno

    fd = os.open(path, _DIRECTORY)
    try:
        libc = CDLL(None, use_errno=True)
        if not hasattr(libc, "syncfs"):
            os.sync()
        elif libc.syncfs(fd) != 0:
            raise OSError(get_errno(), os.strerror(get_errno()), path)
    finally:
        os.close(fd)
