"""Archives: a stopped session as one compressed file, proven readable before the original may go."""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
import tarfile
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from mas.model.errors import Corrupt
from mas.model.ids import SessionId, is_session_id
from mas.store.atomic import make_directory, remove_file, sync_directory, write_atomic
from mas.store.layout import PRIVATE_DIR, Layout
from mas.store.tree import Progress, sync_tree, usage, walk

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_LEVEL = 3


class ArchiveInfo(NamedTuple):
    """What is known of an archived session without opening the archive."""

    session_id: SessionId
    created_at: str
    archived_at: str
    name: str | None
    agents: int
    size: int


class _Fact(NamedTuple):
    """What one member must read back as."""

    kind: str
    mode: int
    content: str


class Archives:
    """The archived sessions of one workspace: `{uuid}.tar.zst` and a note beside it for listings."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def path(self, session_id: str) -> str:
        return os.path.join(self._layout.archive, f"{session_id}.tar.zst")

    def has(self, session_id: str) -> bool:
        return os.path.isfile(self.path(session_id))

    def pack(self, info: ArchiveInfo, progress: Progress | None) -> ArchiveInfo:
        """Write the archive of a session, read it back, and only then give it its name."""
        source = self._layout.session(info.session_id).root
        half = self.path(info.session_id) + ".tmp"
        facts = _write(source, half, progress)
        _verify(half, facts)
        packed = info._replace(size=os.stat(half).st_size)
        write_atomic(self._note(info.session_id), (json.dumps(packed._asdict()) + "\n").encode())
        os.rename(half, self.path(info.session_id))
        sync_directory(self._layout.archive)
        return packed

    def make_room(self, session_id: SessionId) -> None:
        """Make the directory to unpack into; `FileExistsError` if there is one."""
        make_directory(self._layout.session(session_id).root, PRIVATE_DIR)

    def unpack(self, session_id: SessionId, progress: Progress | None) -> None:
        """Bring the session's files back; `Corrupt` for an archive MAS would not have written."""
        from zstandard import ZstdError

        target = self._layout.session(session_id).root
        try:
            _extract(self.path(session_id), target, progress)
        except (tarfile.TarError, ValueError, EOFError, ZstdError) as error:
            raise Corrupt(self.path(session_id), str(error)) from None
        sync_tree(target)

    def drop_half(self, session_id: str) -> None:
        """Remove what an interrupted `pack` left."""
        remove_file(self.path(session_id) + ".tmp")
        if not self.has(session_id):
            remove_file(self._note(session_id))

    def remove(self, session_id: str) -> None:
        remove_file(self.path(session_id))
        remove_file(self._note(session_id))

    def list(self) -> Iterator[ArchiveInfo]:
        """All archives; one whose note is lost is told from the file alone."""
        for name in sorted(os.listdir(self._layout.archive)):
            session_id, dot, kind = name.partition(".")
            if kind == "tar.zst" and dot and is_session_id(session_id):
                yield self._info(SessionId(session_id))

    def _info(self, session_id: SessionId) -> ArchiveInfo:
        try:
            with open(self._note(session_id), "rb") as file:
                return ArchiveInfo(**json.loads(file.read()))
        except (OSError, ValueError, TypeError):
            size = os.stat(self.path(session_id)).st_size
            return ArchiveInfo(session_id, "", "", None, 0, size)

    def _note(self, session_id: str) -> str:
        return os.path.join(self._layout.archive, f"{session_id}.json")


def _write(source: str, target: str, progress: Progress | None) -> dict[str, _Fact]:
    """Pack `source` into `target`; answers what must be found in it."""
    from zstandard import ZstdCompressor

    facts: dict[str, _Fact] = {}
    total = usage(source).size if progress else 0
    done = 0
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as raw:
        with (
            ZstdCompressor(level=_LEVEL).stream_writer(raw, closefd=False) as packed,
            tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
        ):
            for entry in walk(source):
                member = _member(entry.path, entry.info)
                content = ""
                if member.issym():
                    content = member.linkname = os.readlink(entry.name, dir_fd=entry.parent)
                    tar.addfile(member)
                elif member.isreg():
                    with open(os.open(entry.name, _READ, dir_fd=entry.parent), "rb") as file:
                        hashing = _Hashing(file)
                        tar.addfile(member, hashing)  # type: ignore[arg-type]
                        content = hashing.digest()
                    done += member.size
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


def _member(path: str, info: os.stat_result) -> tarfile.TarInfo:
    member = tarfile.TarInfo(path)
    member.mode = stat.S_IMODE(info.st_mode) & 0o777
    member.mtime = info.st_mtime
    kinds = {stat.S_IFDIR: tarfile.DIRTYPE, stat.S_IFLNK: tarfile.SYMTYPE, stat.S_IFREG: tarfile.REGTYPE}
    # Two names of one file are packed as two files: nothing outside the tree can be meant by a link.
    member.type = kinds.get(stat.S_IFMT(info.st_mode), tarfile.FIFOTYPE)
    member.size = info.st_size if member.isreg() else 0
    return member


def _verify(path: str, facts: dict[str, _Fact]) -> None:
    """Read the whole archive back and compare it with what was put in."""
    found = {}
    with _opened(path) as tar:
        for member in tar:
            content = member.linkname
            if member.isreg():
                content = _digest(tar.extractfile(member))
            found[member.name] = _Fact(_kind(member), member.mode, content)
    if found != facts:
        raise Corrupt(path, "it does not read back as it was written")


def _extract(path: str, target: str, progress: Progress | None) -> None:
    """Unpack with links made last, so that no member can be written through one."""
    links: list[tarfile.TarInfo] = []
    directories: list[tarfile.TarInfo] = []
    done = 0
    with _opened(path) as tar:
        for member in tar:
            name = _beneath(member.name)
            there = os.path.join(target, name)
            if member.isdir():
                os.mkdir(there, 0o700)
                directories.append(member)
            elif member.issym():
                links.append(member)
            elif member.isreg():
                _extract_file(tar.extractfile(member), there, member)
                done += member.size
                if progress:
                    progress(done, done)
            else:
                raise ValueError(f"{name} is neither a file, a directory nor a link")
    for member in links:
        os.symlink(member.linkname, os.path.join(target, _beneath(member.name)))
    for member in reversed(directories):
        there = os.path.join(target, member.name)
        os.utime(there, (member.mtime, member.mtime))
        os.chmod(there, member.mode & 0o777)


def _extract_file(content: IO[bytes] | None, path: str, member: tarfile.TarInfo) -> None:
    if content is None:
        raise ValueError(f"{member.name} has no content")
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:
        while data := content.read(1 << 20):
            file.write(data)
        os.fchmod(fd, member.mode & 0o777)
    os.utime(path, (member.mtime, member.mtime))


def _beneath(name: str) -> str:
    parts = name.split("/")
    if name.startswith("/") or "" in parts or "." in parts or ".." in parts or "\0" in name:
        raise ValueError(f"{name!r} is not a path below the session")
    return name


class _opened:  # noqa: N801 - a context manager used like a function
    """The tar stream inside a compressed archive."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> tarfile.TarFile:
        from zstandard import ZstdDecompressor

        self._raw = open(self._path, "rb")
        self._plain = ZstdDecompressor().stream_reader(self._raw)
        self._tar = tarfile.open(fileobj=io.BufferedReader(self._plain, 1 << 20), mode="r|")
        return self._tar

    def __exit__(self, *_: object) -> None:
        self._tar.close()
        self._raw.close()


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


def _digest(file: Any) -> str:  # noqa: ANN401 - a tar member
    return hashlib.file_digest(file, "sha256").hexdigest()


def _kind(member: tarfile.TarInfo) -> str:
    return "directory" if member.isdir() else "link" if member.issym() else "file"
