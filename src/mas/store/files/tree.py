"""Directory trees: copy, measure, remove. Never follows a link, never leaves the tree it was given."""

import errno
import os
import stat
import time
from collections.abc import Iterator
from typing import NamedTuple

from mas.store.files.atomic import Progress
from mas.store.files.descent import Cursor, Descent, Found, let_in, open_file
from mas.store.files.descriptors import DIRECTORY, NEW, write_all
from mas.store.files.safe_open import is_foreign

_CREATE = os.O_WRONLY | NEW
_NO_RANGE_COPY = {errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP}
# The errors of the disk for something that is not what it was a moment ago.
_CHANGED = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL, errno.ENXIO}
_CHUNK = 1 << 26
_BUFFER = 1 << 20
# How deep a removal goes with a descriptor for each level.
_DEEPEST = 200
_SLOW = 1.0
# How many entries that were left out are listed by name.
_MOST_SKIPPED = 100


class Usage(NamedTuple):
    """What a tree holds: regular files, their bytes, and the disk they take."""

    files: int = 0
    size: int = 0
    disk: int = 0


class Entry(NamedTuple):
    """A thing found by `walk`: its name, how it looks, and the directory to open it in."""

    name: str
    info: os.stat_result
    descent: Descent

    @property
    def parent(self) -> int:
        return self.descent.fd

    @property
    def path(self) -> str:
        """Its path below the tree."""
        return self.descent.path(self.name)


def walk(root: str, past_closed: bool = False) -> Iterator[Entry]:
    """Everything below `root`, each directory before its content, opened without following links.

    What vanishes meanwhile is left out, and with `past_closed` what may not be entered; an entry is only good until the
    next step.
    """
    with Descent(root) as descent:
        while (found := descent.next()) is not None:
            try:
                info = os.stat(found.name, dir_fd=descent.fd, follow_symlinks=False)
                yield Entry(found.name, info, descent)
                if stat.S_ISDIR(info.st_mode):
                    descent.enter(found.name)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except PermissionError:
                if not past_closed:
                    raise


def usage(root: str, open_up: bool = False) -> Usage:
    """How much is below `root`, however deep; with `open_up` also in directories that agents have shut."""
    files = size = disk = 0
    with Descent(root, open_up) as descent:
        while (found := descent.next()) is not None:
            try:
                info = os.stat(found.name, dir_fd=descent.fd, follow_symlinks=False)
                disk += info.st_blocks * 512
                if stat.S_ISREG(info.st_mode):
                    files += 1
                    size += info.st_size
                elif stat.S_ISDIR(info.st_mode):
                    descent.enter(found.name)
            except OSError:
                continue
    return Usage(files, size, disk)


class _Copy:
    """One copy in progress: counts, reports progress, remembers what could not be copied."""

    def __init__(self, source: str, progress: Progress | None, open_up: bool) -> None:
        self.source = source
        self.open_up = open_up
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
        self.total = self.total or usage(self.source, self.open_up).size
        self.progress(self.done, max(self.total, self.done))


def copy_tree(source: str, target: str, progress: Progress | None = None, open_up: bool = False) -> list[str]:
    """Copy the directory `source` to the new directory `target`; returns what was left out.

    Links are copied as links. Files are new files that share nothing a write could reach (where the file
    system can, their blocks are shared until written). All of it is writable by its owner. Sockets, pipes
    and devices are left out. With `open_up`, for a tree that agents wrote, what they have shut is copied too, and
    what cannot be read even so is left out.
    """
    copy = _Copy(source, progress, open_up)
    with Descent(source, open_up) as descent:
        os.mkdir(target, 0o700)
        with Cursor(target) as there:
            _copy_all(copy, descent, there)
    for path in descent.lost:
        copy.skip(path)
    return copy.skipped + ([f"… and {copy.skipped_more} more"] if copy.skipped_more else [])


def _copy_all(copy: _Copy, descent: Descent, there: Cursor) -> None:
    entered = [os.fstat(descent.fd)]
    while (found := descent.next()) is not None:
        while len(entered) > descent.depth:
            _finish_directory(there.fd, entered.pop())
            there.up()
        try:
            inside = descent.enter(found.name) if found.is_directory else None
            if inside is None and not _copy_thing(copy, descent.fd, there.fd, found):
                copy.skip(descent.shown_path(found.name))
        except OSError as error:
            # A living agent may remove its files, or put others in their place, while its session is being cloned.
            if error.errno not in _CHANGED and not (copy.open_up and isinstance(error, PermissionError)):
                if error.filename == found.name:
                    # Thirteen directories have this name; alone it would not show which one is meant.
                    error.filename = os.path.join(copy.source, descent.path(found.name))
                raise
            copy.skip(descent.shown_path(found.name))
            continue
        if inside is not None:
            os.mkdir(found.name, 0o700, dir_fd=there.fd)
            there.down(found.name)
            entered.append(inside)
    while entered:
        _finish_directory(there.fd, entered.pop())
        if entered:
            there.up()


def _finish_directory(fd: int, info: os.stat_result) -> None:
    os.fchmod(fd, stat.S_IMODE(info.st_mode) & 0o777 | 0o700)
    os.utime(fd, ns=(info.st_atime_ns, info.st_mtime_ns))


def _copy_thing(copy: _Copy, from_fd: int, to_fd: int, found: Found) -> bool:
    """Whether it was something to copy: a link or a file."""
    if found.is_link:
        os.symlink(os.readlink(found.name, dir_fd=from_fd), found.name, dir_fd=to_fd)
        return True
    return found.is_file and _copy_file(copy, from_fd, to_fd, found.name)


def _copy_file(copy: _Copy, from_fd: int, to_fd: int, name: str) -> bool:
    """Whether it was a file to copy, and not something else by now, or another user's file."""
    source = open_file(name, from_fd, copy.open_up)
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
        let_in(name, parent)
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
        let_in(name, parent)
        fd = os.open(name, DIRECTORY, dir_fd=parent)
    os.fchmod(fd, 0o700)
    return fd


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
