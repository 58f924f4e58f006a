"""Secrets: the owner's token and the key that agents' tokens are made with. Files that only their user can read."""

from __future__ import annotations

import os
import re

from mas.model.errors import Corrupt
from mas.store.files.atomic import ensure_directory, locked, read_file, write_atomic
from mas.store.layout import PRIVATE_DIR, Layout

_BYTES = 32
_SECRET = re.compile(rb"[0-9a-f]{%d}\n" % (2 * _BYTES))


class Secrets:
    """Makes each secret when it is first asked for."""

    def __init__(self, layout: Layout) -> None:
        self._directory = layout.server
        self._token = os.path.join(layout.server, "token")
        self._key = os.path.join(layout.server, "key")
        self._seen: dict[str, tuple[tuple[int, int], str]] = {}

    def token(self) -> str:
        """The owner's token as it is now, also after another process renewed it."""
        return self._get(self._token)

    def key(self) -> str:
        return self._get(self._key)

    def renew_token(self) -> str:
        """A new token; the old one is worth nothing from this moment on."""
        self._make(self._token, replace=True)
        return self._get(self._token)

    def _get(self, path: str) -> str:
        try:
            info = os.stat(path, follow_symlinks=False)
        except FileNotFoundError:
            self._make(path, replace=False)
            info = os.stat(path, follow_symlinks=False)
        except NotADirectoryError as error:
            raise Corrupt(self._directory, error.strerror or "it is not a directory", f"rm {self._directory}") from None
        # Every request needs a secret: it is read again only when its file was replaced.
        stamp = (info.st_ino, info.st_mtime_ns)
        seen = self._seen.get(path)
        if seen is None or seen[0] != stamp:
            self._seen[path] = seen = (stamp, _read(path))
        return seen[1]

    def _make(self, path: str, replace: bool) -> None:
        ensure_directory(os.path.dirname(self._directory), PRIVATE_DIR)
        ensure_directory(self._directory, PRIVATE_DIR)
        with locked(os.path.join(self._directory, "secrets.lock")):
            if replace or not os.path.lexists(path):
                write_atomic(path, os.urandom(_BYTES).hex().encode() + b"\n")


def _read(path: str) -> str:
    """The secret in a file. Whatever else is there could be guessed, and is none."""
    hint = f"rm -r {path}; mas token"
    try:
        data = read_file(path)
    except OSError as error:
        raise Corrupt(path, error.strerror or "unreadable", hint) from None
    if not _SECRET.fullmatch(data):
        raise Corrupt(path, "it does not hold a valid secret", hint)
    return data.decode().strip()
