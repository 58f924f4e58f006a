"""The last report of each agent of a session: `.mas/reports/{id}`, removed when the agent starts again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable

from mas.store.files.atomic import ensure_directory, read_file, write_atomic
from mas.store.files.descriptors import remove_file
from mas.store.layout import PRIVATE_DIR, SessionPaths


def keep_report(paths: SessionPaths, agent: str, text: str) -> None:
    ensure_directory(paths.private, PRIVATE_DIR)
    ensure_directory(_place(paths), PRIVATE_DIR)
    write_atomic(os.path.join(_place(paths), agent), json.dumps({"text": text}).encode())


def last_report(paths: SessionPaths, agent: str) -> str | None:
    """The agent's last report; None if there is none, or it cannot be read: the agent can report again."""
    try:
        body = json.loads(read_file(os.path.join(_place(paths), agent)))
    except (OSError, ValueError, RecursionError):
        return None
    text = body.get("text") if isinstance(body, dict) else None
    return text if isinstance(text, str) else None


def forget_reports(paths: SessionPaths, agents: Iterable[str]) -> None:
    """Reports from before agents were started again are outdated."""
    for agent in agents:
        remove_file(os.path.join(_place(paths), agent))


def _place(paths: SessionPaths) -> str:
    return paths.at(".mas", "reports")
