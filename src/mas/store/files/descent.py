"""Trees that agents wrote: gone through at any depth, with few open files, past what was shut, never through a link."""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from mas.model.errors import NotFound
from mas.model.ids import shown
from mas.store.files.descriptors import DIRECTORY, READ, SAFE
from mas.store.files.safe_open import is_foreign

# So many directories on the way down stay open; deeper ones are opened again on the way up.
_KEPT_OPEN = 64
_LONGEST_SHOWN = 200


class Found(NamedTuple):
    """A thing in a directory, and what it was when the directory was listed."""

    name: str
    is_directory: bool
    is_link: bool
    is_file: bool


class _Level:
    """A directory on the way down: what in it is still to be looked at, and the mode that it gets back."""

    __slots__ = ("fd", "left", "length", "name", "shut", "which")

    def __init__(self, fd: int, name: str, length: int, shut: int | None) -> None:
        self.fd = fd
        self.name = name
        self.length = length
        self.shut = shut
        self.which = (0, 0)
        self.left = _listed(fd)


def _level(fd: int, name: str, length: int, shut: int | None) -> _Level:
    """An open directory with what is in it; closed again if that cannot be seen."""
    try:
        return _Level(fd, name, length, shut)
    except BaseException:
        os.close(fd)
        raise


class Descent:
    """Goes through a tree; what is moved away meanwhile is left out.

    With `open_up`, a directory that its owner may not read or enter can be for as long as we are in it.
    """

    def __init__(self, root: str, open_up: bool = False) -> None:
        self._open_up = open_up
        self.lost: list[str] = []
        """Directories that were moved away before all in them was looked at."""
        fd, shut = open_directory(root, None, open_up)
        self._levels = [_level(fd, "", 0, shut)]

    def __enter__(self) -> "Descent":
        return self

    def __exit__(self, *_: object) -> None:
        for level in reversed(self._levels):
            self._close(level)

    @property
    def fd(self) -> int:
        """The directory we are in."""
        return self._levels[-1].fd

    @property
    def depth(self) -> int:
        """How many directories we are in, with the root."""
        return len(self._levels)

    def length(self, name: str) -> int:
        """How many bytes the path of something here has, below the root."""
        return self._levels[-1].length + len(os.fsencode(name))

    def path(self, name: str) -> str:
        """The path of something here, below the root."""
        return "/".join([*(level.name for level in self._levels[1:]), name])

    def shown_path(self, name: str) -> str:
        """The same for people: cut where it is too long to read."""
        if self.length(name) <= _LONGEST_SHOWN:
            return self.path(name)
        parts: list[str] = []
        for level in self._levels[1:]:
            parts.append(level.name)
            if sum(map(len, parts)) > _LONGEST_SHOWN:
                break
        return "/".join(parts)[:_LONGEST_SHOWN] + "…"

    def next(self) -> Found | None:
        """The next thing in the directory that `fd` is; None when all was looked at."""
        while not self._levels[-1].left:
            if len(self._levels) == 1:
                return None
            self._go_up()
        return self._levels[-1].left.pop()

    def enter(self, name: str) -> os.stat_result:
        """Go on inside that directory; `OSError` if that may not be or is not there any more."""
        above = self._levels[-1]
        fd, shut = open_directory(name, above.fd, self._open_up)
        level = _level(fd, name, self.length(name) + 1, shut)
        if len(self._levels) > _KEPT_OPEN:
            above.which = _which(above.fd)
            os.close(above.fd)
            above.fd = -1
        self._levels.append(level)
        return os.fstat(fd)

    def _go_up(self) -> None:
        left = self._levels.pop()
        above = self._levels[-1]
        if above.fd < 0:
            try:
                above.fd = os.open("..", DIRECTORY, dir_fd=left.fd)
            except OSError:
                above.fd = -1
            if above.fd >= 0 and _which(above.fd) != above.which:
                # A directory was moved: what is there now is not ours to look at.
                os.close(above.fd)
                above.fd = -1
        self._close(left)
        if above.fd < 0:
            self._find_again()

    def _find_again(self) -> None:
        """As far down again as the way still leads; at the least to the last directory that stayed open."""
        kept = max(place for place, level in enumerate(self._levels) if level.fd >= 0)
        for place in range(kept + 1, len(self._levels)):
            level = self._levels[place]
            try:
                fd = os.open(level.name, DIRECTORY, dir_fd=self._levels[place - 1].fd)
            except OSError:
                fd = -1
            if fd >= 0 and _which(fd) != level.which:
                os.close(fd)
                fd = -1
            if fd < 0:
                gone = self._levels[place:]
                del self._levels[place:]
                if any(level.left for level in gone):
                    self.lost.append(self.shown_path(gone[0].name))
                return
            level.fd = fd
            if place - 1 > kept:
                os.close(self._levels[place - 1].fd)
                self._levels[place - 1].fd = -1

    def _close(self, level: _Level) -> None:
        if level.fd >= 0:
            if level.shut is not None:
                os.fchmod(level.fd, level.shut)
            os.close(level.fd)


class Cursor:
    """A place in a tree that only we write: goes anywhere below its root, however deep, with one open directory."""

    def __init__(self, root: str) -> None:
        self.fd = os.open(root, DIRECTORY)
        self._names: list[str] = []

    def __enter__(self) -> "Cursor":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)

    def down(self, name: str) -> None:
        self._be_at(os.open(name, DIRECTORY, dir_fd=self.fd))
        self._names.append(name)

    def up(self) -> None:
        self._be_at(os.open("..", DIRECTORY, dir_fd=self.fd))
        self._names.pop()

    def go(self, names: Sequence[str]) -> None:
        """Be in the directory of that path below the root."""
        shared = 0
        for here, there in zip(self._names, names, strict=False):
            if here != there:
                break
            shared += 1
        while len(self._names) > shared:
            self.up()
        for name in names[shared:]:
            self.down(name)

    def _be_at(self, fd: int) -> None:
        os.close(self.fd)
        self.fd = fd


def open_directory(name: str, parent: int | None, open_up: bool) -> tuple[int, int | None]:
    """A directory to go into; with `open_up` also one that was shut, and then the mode to give back to it."""
    if not open_up:
        return os.open(name, DIRECTORY, dir_fd=parent), None
    try:
        fd = os.open(name, DIRECTORY, dir_fd=parent)
    except PermissionError:
        shut = _mode(os.stat(name, dir_fd=parent, follow_symlinks=False))
        let_in(name, parent, shut | 0o700)
        return os.open(name, DIRECTORY, dir_fd=parent), shut
    try:
        os.stat(".", dir_fd=fd)
    except PermissionError:
        try:
            shut = _mode(os.fstat(fd))
            os.fchmod(fd, shut | 0o700)
        except BaseException:
            os.close(fd)
            raise
        return fd, shut
    return fd, None


def let_in(name: str, parent: int | None, mode: int = 0o700) -> None:
    """Let its owner into a directory; a link that stands there by now is left alone, and what it points to."""
    if not hasattr(os, "O_PATH"):
        os.chmod(name, mode, dir_fd=parent, follow_symlinks=False)
        return
    fd = os.open(name, os.O_PATH | os.O_DIRECTORY | SAFE, dir_fd=parent)
    try:
        os.chmod(f"/proc/self/fd/{fd}", mode)
    finally:
        os.close(fd)


def open_file(name: str, parent: int, open_up: bool) -> int:
    """A file to read; with `open_up` also one that its owner may not read. Its mode is the same afterwards."""
    try:
        return os.open(name, READ, dir_fd=parent)
    except PermissionError:
        if not open_up or not hasattr(os, "O_PATH"):
            raise
    path = os.open(name, os.O_PATH | SAFE, dir_fd=parent)
    try:
        info = os.fstat(path)
        if not stat.S_ISREG(info.st_mode) or info.st_nlink > 1:
            # Another name of this file may be outside the tree.
            raise PermissionError(13, os.strerror(13), name)
        same = f"/proc/self/fd/{path}"
        os.chmod(same, _mode(info) | 0o400)
        try:
            return os.open(same, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        finally:
            os.chmod(same, _mode(info))
    finally:
        os.close(path)


@contextmanager
def opened_past_modes(root: str, names: tuple[str, ...]) -> Iterator[int]:
    """A descriptor of a file or directory below `root`, also where an agent has shut the way to it."""
    with Descent(root, open_up=True) as descent:
        try:
            for name in names[:-1]:
                descent.enter(name)
            info = os.stat(names[-1], dir_fd=descent.fd, follow_symlinks=False)
            if stat.S_ISDIR(info.st_mode):
                descent.enter(names[-1])
                yield descent.fd
                return
            fd = open_file(names[-1], descent.fd, open_up=True)
        except PermissionError:
            raise
        except OSError:
            raise NotFound(f"There is no file {shown('/'.join(names))}") from None
        try:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode) or is_foreign(info, os.fstat(descent.fd).st_uid):
                raise NotFound(f"Not a file or directory: {shown('/'.join(names))}")
            yield fd
        finally:
            os.close(fd)


def _listed(fd: int) -> list[Found]:
    """What is in a directory, the first name last. Asked at once: later the descriptor may be another directory's."""
    with os.scandir(fd) as entries:
        found = [
            Found(
                entry.name,
                entry.is_dir(follow_symlinks=False),
                entry.is_symlink(),
                entry.is_file(follow_symlinks=False),
            )
            for entry in entries
        ]
    found.sort(reverse=True)
    return found


def _which(fd: int) -> tuple[int, int]:
    info = os.fstat(fd)
    return info.st_dev, info.st_ino


def _mode(info: os.stat_result) -> int:
    return stat.S_IMODE(info.st_mode)
