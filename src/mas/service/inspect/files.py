"""Files: what is in a session's directory, for people to look at."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from typing import TypeVar

from mas.model.errors import BadInput, NoSession
from mas.model.files import FileEntry, FileListing, FilePart
from mas.model.ids import SessionId, shown
from mas.service.world import World
from mas.store.files.descent import opened_past_modes
from mas.store.files.safe_open import opened_beneath, parse_path

SHOWN = ("unit", "workflows", "logs")
TEMPLATES = ("unit", "workflows")
_MOST_ENTRIES = 10_000
LARGEST_PART = 4 << 20
Seen = TypeVar("Seen")


def list_files(world: World, session_id: SessionId, path: str) -> FileListing:
    """The entries of a directory of the session, by name."""
    names = _checked(world, session_id, path)
    if not names:
        here = (FileEntry(name, "directory", 0, "") for name in SHOWN)
        return FileListing("", tuple(here))
    return _of_agents(world.layout.session(session_id).root, names, lambda fd: _listed(fd, names))


def read_file_part(world: World, session_id: SessionId, path: str, offset: int, most: int) -> FilePart:
    """Up to `most` bytes of a file from `offset` on, and how large it is."""
    names = _checked(world, session_id, path)
    if not names:
        raise BadInput("No file given")
    return _of_agents(world.layout.session(session_id).root, names, lambda fd: _part(fd, names, offset, most))


def read_template_part(world: World, path: str, offset: int, most: int) -> FilePart:
    """The same of a file among those that new sessions are made with."""
    names = _among(TEMPLATES, path)
    if not names:
        raise BadInput("No file given")
    with opened_beneath(world.layout.root, names) as fd:
        return _part(fd, names, offset, most)


def _of_agents(root: str, names: tuple[str, ...], look: Callable[[int], Seen]) -> Seen:
    """What `look` finds in an open file or directory of a session, also where an agent has shut the way to it."""
    try:
        with opened_beneath(root, names) as fd:
            return look(fd)
    except PermissionError:
        with opened_past_modes(root, names) as fd:
            return look(fd)


def _listed(fd: int, names: tuple[str, ...]) -> FileListing:
    if not stat.S_ISDIR(os.fstat(fd).st_mode):
        raise BadInput(f"This is a file, not a directory: {shown('/'.join(names))}")
    with os.scandir(fd) as found:
        entries = [_entry(entry) for _, entry in zip(range(_MOST_ENTRIES), found, strict=False)]
    return FileListing("/".join(names), tuple(sorted(entry for entry in entries if entry is not None)))


def _part(fd: int, names: tuple[str, ...], offset: int, most: int) -> FilePart:
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode):
        raise BadInput(f"This is a directory, not a file: {shown('/'.join(names))}")
    return FilePart("/".join(names), info.st_size, os.pread(fd, min(most, LARGEST_PART), offset))


def _checked(world: World, session_id: SessionId, path: str) -> tuple[str, ...]:
    if not world.layout.is_session(session_id):
        raise NoSession(session_id)
    return _among(SHOWN, path)


def _among(known: tuple[str, ...], path: str) -> tuple[str, ...]:
    names = parse_path(path)
    if names and names[0] not in known:
        raise BadInput(f"Only files in these directories are shown, not {shown(path)}: {', '.join(known)})")
    return names


def _entry(entry: os.DirEntry[str]) -> FileEntry | None:
    """What is there; None if it has gone since it was found."""
    try:
        info = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    kinds = {stat.S_IFDIR: "directory", stat.S_IFREG: "file", stat.S_IFLNK: "link"}
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(info.st_mtime))
    return FileEntry(entry.name, kinds.get(stat.S_IFMT(info.st_mode), "other"), info.st_size, at)
