"""Archives: a stopped session as one compressed file, proven readable before the original is removed."""

import json
import os
import time
from collections.abc import Iterator
from typing import NamedTuple

from mas.model.fields import parse_json, parse_record
from mas.model.ids import SessionId, is_session_id
from mas.store.files.atomic import Progress, make_directory, remove_unfinished, sync_directory, write_atomic
from mas.store.files.descriptors import remove_file
from mas.store.layout import PRIVATE_DIR, Layout


class ArchiveInfo(NamedTuple):
    """What is known of an archived session without opening the archive."""

    session_id: SessionId
    created_at: str
    archived_at: str
    name: str | None
    agents: int
    size: int
    held: int | None = None
    """How many bytes were packed, where that is known."""


class Archives:
    """The archived sessions of one workspace: `{uuid}.tar.zst` and a note beside it for listings."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def path(self, session_id: str) -> str:
        return os.path.join(self._layout.archive, f"{session_id}.tar.zst")

    def has(self, session_id: str) -> bool:
        return os.path.isfile(self.path(session_id))

    def pack(self, info: ArchiveInfo, progress: Progress | None) -> tuple[str, ...]:
        """Write the archive of a session, read it back, and only then give it its name; returns what was left out."""
        from mas.store.files.pack import pack_tree
        from mas.store.files.tree import remove_tree

        half = self.path(info.session_id) + ".tmp"
        # What agents kept for a moment is not worth keeping, and would be gone at the next start.
        remove_tree(self._layout.session(info.session_id).temporary)
        # Launch files have the keys that programs were started with, the network's perhaps the password of a proxy;
        # each start writes them again.
        for name in ("launch", "network"):
            remove_tree(self._layout.session(info.session_id).at(".mas", name))
        packed = pack_tree(self._layout.session(info.session_id).root, half, progress)
        noted = info._replace(size=os.stat(half).st_size, held=packed.held)
        write_atomic(self._note(info.session_id), (json.dumps(noted._asdict()) + "\n").encode())
        os.rename(half, self.path(info.session_id))
        sync_directory(self._layout.archive)
        return packed.left_out

    def make_room(self, session_id: SessionId) -> None:
        """Make the directory to unpack into; `FileExistsError` if there is one."""
        make_directory(self._layout.session(session_id).root, PRIVATE_DIR)

    def unpack(self, session_id: SessionId, progress: Progress | None) -> None:
        """Bring the session's files back; `Corrupt` for an archive MAS would not have written."""
        from mas.store.files.pack import unpack_tree
        from mas.store.files.tree import sync_tree

        target = self._layout.session(session_id).root
        unpack_tree(self.path(session_id), target, progress, self._info(session_id).held)
        sync_tree(target)

    def drop_half(self, session_id: str) -> None:
        """Remove what an interrupted `pack` or `remove` left."""
        remove_file(self.path(session_id) + ".tmp")
        remove_unfinished(self._note(session_id))
        if not self.has(session_id):
            remove_file(self._note(session_id))

    def remove(self, session_id: str) -> None:
        remove_file(self.path(session_id))
        remove_file(self._note(session_id))

    def list(self) -> Iterator[ArchiveInfo]:
        """All archives; if the note of one is lost, its facts come from the file alone."""
        for name in sorted(os.listdir(self._layout.archive)):
            session_id, dot, kind = name.partition(".")
            if kind == "tar.zst" and dot and is_session_id(session_id):
                try:
                    info = self._info(SessionId(session_id))
                except FileNotFoundError:
                    # Brought back or removed since the directory was read.
                    continue
                yield info

    def _info(self, session_id: SessionId) -> ArchiveInfo:
        try:
            with open(self._note(session_id), "rb") as file:
                info = parse_record(ArchiveInfo, parse_json(file.read()))
            if info.session_id == session_id:
                return info
        except (OSError, ValueError):
            pass
        found = os.stat(self.path(session_id))
        written_at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(found.st_mtime))
        return ArchiveInfo(session_id, "", written_at, None, 0, found.st_size)

    def _note(self, session_id: str) -> str:
        return os.path.join(self._layout.archive, f"{session_id}.json")
