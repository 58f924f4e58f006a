"""Which turn of each agent was the last that an event told of: `.mas/turns/{id}`."""

from __future__ import annotations

import os

from mas.store.files.atomic import ensure_directory, read_file, write_atomic
from mas.store.layout import PRIVATE_DIR, SessionPaths

_LONGEST = 1024


def last_told(paths: SessionPaths, agent: str) -> str | None:
    """The turn's id, empty if there was none to tell of; None if that was never written, or cannot be read."""
    try:
        return read_file(os.path.join(_place(paths), agent))[:_LONGEST].decode("utf-8", "replace").rstrip("\n")
    except OSError:
        return None


def keep_told(paths: SessionPaths, agent: str, turn: str) -> None:
    ensure_directory(paths.private, PRIVATE_DIR)
    ensure_directory(_place(paths), PRIVATE_DIR)
    write_atomic(os.path.join(_place(paths), agent), f"{turn}\n".encode())


def _place(paths: SessionPaths) -> str:
    return paths.at(".mas", "turns")
