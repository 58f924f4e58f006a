"""What agents asked of the network: `logs/network.jsonl`, written by a session's egress process, and the one before."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import NamedTuple

from mas.model.errors import NotFound
from mas.model.network import ALLOW, PRIVATE, is_name
from mas.model.network_view import Outcome, PlaceList
from mas.store.files.safe_open import opened_beneath
from mas.store.layout import SessionPaths

LOG = "network.jsonl"
# The writer begins a new file at 1 MiB.
_LARGEST = 2 << 20
_LARGEST_PORT = 65535
_LONGEST = 400
_NOBODY = "?"


class Line(NamedTuple):
    """One line: an agent, what it asked for, what came of it, and how often the same had happened before unrecorded."""

    at: str
    agent: str | None
    name: str
    port: int | None
    result: Outcome
    reason: str
    before: int
    remedy: PlaceList | None


def read_network_log(paths: SessionPaths) -> Iterator[Line]:
    """All lines, the oldest first; what is no line of ours, or is not whole yet, is left out."""
    for name in (f"{LOG}.1", LOG):
        for text in _end_of(paths, name).split(b"\n"):
            if line := _parsed(text):
                yield line


def _end_of(paths: SessionPaths, name: str) -> bytes:
    """The end of a file, from the first whole line on; nothing if there is none."""
    try:
        with opened_beneath(paths.root, ("logs", name)) as fd:
            start = max(0, os.fstat(fd).st_size - _LARGEST)
            data = os.pread(fd, _LARGEST, start)
    except NotFound:
        return b""
    return data.partition(b"\n")[2] if start else data


def _parsed(text: bytes) -> Line | None:
    try:
        body = json.loads(text)
        at, agent, name, port, result = (body[key] for key in ("at", "agent", "name", "port", "result"))
        word, _, reason = result.partition(": ")
        before, remedy = body.get("before", 0), body.get("remedy")
        outcome = Outcome(word)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    is_text = all(isinstance(one, str) and len(one) <= _LONGEST for one in (at, agent, name))
    is_count = all(type(one) is int and one >= 0 for one in (port, before))
    if not is_text or not is_count or port > _LARGEST_PORT or not is_name(name):
        return None
    known: PlaceList | None = remedy if remedy in (ALLOW, PRIVATE) else None
    return Line(at, None if agent == _NOBODY else agent, name, port or None, outcome, reason[:_LONGEST], before, known)
