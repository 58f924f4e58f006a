"""The session's own /etc: copies of a few files of the machine's, which agents see in its place."""

from __future__ import annotations

import os
from collections.abc import Mapping

from mas.store.files.descriptors import NEW, write_all
from mas.store.layout import OPEN_DIR, SessionPaths

_OPEN_FILE = 0o644
_WHERE = "/etc"


class EtcCopy:
    """`.mas/etc` of one session, which only MAS writes. Agents that are running see each change."""

    def __init__(self, paths: SessionPaths) -> None:
        self.path = paths.at(".mas", "etc")

    def write(self, files: Mapping[str, bytes | str]) -> None:
        """Have exactly these files: by their names below /etc, the content or, as text, where a link leads."""
        self._directory("")
        for name, content in files.items():
            place = self._place(name)
            if isinstance(content, str):
                self._link(place, content)
            elif _content(place) != content:
                _replace(place, content)

    def make_place(self, path: str) -> None:
        """Have something at a path below /etc that a directory or file can be mounted on."""
        place = self._place(os.path.relpath(path, _WHERE))
        if os.path.isdir(path):
            os.makedirs(place, OPEN_DIR, exist_ok=True)
        elif not os.path.lexists(place):
            _replace(place, b"")

    def _place(self, name: str) -> str:
        self._directory(os.path.dirname(name))
        return os.path.join(self.path, name)

    def _directory(self, name: str) -> None:
        """Every account must pass through, whatever mask MAS was started with."""
        place = os.path.join(self.path, name) if name else self.path
        if not os.path.isdir(place):
            if name:
                self._directory(os.path.dirname(name))
            os.mkdir(place)
            os.chmod(place, OPEN_DIR)

    def _link(self, place: str, target: str) -> None:
        if os.path.islink(place) and os.readlink(place) == target:
            return
        if os.path.lexists(place):
            os.unlink(place)
        os.symlink(target, place)


def _content(place: str) -> bytes | None:
    try:
        with open(place, "rb") as file:
            return None if os.path.islink(place) else file.read()
    except OSError:
        return None


def _replace(place: str, content: bytes) -> None:
    """Not flushed to the disk: it is made again at each start."""
    temporary = f"{place}.new"
    if os.path.lexists(temporary):
        os.unlink(temporary)
    fd = os.open(temporary, os.O_WRONLY | NEW, _OPEN_FILE)
    try:
        write_all(fd, content)
        os.fchmod(fd, _OPEN_FILE)
    finally:
        os.close(fd)
    os.rename(temporary, place)
