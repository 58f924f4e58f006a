"""Files that a program of an agent appends lines to, read from where the last look ended.

The agent can write there too, so all is bounded and nothing is believed: no link is followed, what is no file is not
opened, and of a file only so much is read. A file that was replaced, cut short or written again is read from its
beginning; of one that is too long only the end is. Half a line at the end waits for its other half.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from mas.model.errors import NotFound
from mas.store.files.descriptors import DIRECTORY
from mas.store.files.safe_open import opened_beneath

LARGEST = 32 << 20
LONGEST_LINE = 2 << 20
PACKED = ".zst"
# At most this many entries of directories are looked at, and this many files are read: those written last.
_MOST_ENTRIES = 10_000
_MOST_FILES = 64
_DEEPEST = 16
_BLOCK = 1 << 18
# This many bytes before the place where reading goes on must be the same as they were.
_REMEMBERED = 64


class FoundFile(NamedTuple):
    """A file, by the names that lead to it, and when it was last written."""

    names: tuple[str, ...]
    written: int
    which: tuple[int, int, int]
    """What differs once something else is there, or more: its inode, its size, and when it was written."""


def find_files(root: str, pattern: tuple[str, ...]) -> list[FoundFile]:
    """The files below `root` that match, the one written last at the end; `**` stands for any directories."""
    if {"", ".", ".."} & set(pattern):
        return []
    try:
        fd = os.open(root, DIRECTORY)
    except OSError:
        return []
    found: list[FoundFile] = []
    left = _MOST_ENTRIES
    # Directories that are still to be listed: their names, and what is left of the pattern.
    waiting: list[tuple[tuple[str, ...], tuple[str, ...]]] = [((), pattern)]
    try:
        while waiting and left > 0:
            names, parts = waiting.pop()
            for name, info in _entries(fd, names, parts[0], left):
                left -= 1
                for rest in _after(name, parts):
                    if stat.S_ISDIR(info.st_mode) and rest and len(names) < _DEEPEST:
                        waiting.append(((*names, name), rest))
                    elif stat.S_ISREG(info.st_mode) and not rest:
                        which = info.st_ino, info.st_size, info.st_mtime_ns
                        found.append(FoundFile((*names, name), info.st_mtime_ns, which))
    finally:
        os.close(fd)
    return sorted(set(found), key=lambda file: (file.written, file.names))[-_MOST_FILES:]


def _entries(root: int, names: tuple[str, ...], part: str, most: int) -> Iterator[tuple[str, os.stat_result]]:
    """What may match in a directory below an open one; nothing where a name on the way is no directory."""
    fd = os.dup(root)
    try:
        for name in names:
            inner = os.open(name, DIRECTORY, dir_fd=fd)
            os.close(fd)
            fd = inner
        if not any(sign in part for sign in "*?["):
            yield part, os.stat(part, dir_fd=fd, follow_symlinks=False)
            return
        with os.scandir(fd) as entries:
            for _, entry in zip(range(most), entries, strict=False):
                try:
                    yield entry.name, entry.stat(follow_symlinks=False)
                except OSError:
                    continue
    except OSError:
        return
    finally:
        os.close(fd)


def _after(name: str, parts: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """What of a pattern is left once `name` has matched its beginning."""
    part, rest = parts[0], parts[1:]
    if part == "**":
        if not name.startswith("."):
            yield parts
        if rest:
            yield from _after(name, rest)
    elif fnmatchcase(name, part) and (not name.startswith(".") or part.startswith(".")):
        yield rest


class AppendedFile:
    """One such file. `is_new` after a look: what was read before does not count any more."""

    def __init__(self, root: str, names: tuple[str, ...], largest: int = LARGEST) -> None:
        self._root = root
        self._names = names
        self._largest = largest
        self._forget()
        self.is_new = False
        self.is_cut = False
        """Whether more was written than is read."""

    def lines(self) -> Iterator[bytes]:
        """Every whole line that was added since the last look, without its line feed."""
        self.is_new = False
        try:
            with opened_beneath(self._root, self._names) as fd:
                info = os.fstat(fd)
                if not stat.S_ISREG(info.st_mode):
                    return
                if self._names[-1].endswith(PACKED):
                    yield from self._unpacked(fd, info)
                else:
                    yield from self._added(fd, info)
        except (NotFound, OSError):
            return

    def _forget(self) -> None:
        self._file = (0, 0)
        self._position = 0
        self._before = b""
        self._rest = b""
        self._skips = False

    def _added(self, fd: int, info: os.stat_result) -> Iterator[bytes]:
        if not self._goes_on(fd, info):
            self.is_new = self._position > 0
            self._forget()
            self._file = info.st_dev, info.st_ino
            self.is_cut = False
        end = info.st_size
        if end - self._position > self._largest:
            # Of what is between nothing is known, not even where a line begins.
            self.is_cut = True
            self._position = end - self._largest
            self._rest, self._skips = b"", True
        while self._position < end:
            block = os.pread(fd, min(_BLOCK, end - self._position), self._position)
            if not block:
                return
            self._position += len(block)
            self._before = (self._before + block)[-_REMEMBERED:]
            yield from self._split(block)

    def _goes_on(self, fd: int, info: os.stat_result) -> bool:
        """Whether this is the file that was read, with nothing but more at its end."""
        if (info.st_dev, info.st_ino) != self._file or info.st_size < self._position:
            return False
        before = len(self._before)
        return os.pread(fd, before, self._position - before) == self._before

    def _split(self, block: bytes) -> Iterator[bytes]:
        first, *others = block.split(b"\n")
        self._rest += first
        for line in others:
            if self._skips or len(self._rest) > LONGEST_LINE:
                self.is_cut = self.is_cut or not self._skips
                self._skips = False
            else:
                yield self._rest
            self._rest = line
        if len(self._rest) > LONGEST_LINE:
            self._rest, self._skips, self.is_cut = b"", True, True
        elif self._skips:
            self._rest = b""

    def _unpacked(self, fd: int, info: os.stat_result) -> Iterator[bytes]:
        """The lines of a file that was compressed; none is added to it, so it is read once."""
        file = info.st_ino, info.st_mtime_ns
        if file == self._file:
            return
        from zstandard import ZstdDecompressor, ZstdError

        self.is_new = self._file != (0, 0)
        self._forget()
        self._file, self.is_cut, left = file, False, self._largest
        unpacker = ZstdDecompressor(max_window_size=1 << 27)
        with open(os.dup(fd), "rb") as packed, unpacker.stream_reader(packed) as reader:
            try:
                while left > 0 and (block := reader.read(min(_BLOCK, left))):
                    left -= len(block)
                    yield from self._split(block)
            except (ZstdError, MemoryError):
                self.is_cut = True
        self.is_cut = self.is_cut or left <= 0
