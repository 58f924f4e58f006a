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

from mas.model.errors import BadInput, Corrupt, DiskFull
from mas.model.ids import shown
from mas.store.files.descriptors import NEW, READ, SAFE
from mas.store.files.safe_open import is_foreign
from mas.store.files.tree import Progress, parts_of, usage, walk

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
# No path is longer, for the system calls that unpack it.
_LONGEST_PATH = 4096
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


def pack_tree(source: str, target: str, progress: Progress | None) -> int:
    """Pack the directory `source` into the file `target`, then read that back; `Corrupt` if it differs.

    Answers how many bytes it holds, before they were compressed.
    """
    facts = _write(source, target, progress)
    try:
        found, held = _contents(target)
    except _UNREADABLE as error:
        raise Corrupt(target, str(error)) from None
    if found != facts:
        raise Corrupt(target, "verifying the archive failed: it does not match the session")
    return held


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


def _write(source: str, target: str, progress: Progress | None) -> dict[str, _Fact]:
    """Pack `source` into `target`; returns what must be found in it."""
    facts: dict[str, _Fact] = {}
    total = usage(source).size if progress else 0
    done = 0
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | SAFE, 0o600)
    with open(fd, "wb") as raw:
        with (
            ZstdCompressor(level=_LEVEL, write_checksum=True).stream_writer(raw, closefd=False) as packed,
            tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
        ):
            for entry in walk(source):
                if len(os.fsencode(os.path.join(source, entry.path))) >= _LONGEST_PATH:
                    raise BadInput(f"This path is too long for an archive: {shown(entry.path[:80])}…")
                member = _member(entry.path, entry.info)
                content = ""
                if member.issym():
                    content = member.linkname = os.readlink(entry.name, dir_fd=entry.parent)
                    tar.addfile(member)
                elif member.isreg():
                    owner = os.fstat(entry.parent).st_uid
                    with open(os.open(entry.name, READ, dir_fd=entry.parent), "rb") as file:
                        info = os.fstat(file.fileno())
                        if not stat.S_ISREG(info.st_mode) or is_foreign(info, owner):
                            continue
                        content = _add_file(tar, member, file, info)
                    done += info.st_size
                    if progress:
                        progress(done, total)
                elif member.isdir():
                    tar.addfile(member)
                else:
                    continue
                facts[entry.path] = _Fact(_kind(member), member.mode, content)
        raw.flush()
        os.fsync(raw.fileno())
    return facts


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
            found[member.name] = _Fact(_kind(member), member.mode, content)
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
    with _opened(path, held) as archive:
        for member in archive.members():
            name = _beneath(member.name)
            there = os.path.join(target, name)
            if member.isdir():
                os.mkdir(there, 0o700)
                directories.append(member)
            elif member.issym():
                links.append(member)
            elif member.isreg():
                _extract_file(archive.tar, there, member)
                done += member.size
                if progress:
                    progress(done, done)
            else:
                raise ValueError(f"{name} is neither a file, a directory nor a link")
    # The deepest first: a link can then not stand in the path of another.
    for member in sorted(links, key=lambda link: link.name.count("/"), reverse=True):
        os.symlink(member.linkname, os.path.join(target, _beneath(member.name)))
    for member in reversed(directories):
        there = os.path.join(target, member.name)
        os.utime(there, (member.mtime, member.mtime))
        os.chmod(there, member.mode & 0o777)


def _extract_file(tar: tarfile.TarFile, path: str, member: tarfile.TarInfo) -> None:
    fd = os.open(path, os.O_WRONLY | NEW, 0o600)
    with open(fd, "wb") as file:
        end = 0
        for start, data in _data(tar, member):
            if start != end:
                file.seek(start)
            file.write(data)
            end = start + len(data)
        if end != member.size:
            file.truncate(member.size)
        os.fchmod(fd, member.mode & 0o777)
    os.utime(path, (member.mtime, member.mtime))


def _beneath(name: str) -> str:
    parts = name.split("/")
    if name.startswith("/") or "" in parts or "." in parts or ".." in parts or "\0" in name:
        raise ValueError(f"{name!r} is not a path below the session")
    return name


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


def _digest(tar: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    found = hashlib.sha256(repr(member.sparse).encode() if member.sparse is not None else b"")
    for _, data in _data(tar, member):
        found.update(data)
    return found.hexdigest()


def _kind(member: tarfile.TarInfo) -> str:
    return "directory" if member.isdir() else "link" if member.issym() else "file"
