"""Provider keys on disk: one file of a workspace or of a user, which only that user can read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from mas.model.errors import Corrupt, Unavailable
from mas.model.fields import parse_json
from mas.model.keys import is_key
from mas.store.files.atomic import disk_errors, locked, read_file, write_atomic
from mas.store.layout import PRIVATE_DIR, Layout

_VERSION = 1
_SERVICE = "mas"
_ALL = "keys"


class StoredKey(NamedTuple):
    """A key and when it was set."""

    key: str
    set_at: str


class KeyStore(Protocol):
    """A place that keeps keys by the variables that they are for."""

    place: str
    """Where that is, for people."""

    def load(self) -> dict[str, StoredKey]:
        """All keys; `Corrupt` if what is there cannot be read."""

    def change(self, variable: str, stored: StoredKey | None) -> bool:
        """Keep a key, or forget it; whether there was one."""


class KeyFile:
    """Keys in a file, written whole or not at all."""

    def __init__(self, path: str) -> None:
        self.place = path

    def load(self) -> dict[str, StoredKey]:
        with disk_errors():
            try:
                data = read_file(self.place)
            except (FileNotFoundError, NotADirectoryError):
                return {}
        return _parsed(data, self.place)

    def change(self, variable: str, stored: StoredKey | None) -> bool:
        with disk_errors(), _only_one(f"{self.place}.lock"):
            keys = self.load()
            had = _changed(keys, variable, stored)
            if stored is not None or had:
                write_atomic(self.place, _text(keys).encode())
        return had


class Keyring:
    """Keys in the desktop's keyring: one entry with all of them, because a keyring cannot be listed."""

    place = "the desktop's keyring"

    def __init__(self, lock: str) -> None:
        self._lock = lock

    def load(self) -> dict[str, StoredKey]:
        with _keyring_errors() as keyring:
            text = keyring.get_password(_SERVICE, _ALL)
        return _parsed(text.encode(), self.place) if text else {}

    def change(self, variable: str, stored: StoredKey | None) -> bool:
        with disk_errors(), _only_one(self._lock):
            keys = self.load()
            had = _changed(keys, variable, stored)
            with _keyring_errors() as keyring:
                if keys:
                    keyring.set_password(_SERVICE, _ALL, _text(keys))
                elif had:
                    keyring.delete_password(_SERVICE, _ALL)
        return had


class _KeyringModule(Protocol):
    """What we use of the library `keyring`."""

    def get_password(self, service: str, username: str) -> str | None: ...
    def set_password(self, service: str, username: str, password: str) -> None: ...
    def delete_password(self, service: str, username: str) -> None: ...


@contextmanager
def _only_one(lock: str) -> Iterator[None]:
    """Let no other process change the keys meanwhile."""
    os.makedirs(os.path.dirname(lock), PRIVATE_DIR, exist_ok=True)
    with locked(lock):
        yield


def _changed(keys: dict[str, StoredKey], variable: str, stored: StoredKey | None) -> bool:
    """Put a key among the others, or take it away; whether there was one."""
    had = keys.pop(variable, None) is not None
    if stored is not None:
        keys[variable] = stored
    return had


def workspace_keys(layout: Layout) -> KeyFile:
    """The keys of a workspace, beside the server's other secrets: no agent sees that directory."""
    return KeyFile(os.path.join(layout.server, "provider-keys.json"))


def user_keys(environ: Mapping[str, str]) -> tuple[KeyStore, ...]:
    """Where a user's keys for all workspaces can be: new ones go to the first place."""
    config = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".config")
    file = KeyFile(os.path.join(config, "mas", "keys.json"))
    return (Keyring(f"{file.place}.lock"), file) if _has_keyring() else (file,)


def _has_keyring() -> bool:
    """Whether the library is installed and has found a keyring that people use."""
    from importlib import import_module
    from importlib.util import find_spec

    if find_spec("keyring") is None:
        return False
    try:
        return bool(import_module("keyring").get_keyring().priority >= 1)
    except (ImportError, AttributeError, RuntimeError, ValueError, TypeError, OSError):
        # What its configuration names is not there, or does not work here.
        return False


@contextmanager
def _keyring_errors() -> Iterator[_KeyringModule]:
    from importlib import import_module

    keyring = import_module("keyring")
    try:
        yield keyring
    except import_module("keyring.errors").KeyringError as error:
        # Its own text may repeat what it was given.
        why = type(error).__name__
        raise Unavailable(f"The desktop's keyring did not work: {why}", "unlock it; or pip uninstall keyring") from None


def _text(keys: Mapping[str, StoredKey]) -> str:
    return json.dumps({"version": _VERSION, "keys": {name: kept._asdict() for name, kept in sorted(keys.items())}})


def _parsed(data: bytes, place: str) -> dict[str, StoredKey]:
    try:
        found = parse_json(data)
        if found["version"] != _VERSION:
            raise ValueError("it is of another version")
        keys = {name: StoredKey(str(one["key"]), str(one["set_at"])) for name, one in found["keys"].items()}
        if not all(map(is_key, keys)):
            raise ValueError("it has a key for a variable that is none of a key")
        return keys
    except (ValueError, KeyError, TypeError, AttributeError):
        # Not what the parser says: that may repeat a part of a key.
        raise Corrupt(place, "it does not hold keys", "remove it, then: mas keys set NAME") from None
