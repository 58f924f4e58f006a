"""The browsers that are signed in: a file beside the secrets that only the server writes. Removing it ends all."""

import json
import os
from typing import Any, NamedTuple

from mas.model.errors import Corrupt
from mas.model.fields import parse_json, parse_record
from mas.store.files.atomic import disk_errors, read_file, write_atomic
from mas.store.layout import Layout

_VERSION = 1


class SignedIn(NamedTuple):
    """A browser: the host and port in its address, a MAC of both under the owner's token, when it was last used."""

    name: str
    shown: str
    mac: str
    used_at: int


class BrowserFile:
    """The file; the caller lets only one thread write at a time."""

    def __init__(self, layout: Layout) -> None:
        self._path = os.path.join(layout.server, "browsers.json")
        self._stamp: tuple[int, int] | None = None
        self._known: dict[str, SignedIn] = {}

    def load(self) -> dict[str, SignedIn]:
        """All browsers by name. The file is read again only if it was replaced: every request needs it."""
        try:
            info = os.stat(self._path, follow_symlinks=False)
        except FileNotFoundError:
            self._stamp, self._known = None, {}
            return self._known
        stamp = (info.st_ino, info.st_mtime_ns)
        if stamp != self._stamp:
            self._known = self._read()
            self._stamp = stamp
        return self._known

    def save(self, browsers: dict[str, SignedIn]) -> None:
        body = {"version": _VERSION, "browsers": [one._asdict() for one in browsers.values()]}
        with disk_errors():
            write_atomic(self._path, json.dumps(body).encode() + b"\n")

    def _read(self) -> dict[str, SignedIn]:
        try:
            body: Any = parse_json(read_file(self._path))
            if not isinstance(body, dict) or body.get("version") != _VERSION:
                raise ValueError("it is of another version")
            if not isinstance(body.get("browsers"), list):
                raise ValueError("it has no list of browsers")
            found = [parse_record(SignedIn, one if isinstance(one, dict) else {}) for one in body["browsers"]]
        except (OSError, ValueError) as error:
            raise Corrupt(self._path, str(error), f"rm -r {self._path}; mas url") from None
        return {one.name: one for one in found}
