"""What an agent printed, read as one stream while the log grows and rotates."""

import fcntl
import os
import stat
import struct
import time
from threading import RLock
from typing import NamedTuple

from mas.store.files.descriptors import DIRECTORY, READ

# A reader is at most this many files behind; one that is further behind has lost output and gets to know it.
_KEPT = 3
# Stands for a file that came and went unseen: more than any reader would want to catch up with.
_MISSED = 64 << 20
_BLOCK = 1 << 20
# Asks whether any process holds a lock on any part of a file: `struct flock` of Linux.
_WOULD_LOCK = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)


class _File(NamedTuple):
    """One of the files: where its first byte stands in the stream, and which file it is."""

    base: int
    fd: int
    which: tuple[int, int]


class Recording:
    """The stream of one `agent-{id}.log`. Positions count bytes from the start of the file found first.

    The launcher renames a log that has become too long and begins another; a file that is open here is read to its
    end first, so nothing is missed. Safe to use from several threads.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._files: list[_File] = []
        self._lock = RLock()
        self._closed = False

    def end(self) -> int:
        """Where the stream ends now; 0 while there is none."""
        with self._lock:
            self._follow()
            return self._end_of(self._files[-1]) if self._files else 0

    def age(self) -> float:
        """For how long nothing has been written, in seconds."""
        with self._lock:
            self._follow()
            return time.time() - os.fstat(self._files[-1].fd).st_mtime if self._files else _MISSED

    def is_ahead(self) -> bool:
        """Whether more is written than the pane has been given; False if the kernel cannot say."""
        if not hasattr(fcntl, "F_OFD_GETLK"):
            return False
        with self._lock:
            self._follow()
            if not self._files:
                return False
            answer = fcntl.fcntl(self._files[-1].fd, fcntl.F_OFD_GETLK, _WOULD_LOCK)
            return bool(struct.unpack_from("h", answer)[0] != fcntl.F_UNLCK)

    def read(self, position: int, most: int) -> tuple[bytes, int]:
        """Up to `most` bytes from `position` on, and where the next ones begin."""
        with self._lock:
            data = self._read(position, most)
            if not data:
                # Whatever was written before the next file began is there once that file is.
                self._follow()
                data = self._read(position, most)
            if data or not self._files:
                return data, position + len(data)
            later = [file.base for file in self._files if file.base > position]
            if not later:
                # Somebody cut the file short.
                return b"", min(position, self._end_of(self._files[-1]))
            data = self._read(later[0], most)
            return data, later[0] + len(data)

    def last_of(self, words: tuple[bytes, ...], before: int, most: int) -> bytes | None:
        """Which of some words stands last in the stream before a position; not looked for further back than `most`."""
        overlap = max(map(len, words)) - 1
        end, stop = before, max(0, before - most)
        while before > stop:
            start = max(stop, before - _BLOCK)
            with self._lock:
                data = self._read(start, min(before + overlap, end) - start)
            found = max((data.rfind(word), word) for word in words)
            if found[0] >= 0:
                return found[1]
            before = start
        return None

    def close(self) -> None:
        """Let go of the files. Closing twice is fine."""
        with self._lock:
            self._closed = True
            for file in self._files:
                os.close(file.fd)
            self._files = []

    def _read(self, position: int, most: int) -> bytes:
        for file in reversed(self._files):
            if file.base <= position:
                return os.pread(file.fd, most, position - file.base)
        return b""

    def _end_of(self, file: _File) -> int:
        return file.base + os.fstat(file.fd).st_size

    def _open(self) -> int:
        directory = os.open(os.path.dirname(self._path), DIRECTORY)
        try:
            return os.open(os.path.basename(self._path), READ, dir_fd=directory)
        finally:
            os.close(directory)

    def _follow(self) -> None:
        """Open the file that is there now, unless it is the one we have."""
        if self._closed:
            return
        last = self._files[-1] if self._files else None
        try:
            if last and _which(os.stat(self._path, follow_symlinks=False)) == last.which:
                return
            fd = self._open()
        except OSError:
            # Not there yet, just renamed, or not a file of ours.
            return
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            os.close(fd)
            return
        base = 0
        if last:
            base = self._end_of(last) + (0 if _is(f"{self._path}.1", last.which) else _MISSED)
        self._files.append(_File(base, fd, _which(info)))
        while len(self._files) > _KEPT:
            os.close(self._files.pop(0).fd)


def _which(info: os.stat_result) -> tuple[int, int]:
    return info.st_dev, info.st_ino


def _is(path: str, which: tuple[int, int]) -> bool:
    try:
        return _which(os.stat(path, follow_symlinks=False)) == which
    except OSError:
        return False
