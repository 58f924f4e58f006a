"""An agent's own directory, `.mas/agents/{id}/`: its provider's files, and the name of its conversation.

The agent writes there too, so whatever it may have put in the way (a link above all) is not followed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from mas.model.errors import Corrupt, NotFound
from mas.model.ids import is_session_id
from mas.store.files.atomic import ensure_directory
from mas.store.files.descriptors import DIRECTORY, NEW, is_there, write_all
from mas.store.files.safe_open import made_beneath, opened_beneath, parse_path
from mas.store.layout import PRIVATE_DIR, PRIVATE_FILE, SessionPaths

_UUID = "uuid"


class AgentPlace:
    """What MAS keeps for one agent of one session."""

    def __init__(self, paths: SessionPaths, agent: str) -> None:
        self._session = paths.root
        self._agent = agent
        self._parent = paths.at(".mas", "agents")
        self.path = os.path.join(self._parent, agent)

    def uuid(self) -> str:
        """The name of its conversation; empty if it has none."""
        try:
            with opened_beneath(self._session, (".mas", "agents", self._agent, _UUID)) as fd:
                text = os.read(fd, 64).decode("ascii", "replace").strip()
        except (NotFound, OSError):
            return ""
        return text if is_session_id(text) else ""

    def make(self) -> None:
        """See to it that the place is there."""
        ensure_directory(self._parent, PRIVATE_DIR)
        ensure_directory(self.path, PRIVATE_DIR)

    def furnish(self, uuid: str, files: Iterable[tuple[str, str]], seed: Iterable[tuple[str, str]]) -> None:
        """Write the files again, and those of `seed` that are missing; paths are below this directory."""
        self.make()
        for path, text in files:
            self._write(path, text, again=True)
        for path, text in seed:
            self._write(path, text, again=False)
        self._write(os.path.join(self.path, _UUID), f"{uuid}\n", again=False)

    def _write(self, path: str, text: str, again: bool) -> None:
        *above, name = parse_path(os.path.relpath(path, self.path))
        fd = self._opened(above)
        try:
            if not again and is_there(name, fd):
                return
            self._put(name, text.encode("utf-8", "surrogateescape"), fd)
        except IsADirectoryError:
            raise Corrupt(path, "not a file", f"rm -r {path}") from None
        finally:
            os.close(fd)

    def _put(self, name: str, data: bytes, directory: int) -> None:
        # No name that the agent could know: something might wait there, a pipe or a second name of another file.
        half = f".{os.urandom(16).hex()}.tmp"
        fd = os.open(half, os.O_WRONLY | NEW, PRIVATE_FILE, dir_fd=directory)
        try:
            os.fchmod(fd, PRIVATE_FILE)
            write_all(fd, data)
            os.rename(half, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            os.unlink(half, dir_fd=directory)
            raise
        finally:
            os.close(fd)

    def _opened(self, names: list[str]) -> int:
        """A descriptor of a directory below this place, made where it is missing."""
        try:
            fd = os.open(self.path, DIRECTORY)
        except OSError:
            raise Corrupt(self.path, "not a directory", f"rm {self.path}") from None
        try:
            return made_beneath(fd, names)
        except NotADirectoryError as error:
            raise Corrupt(os.path.join(self.path, str(error.filename)), "not a directory", "remove it") from None
