"""Idempotency keys: which session each request started, so that repeating it starts no second one."""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from mas.model.fields import parse_json
from mas.model.ids import is_session_id
from mas.store.files.atomic import ensure_directory, open_lock, read_file, remove_unfinished, write_atomic
from mas.store.files.descriptors import remove_file, still_at, try_lock
from mas.store.layout import PRIVATE_DIR, Layout

_KEPT = 24 * 3600
_LOCK = ".lock"


class Key:
    """One request, which no other process holds meanwhile. `session_id` is None until an id was chosen for it."""

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
    """The keys of the last day, by the clock on the wall: set forward by a day, it makes them all forgotten."""

    def __init__(self, layout: Layout) -> None:
        self._directory = os.path.join(layout.server, "keys")
        self._server = layout.server

    @contextmanager
    def held(self, key: str, request: bytes) -> Iterator[Key]:
        """Hold a key; another request with the same key waits. `request` is the body of the request."""
        for directory in (self._server, self._directory):
            ensure_directory(directory, PRIVATE_DIR)
        # Before the work: nothing may go wrong once that is done.
        self._forget_old()
        path = os.path.join(self._directory, hashlib.sha256(key.encode("utf-8", "replace")).hexdigest())
        lock = _locked(path)
        try:
            remove_unfinished(path)
            yield Key(path, hashlib.sha256(request).hexdigest())
        finally:
            os.close(lock)

    def _forget_old(self) -> None:
        oldest = time.time() - _KEPT
        for name in os.listdir(self._directory):
            path = os.path.join(self._directory, name.removesuffix(_LOCK))
            if name.endswith(_LOCK) and _last_used(path) < oldest:
                _forget(path, oldest)


def _locked(path: str) -> int:
    """The key's lock, held until this is closed."""
    while True:
        lock = open_lock(f"{path}{_LOCK}")
        fcntl.flock(lock, fcntl.LOCK_EX)
        if still_at(lock, f"{path}{_LOCK}"):
            return lock
        # Forgotten while we waited for it: there is another one, or none.
        os.close(lock)


def _forget(path: str, oldest: float) -> None:
    """Remove a key unless it is in use: only who holds its lock may remove that."""
    lock = open_lock(f"{path}{_LOCK}")
    try:
        if try_lock(lock) and still_at(lock, f"{path}{_LOCK}") and _last_used(path) < oldest:
            remove_unfinished(path)
            remove_file(path)
            remove_file(f"{path}{_LOCK}")
    finally:
        os.close(lock)


def _last_used(path: str) -> float:
    """When something was noted under the key or, if nothing was, when it was first asked with."""
    for file in (path, f"{path}{_LOCK}"):
        try:
            return os.stat(file, follow_symlinks=False).st_mtime
        except FileNotFoundError:
            continue
    # Forgotten meanwhile, by another process.
    return math.inf
