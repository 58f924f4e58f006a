"""Directory trees: copy, measure, remove. Never follows a link, never leaves the tree it was given."""

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from mas.model.errors import BadInput
from mas.model.ids import shown
from mas.store.files.descriptors import DIRECTORY, NEW, READ, SAFE, write_all
from mas.store.files.safe_open import is_foreign

_CREATE = os.O_WRONLY | NEW
_NO_RANGE_COPY = {errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP}
# The errors of the disk for something that is not what it was a moment ago.
_CHANGED = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL, errno.ENXIO}
_CHUNK = 1 << 26
_BUFFER = 1 << 20
# Each level holds two descriptors; a tree deeper than this was built to break something.
_DEEPEST = 200
_SLOW = 1.0
# How many entries that were left out are listed by name.
_MOST_SKIPPED = 100


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
    fd = os.open(root, DIRECTORY)
    try:
        yield from _walk(fd, "", 0, past_closed)
    finally:
        os.close(fd)


def _walk(fd: int, prefix: str, depth: int, past_closed: bool) -> Iterator[Entry]:
    if depth > _DEEPEST:
        raise BadInput(f"Directories are nested more than {_DEEPEST} deep at {shown(prefix[:80])}…")
    for name in sorted(os.listdir(fd)):
        try:
            info = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except FileNotFoundError:
            continue
        except PermissionError:
            # A directory that may be read, but not entered.
            if past_closed:
                continue
            raise
        path = f"{prefix}{name}"
        yield Entry(path, name, info, fd)
        if stat.S_ISDIR(info.st_mode):
            try:
                inner = os.open(name, DIRECTORY, dir_fd=fd)
            except (FileNotFoundError, NotADirectoryError):
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
    """How much is below `root`, however deep; unreadable directories are skipped."""
    files = size = disk = 0
    with _Descent(root) as descent:
        while (name := descent.next()) is not None:
            try:
                info = os.stat(name, dir_fd=descent.fd, follow_symlinks=False)
            except OSError:
                continue
            disk += info.st_blocks * 512
            if stat.S_ISREG(info.st_mode):
                files += 1
                size += info.st_size
            elif stat.S_ISDIR(info.st_mode):
                descent.enter(name)
    return Usage(files, size, disk)


class _Level(NamedTuple):
    """A directory on the way down: its name, which one it is, and what in it is still to be looked at."""

    name: str
    which: tuple[int, int]
    names: list[str]


class _Descent:
    """Goes through a tree of any depth with one descriptor; what is moved away meanwhile is left out."""

    def __init__(self, root: str) -> None:
        self._root = root
        self.fd = os.open(root, DIRECTORY)
        self._levels = [_Level("", _which(self.fd), os.listdir(self.fd))]

    def __enter__(self) -> "_Descent":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)

    def next(self) -> str | None:
        """The next name in the directory that `fd` is; None when all was looked at."""
        while not self._levels[-1].names:
            self._levels.pop()
            if not self._levels:
                self._levels.append(_Level("", (0, 0), []))
                return None
            self._go_up()
        return self._levels[-1].names.pop()

    def enter(self, name: str) -> None:
        """Go on inside that directory, if one may."""
        try:
            inner = os.open(name, DIRECTORY, dir_fd=self.fd)
        except OSError:
            return
        try:
            # Where one may read but not enter, there is no way back either.
            os.stat("..", dir_fd=inner)
            level = _Level(name, _which(inner), os.listdir(inner))
        except OSError:
            os.close(inner)
            return
        os.close(self.fd)
        self.fd = inner
        self._levels.append(level)

    def _go_up(self) -> None:
        try:
            self._be_at(os.open("..", DIRECTORY, dir_fd=self.fd))
        except OSError:
            self._be_at(os.open(self._root, DIRECTORY))
        if _which(self.fd) == self._levels[-1].which:
            return
        # Somebody moved a directory: as far down again as the way still leads.
        self._be_at(os.open(self._root, DIRECTORY))
        for depth, level in enumerate(self._levels[1:], 1):
            try:
                self._be_at(os.open(level.name, DIRECTORY, dir_fd=self.fd))
            except OSError:
                del self._levels[depth:]
                return

    def _be_at(self, fd: int) -> None:
        os.close(self.fd)
        self.fd = fd


def _which(fd: int) -> tuple[int, int]:
    info = os.fstat(fd)
    return info.st_dev, info.st_ino


class _Copy:
    """One copy in progress: counts, reports progress, remembers what could not be copied."""

    def __init__(self, source: str, progress: Progress | None) -> None:
        self.source = source
        self.progress = progress
        self.begun = time.monotonic()
        self.total = 0
        self.done = 0
        self.skipped: list[str] = []
        self.skipped_more = 0

    def skip(self, path: str) -> None:
        if len(self.skipped) < _MOST_SKIPPED:
            self.skipped.append(path)
        else:
            self.skipped_more += 1

    def advance(self, count: int) -> None:
        self.done += count
        if self.progress is None or time.monotonic() - self.begun < _SLOW:
            return
        self.total = self.total or usage(self.source).size
        self.progress(self.done, max(self.total, self.done))


def copy_tree(source: str, target: str, progress: Progress | None = None) -> list[str]:
    """Copy the directory `source` to the new directory `target`; returns what was left out.

    Links are copied as links. Files are new files that share nothing a write could reach (where the file
    system can, their blocks are shared until written). All of it is writable by its owner. Sockets, pipes
    and devices are left out.
    """
    copy = _Copy(source, progress)
    from_fd = os.open(source, DIRECTORY)
    try:
        os.mkdir(target, 0o700)
        to_fd = os.open(target, DIRECTORY)
        try:
            _copy_directory(copy, from_fd, to_fd, "")
        finally:
            os.close(to_fd)
    finally:
        os.close(from_fd)
    return copy.skipped + ([f"… and {copy.skipped_more} more"] if copy.skipped_more else [])


def _copy_directory(copy: _Copy, from_fd: int, to_fd: int, path: str) -> None:
    if path.count("/") > _DEEPEST:
        raise BadInput(f"Directories are nested more than {_DEEPEST} deep at {shown(path[:80])}…")
    with os.scandir(from_fd) as entries:
        for entry in entries:
            name = entry.name
            try:
                if entry.is_symlink():
                    os.symlink(os.readlink(name, dir_fd=from_fd), name, dir_fd=to_fd)
                elif entry.is_dir(follow_symlinks=False):
                    _copy_subdirectory(copy, from_fd, to_fd, name, f"{path}{name}/")
                elif not entry.is_file(follow_symlinks=False) or not _copy_file(copy, from_fd, to_fd, name):
                    copy.skip(f"{path}{name}")
            except OSError as error:
                # A living agent may remove its files, or put others in their place, while its session is being cloned.
                if error.errno not in _CHANGED:
                    if error.filename == name:
                        # Thirteen directories have this name; alone it would not show which one is meant.
                        error.filename = os.path.join(copy.source, f"{path}{name}")
                    raise
                copy.skip(f"{path}{name}")
    info = os.fstat(from_fd)
    os.fchmod(to_fd, stat.S_IMODE(info.st_mode) & 0o777 | 0o700)
    os.utime(to_fd, ns=(info.st_atime_ns, info.st_mtime_ns))


def _copy_subdirectory(copy: _Copy, from_fd: int, to_fd: int, name: str, path: str) -> None:
    inner_from = os.open(name, DIRECTORY, dir_fd=from_fd)
    try:
        os.mkdir(name, 0o700, dir_fd=to_fd)
        inner_to = os.open(name, DIRECTORY, dir_fd=to_fd)
        try:
            _copy_directory(copy, inner_from, inner_to, path)
        finally:
            os.close(inner_to)
    finally:
        os.close(inner_from)


def _copy_file(copy: _Copy, from_fd: int, to_fd: int, name: str) -> bool:
    """Whether it was a file to copy, and not something else by now, or another user's file."""
    source = os.open(name, READ, dir_fd=from_fd)
    try:
        info = os.fstat(source)
        if not stat.S_ISREG(info.st_mode) or is_foreign(info, os.fstat(from_fd).st_uid):
            return False
        target = os.open(name, _CREATE, 0o600, dir_fd=to_fd)
        try:
            for start, length in parts_of(source, info):
                _copy_bytes(source, target, start, length, copy)
            if info.st_blocks * 512 < info.st_size:
                os.ftruncate(target, info.st_size)
            os.fchmod(target, stat.S_IMODE(info.st_mode) & 0o777 | 0o600)
            os.utime(target, ns=(info.st_atime_ns, info.st_mtime_ns))
        finally:
            os.close(target)
        return True
    finally:
        os.close(source)


def parts_of(fd: int, info: os.stat_result) -> Iterator[tuple[int, int]]:
    """Where a file holds anything, each part by its start and length: of a huge file that may be next to nothing."""
    if not info.st_size:
        return
    if info.st_blocks * 512 >= info.st_size:
        yield 0, info.st_size
        return
    position = 0
    while position < info.st_size:
        try:
            start = os.lseek(fd, position, os.SEEK_DATA)
            position = min(os.lseek(fd, start, os.SEEK_HOLE), info.st_size)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
            raise
        if start < position:
            yield start, position - start


def _copy_bytes(source: int, target: int, start: int, left: int, copy: _Copy) -> None:
    """Copy `left` bytes and no more, however fast the file grows."""
    if start:
        os.lseek(target, start, os.SEEK_SET)
    os.lseek(source, start, os.SEEK_SET)
    try:
        while left and (count := os.copy_file_range(source, target, min(left, _CHUNK))):
            left -= count
            copy.advance(count)
    except (OSError, AttributeError) as error:
        if isinstance(error, OSError) and error.errno not in _NO_RANGE_COPY:
            raise
        while left and (data := os.read(source, min(left, _BUFFER))):
            write_all(target, data)
            left -= len(data)
            copy.advance(len(data))


def remove_tree(root: str) -> None:
    """Remove `root` and all below it, also directories an agent made unreadable. Absent is fine."""
    try:
        top = os.open(os.path.dirname(root), DIRECTORY)
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
        _open_up(parent, name)
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
        fd = os.open(name, DIRECTORY, dir_fd=parent)
    except PermissionError:
        _open_up(parent, name)
        fd = os.open(name, DIRECTORY, dir_fd=parent)
    os.fchmod(fd, 0o700)
    return fd


def _open_up(parent: int, name: str) -> None:
    """Let its owner into a directory; a link that stands there by now is left alone, and what it points to."""
    if not hasattr(os, "O_PATH"):
        os.chmod(name, 0o700, dir_fd=parent, follow_symlinks=False)
        return
    fd = os.open(name, os.O_PATH | os.O_DIRECTORY | SAFE, dir_fd=parent)
    try:
        os.chmod(f"/proc/self/fd/{fd}", 0o700)
    finally:
        os.close(fd)


def sync_tree(path: str) -> None:
    """Bring everything written below `path` to the disk: one call for its whole file system."""
    from ctypes import CDLL, get_errno

    fd = os.open(path, DIRECTORY)
    try:
        libc = CDLL(None, use_errno=True)
        if not hasattr(libc, "syncfs"):
            os.sync()
        elif libc.syncfs(fd) != 0:
            raise OSError(get_errno(), os.strerror(get_errno()), path)
    finally:
        os.close(fd)
