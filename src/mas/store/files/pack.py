"""Packing: a directory tree as one compressed tar file, and back, proving what was written.

Kept apart from the archives themselves because `tarfile` and `hashlib` cost more than a whole listing.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from zstandard import ZstdCompressor, ZstdDecompressor, ZstdError

from mas.model.errors import Corrupt, DiskFull
from mas.model.ids import shown
from mas.store.files.atomic import Progress
from mas.store.files.descent import Cursor, Descent, Found, open_file
from mas.store.files.descriptors import DIRECTORY, NEW, SAFE
from mas.store.files.safe_open import is_foreign
from mas.store.files.tree import parts_of, usage

_LEVEL = 3
_TAR_BLOCK = 512
# More than this, and the length of what is packed would stand where that of the file does.
_LARGEST_SPARSE = 1 << 32
# More than any name, link or list of parts takes in the headers of a member; they are read into memory at once.
_LONGEST_HEADER = 1 << 20
_HEADERS = (
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK,
)  # fmt: skip
# The compressor that packs looks back 2 MiB; one that makes us remember far more was another.
_LARGEST_WINDOW = 1 << 27
# Longer paths are left out: each member has its whole path in the archive, so a deep tree grows with its square.
_LONGEST_PATH = 1 << 18
# How many things that were left out are listed by name.
_MOST_LEFT_OUT = 100
# The errors of the disk for a member that no file can be.
_NO_FILE = {errno.ENAMETOOLONG, errno.EFBIG, errno.EINVAL, errno.ELOOP}
# The last four are what members that stand in each other's way, or in nothing, come to.
_UNREADABLE = (
    tarfile.TarError, ZstdError, ValueError, EOFError, OverflowError,
    FileExistsError, FileNotFoundError, IsADirectoryError, NotADirectoryError,
)  # fmt: skip


class _Fact(NamedTuple):
    """What one member must read back as."""

    kind: str
    mode: int
    content: str


class Packed(NamedTuple):
    """How many bytes an archive holds before they were compressed, and what could not be put into it."""

    held: int
    left_out: tuple[str, ...]


def pack_tree(source: str, target: str, progress: Progress | None) -> Packed:
    """Pack the directory `source` into the file `target`, then read that back; `Corrupt` if it differs.

    What agents have shut is opened for as long as it is read.
    """
    packing = _Packing(source, progress)
    facts = packing.write(target)
    try:
        found, held = _contents(target)
    except _UNREADABLE as error:
        raise Corrupt(target, str(error)) from None
    if found != facts:
        raise Corrupt(target, "verifying the archive failed: it does not match the session")
    return Packed(held, tuple(packing.left_out))


def unpack_tree(path: str, target: str, progress: Progress | None, held: int | None = None) -> None:
    """Unpack `path` into the empty directory `target`; `Corrupt` for what `pack_tree` would not have written.

    It is read no further than the `held` bytes it was packed of. If those are unknown they are counted first, and
    either way nothing is written that the disk has no room for.
    """
    try:
        free = os.statvfs(target)
        room = free.f_bavail * free.f_frsize
        if held is None:
            held = _length(path, room)
        if held > room:
            raise DiskFull(f"{path} needs {held} bytes, but the disk has only {room} free", "df -h")
        _extract(path, target, progress, held)
    except _UNREADABLE as error:
        raise Corrupt(path, str(error)) from None
    except OSError as error:
        if error.errno not in _NO_FILE:
            raise
        raise Corrupt(path, f"{shown(os.path.basename(error.filename or ''))}: {error.strerror}") from None


class _Packing:
    """A tree on its way into an archive."""

    def __init__(self, source: str, progress: Progress | None) -> None:
        self._source = source
        self._progress = progress
        self._total = usage(source, open_up=True).size if progress else 0
        self._done = 0
        self._facts: dict[str, _Fact] = {}
        self.left_out: list[str] = []

    def write(self, target: str) -> dict[str, _Fact]:
        """Pack all of it into `target`; returns what must be found there."""
        fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | SAFE, 0o600)
        with open(fd, "wb") as raw:
            with (
                ZstdCompressor(level=_LEVEL, write_checksum=True).stream_writer(raw, closefd=False) as packed,
                tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
                Descent(self._source, open_up=True) as descent,
            ):
                while (found := descent.next()) is not None:
                    self._take(tar, descent, found)
            raw.flush()
            os.fsync(raw.fileno())
        for path in descent.lost:
            self._leave_out(path)
        return self._facts

    def _take(self, tar: tarfile.TarFile, descent: Descent, found: Found) -> None:
        if descent.length(found.name) > _LONGEST_PATH:
            self._leave_out(descent.shown_path(found.name))
            return
        try:
            self._add(tar, descent, found.name)
        except (FileNotFoundError, NotADirectoryError):
            return
        except PermissionError:
            self._leave_out(descent.shown_path(found.name))

    def _leave_out(self, path: str) -> None:
        if len(self.left_out) < _MOST_LEFT_OUT:
            self.left_out.append(path)

    def _add(self, tar: tarfile.TarFile, descent: Descent, name: str) -> None:
        path, parent = descent.path(name), descent.fd
        info = os.stat(name, dir_fd=parent, follow_symlinks=False)
        member = _member(path, info)
        content = ""
        if member.isdir():
            descent.enter(name)
            tar.addfile(member)
        elif member.issym():
            content = member.linkname = os.readlink(name, dir_fd=parent)
            tar.addfile(member)
        elif member.isreg():
            with open(open_file(name, parent, open_up=True), "rb") as file:
                info = os.fstat(file.fileno())
                if not stat.S_ISREG(info.st_mode) or is_foreign(info, os.fstat(parent).st_uid):
                    return
                content = _add_file(tar, member, file, info)
            self._done += info.st_size
            if self._progress:
                self._progress(self._done, self._total)
        else:
            return
        self._facts[_key(path)] = _Fact(_kind(member), member.mode, content)


def _add_file(tar: tarfile.TarFile, member: tarfile.TarInfo, file: IO[bytes], info: os.stat_result) -> str:
    """Pack one open file; returns the digest of its content. Holes of a sparse file are not packed, as in GNU tar."""
    parts = list(parts_of(file.fileno(), info))
    held = sum(length for _, length in parts)
    if info.st_blocks * 512 >= info.st_size or held > _LARGEST_SPARSE:
        file.seek(0)
        hashing = _Hashing(file)
        member.size = info.st_size
        tar.addfile(member, hashing)  # type: ignore[arg-type]
        return hashing.digest()
    parts.append((info.st_size, 0))
    numbers = "".join(f"{number}\n" for number in (len(parts), *(number for part in parts for number in part)))
    head = numbers.encode().ljust(-(-len(numbers) // _TAR_BLOCK) * _TAR_BLOCK, b"\0")
    member.pax_headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.realsize": str(info.st_size),
    }
    member.size = len(head) + held
    sparse = _Sparse(head, file, parts)
    tar.addfile(member, sparse)  # type: ignore[arg-type]
    return sparse.digest()


def _data(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[tuple[int, bytes]]:
    """What a member holds, piece by piece, and where in the file each piece is."""
    parts: Any = member.sparse
    stream: Any = tar.fileobj if parts is not None else tar.extractfile(member)
    if stream is None:
        raise ValueError(f"{member.name} has no content")
    if parts is None:
        parts = [(0, member.size)]
    else:
        stream.seek(member.offset_data)
    for start, length in parts:
        if start < 0 or length < 0 or start + length > member.size:
            raise ValueError(f"{member.name} holds more than it is long")
        while length:
            data = stream.read(min(length, 1 << 20))
            if not data:
                raise ValueError(f"{member.name} is cut off")
            yield start, data
            start += len(data)
            length -= len(data)


def _member(path: str, info: os.stat_result) -> tarfile.TarInfo:
    member = tarfile.TarInfo(path)
    member.mode = stat.S_IMODE(info.st_mode) & 0o777
    member.mtime = info.st_mtime
    kinds = {stat.S_IFDIR: tarfile.DIRTYPE, stat.S_IFLNK: tarfile.SYMTYPE, stat.S_IFREG: tarfile.REGTYPE}
    # Two names of one file are packed as two files: nothing outside the tree can be meant by a link.
    member.type = kinds.get(stat.S_IFMT(info.st_mode), tarfile.FIFOTYPE)
    member.size = info.st_size if member.isreg() else 0
    return member


def _contents(path: str) -> tuple[dict[str, _Fact], int]:
    """What a whole archive reads back as, and how long it is uncompressed."""
    found = {}
    with _opened(path) as archive:
        for member in archive.members():
            content = _digest(archive.tar, member) if member.isreg() else member.linkname
            found[_key(member.name)] = _Fact(_kind(member), member.mode, content)
    return found, archive.plain.length


def _length(path: str, most: int) -> int:
    """How long an archive is uncompressed; `DiskFull` as soon as that is more than `most`."""
    with open(path, "rb") as raw:
        plain = _Plain(raw, None)
        while plain.read(1 << 20):
            if plain.length > most:
                raise DiskFull(f"{path} holds more than the {most} bytes the disk has room for", "df -h")
        return plain.length


def _extract(path: str, target: str, progress: Progress | None, held: int) -> None:
    """Unpack with links made last, so that no member can be written through one."""
    links: list[tarfile.TarInfo] = []
    directories: list[tarfile.TarInfo] = []
    done = 0
    with _opened(path, held) as archive, Cursor(target) as there:
        for member in archive.members():
            name = _go_to(there, member)
            if member.isdir():
                os.mkdir(name, 0o700, dir_fd=there.fd)
                directories.append(member)
            elif member.issym():
                links.append(member)
            elif member.isreg():
                _extract_file(archive.tar, there.fd, name, member)
                done += member.size
                if progress:
                    progress(done, done)
            else:
                raise ValueError(f"{shown(member.name)} is neither a file, a directory nor a link")
        # The deepest first: a link can then not stand in the path of another.
        for member in sorted(links, key=lambda link: link.name.count("/"), reverse=True):
            os.symlink(member.linkname, _go_to(there, member), dir_fd=there.fd)
        for member in reversed(directories):
            fd = os.open(_go_to(there, member), DIRECTORY, dir_fd=there.fd)
            try:
                os.utime(fd, (member.mtime, member.mtime))
                os.fchmod(fd, member.mode & 0o777)
            finally:
                os.close(fd)


def _go_to(there: Cursor, member: tarfile.TarInfo) -> str:
    """Be in the directory of a member; returns its name there."""
    *above, name = _beneath(member.name)
    there.go(above)
    return name


def _extract_file(tar: tarfile.TarFile, parent: int, name: str, member: tarfile.TarInfo) -> None:
    fd = os.open(name, os.O_WRONLY | NEW, 0o600, dir_fd=parent)
    with open(fd, "wb") as file:
        end = 0
        for start, data in _data(tar, member):
            if start != end:
                file.seek(start)
            file.write(data)
            end = start + len(data)
        if end != member.size:
            file.truncate(member.size)
        file.flush()
        os.fchmod(fd, member.mode & 0o777)
        os.utime(fd, (member.mtime, member.mtime))


def _beneath(name: str) -> list[str]:
    """The names that a member's path is made of."""
    parts = name.split("/")
    if name.startswith("/") or "" in parts or "." in parts or ".." in parts or "\0" in name:
        raise ValueError(f"{name!r} is not a path below the session")
    return parts


class _Member(tarfile.TarInfo):
    """A member whose damaged header is an error, where `tarfile` would take it for the end of the archive."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Member:
        member = super().frombuf(buf, encoding, errors)
        if member.type in _HEADERS and member.size > _LONGEST_HEADER:
            raise tarfile.ReadError(f"a header of {member.size} bytes")
        return member

    @classmethod
    def fromtarfile(cls, tar: tarfile.TarFile) -> _Member:
        try:
            return super().fromtarfile(tar)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(str(error)) from None


class _opened:  # noqa: N801 - a context manager used like a function
    """The tar stream inside a compressed archive, which is read to its end: there is the checksum."""

    def __init__(self, path: str, most: int | None = None) -> None:
        self._path = path
        self._most = most

    def __enter__(self) -> _opened:
        self._raw = open(self._path, "rb")
        self.plain = _Plain(self._raw, self._most)
        try:
            self.tar = tarfile.open(fileobj=io.BufferedReader(self.plain, 1 << 20), mode="r|", tarinfo=_Member)
        except BaseException:
            self._raw.close()
            raise
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        with self._raw, self.tar:
            while not failed and self.plain.read(1 << 20):
                pass

    def members(self) -> Iterator[tarfile.TarInfo]:
        """All members, each forgotten by the time of the next: there may be millions."""
        while member := self.tar.next():
            yield member
            self.tar.members.clear()  # type: ignore[attr-defined]


class _Plain(io.RawIOBase):
    """What was compressed, and how much of it was read; `ValueError` past the most that it may be."""

    def __init__(self, raw: IO[bytes], most: int | None) -> None:
        self._stream = ZstdDecompressor(max_window_size=_LARGEST_WINDOW).stream_reader(raw, closefd=False)
        self._most = most
        self.length = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - anything that can be written to
        count = self._stream.readinto(buffer)
        self.length += count
        if self._most is not None and self.length > self._most:
            raise ValueError(f"it holds more than the {self._most} bytes that were packed")
        return int(count)


class _Hashing:
    """A file that remembers the digest of what was read from it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._hash = hashlib.sha256()

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self._hash.update(data)
        return data

    def digest(self) -> str:
        return self._hash.hexdigest()


class _Sparse:
    """What is packed of a sparse file: where it holds something, and that."""

    def __init__(self, head: bytes, file: IO[bytes], parts: list[tuple[int, int]]) -> None:
        self._waiting = head
        self._blocks = (data for start, length in parts for data in _blocks(file, start, length))
        self._hash = hashlib.sha256(repr(parts).encode())

    def read(self, size: int) -> bytes:
        while len(self._waiting) < size and (data := next(self._blocks, b"")):
            self._hash.update(data)
            self._waiting += data
        data, self._waiting = self._waiting[:size], self._waiting[size:]
        return data

    def digest(self) -> str:
        return self._hash.hexdigest()


def _blocks(file: IO[bytes], start: int, left: int) -> Iterator[bytes]:
    """So many bytes of a file; fewer where it has become shorter."""
    file.seek(start)
    while left and (data := file.read(min(left, 1 << 20))):
        left -= len(data)
        yield data


def _key(path: str) -> str:
    """What a path is remembered by: itself, or its digest where thousands of such would fill the memory."""
    return path if len(path) <= 1024 else hashlib.sha256(os.fsencode(path)).hexdigest()


def _digest(tar: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    found = hashlib.sha256(repr(member.sparse).encode() if member.sparse is not None else b"")
    for _, data in _data(tar, member):
        found.update(data)
    return found.hexdigest()


def _kind(member: tarfile.TarInfo) -> str:
    return "directory" if member.isdir() else "link" if member.issym() else "file"
