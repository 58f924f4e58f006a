"""Keys of requests: which session each one started, so that asking again starts no second one."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from mas.model.fields import parse_json
from mas.model.ids import is_session_id
from mas.store.atomic import ensure_directory, locked, read_file, remove_file, remove_unfinished, write_atomic
from mas.store.layout import PRIVATE_DIR, Layout

_KEPT = 24 * 3600


class Key:
    """One request, held by nobody else meanwhile. `session_id` is None until an id was drawn for it."""

    def __init__(self, path: str, request: str) -> None:
        self._path = path
        self._request = request
        self.session_id: str | None = None
        self.done = False
        self.is_other_request = False
        try:
            body = parse_json(read_file(path))
            session_id, done, other = body["sessionId"], body["done"] is True, body["request"] != request
            if is_session_id(session_id):
                self.session_id, self.done, self.is_other_request = session_id, done, other
        except FileNotFoundError:
            return
        except (ValueError, KeyError, TypeError):
            # Half a file cannot be: it is replaced whole. Whatever this is, it is none of ours.
            return

    def note(self, session_id: str, done: bool) -> None:
        """Remember the session, before it is started and when it has been."""
        body = {"request": self._request, "sessionId": session_id, "done": done}
        write_atomic(self._path, json.dumps(body).encode())


class Keys:
    """The keys of the last day."""

    def __init__(self, layout: Layout) -> None:
        self._directory = os.path.join(layout.server, "keys")
        self._server = layout.server

    @contextmanager
    def held(self, key: str, request: bytes) -> Iterator[Key]:
        """Hold a key; whoever asks with it at the same time waits. `request` is what was asked for."""
        for directory in (self._server, self._directory):
            ensure_directory(directory, PRIVATE_DIR)
        path = os.path.join(self._directory, hashlib.sha256(key.encode("utf-8", "replace")).hexdigest())
        with locked(f"{path}.lock"):
            remove_unfinished(path)
            yield Key(path, hashlib.sha256(request).hexdigest())
        self._forget_old()

    def _forget_old(self) -> None:
        oldest = time.time() - _KEPT
        with os.scandir(self._directory) as entries:
            old = [entry.path for entry in entries if entry.stat(follow_symlinks=False).st_mtime < oldest]
        for path in old:
            remove_file(path)
