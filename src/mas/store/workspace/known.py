"""The workspaces that a user works with, one path a line: agents of one must not see into another, wherever it lies."""

import os
from collections.abc import Mapping

from mas.settings import MARKER
from mas.store.files.atomic import write_atomic
from mas.store.files.descriptors import APPEND, READ, write_all
from mas.store.layout import PRIVATE_DIR, PRIVATE_FILE

_LARGEST = 1 << 20
# How many lines there may be before those of removed workspaces are left out.
_MANY = 500


class KnownWorkspaces:
    """The list, in the user's own state directory. It helps to find them: a missing one is no error."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        base = environ.get("XDG_STATE_HOME") or os.path.join(environ.get("HOME", ""), ".local", "state")
        self._path = os.path.join(base, "mas", "workspaces") if os.path.isabs(base) else ""

    def all(self) -> tuple[str, ...]:
        """Those that still exist."""
        return tuple(path for path in self._lines() if os.path.exists(os.path.join(path, MARKER)))

    def add(self, root: str) -> None:
        """Have a workspace on the list."""
        root = os.path.realpath(root)
        lines = self._lines()
        if not self._path or root in lines or not root.isprintable():
            return
        try:
            os.makedirs(os.path.dirname(self._path), PRIVATE_DIR, exist_ok=True)
            if len(lines) >= _MANY:
                write_atomic(self._path, "".join(f"{path}\n" for path in self.all()).encode("utf-8", "surrogateescape"))
            fd = os.open(self._path, os.O_WRONLY | APPEND, PRIVATE_FILE)
            try:
                write_all(fd, f"{root}\n".encode("utf-8", "surrogateescape"))
            finally:
                os.close(fd)
        except OSError:
            # A home that cannot be written, or a full disk: then only what lies near is found.
            return

    def _lines(self) -> dict[str, None]:
        try:
            fd = os.open(self._path, READ)
        except OSError:
            return {}
        with open(fd, "rb") as file:
            text = file.read(_LARGEST).decode("utf-8", "surrogateescape")
        return dict.fromkeys(filter(os.path.isabs, text.splitlines()))
