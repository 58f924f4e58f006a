"""What clients asked for and what was reported to them, recorded as it happens, and what must be true because of it."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Collection, Iterator
from glob import glob
from typing import Any, NamedTuple

from tests.checker import World
from tests.torture.mail import Unreadable, mail_of

MAKING = ("start", "clone")
MOVING = ("stop", "restore", "archive", "unarchive", "delete", "undelete", "restart-agent")


class Entry(NamedTuple):
    """One thing a client asked for, and how that ended: `done`, `refused` or `lost`; None: no result was reported."""

    client: str
    door: str
    verb: str
    session: str
    flag: bool
    target: str
    message: str
    text: str
    isolated: bool = False
    end: str | None = None
    why: str = ""
    said: str = ""
    made: str | None = None
    marked: bool = False

    @property
    def cut_short(self) -> bool:
        """Whether it is unknown how far it came."""
        return self.end in (None, "lost")


class Pen:
    """The ledger of one client: a line before each thing it asks for and one after, each in one write."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def ask(self, entry: Entry) -> None:
        self._write(entry._asdict())

    def tell(self, **ended: Any) -> None:
        """How the last thing that was asked for ended, or more of that."""
        self._write(ended)

    def _write(self, line: dict[str, Any]) -> None:
        # Where a limit on files stands for a full disk, it is not meant for the ledger.
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        os.write(self._fd, (json.dumps(line) + "\n").encode())
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def read(directory: str) -> list[Entry]:
    """All ledgers of a directory."""
    found: list[Entry] = []
    for path in sorted(glob(os.path.join(directory, "*.jsonl"))):
        with open(path, encoding="utf-8") as file:
            for line in map(json.loads, file):
                if "verb" in line:
                    found.append(Entry(**line))
                else:
                    found[-1] = found[-1]._replace(**line)
    return found


def marker_of(session_id: str) -> str:
    return f"the work of {session_id}\n"


def broken_promises(world: World, entries: Collection[Entry], untouched_live: bool) -> Iterator[str]:
    """What was reported to clients and is not true. `untouched_live`: no fault of the round ended a session."""
    made = {entry.made: entry for entry in entries if entry.made}
    yield from _lost(world, made, entries)
    unknown = world.kept - set(made)
    may_be = sum(1 for entry in entries if entry.verb in MAKING and entry.cut_short)
    if len(unknown) > may_be:
        yield f"{len(unknown)} sessions of which nobody was told, {may_be} starts were cut short: {sorted(unknown)}"
    moved = {entry.session for entry in entries if entry.verb in MOVING}
    for session_id, entry in made.items():
        if session_id in moved or not untouched_live:
            continue
        wanted = "active" if entry.end == "done" and (entry.verb == "start" or entry.flag) else "stopped"
        found = world.entries.get(session_id, {}).get("status")
        if found != wanted:
            yield f"{session_id} was made {wanted} and is {found}, though nobody touched it"
    yield from _lost_messages(world, entries)


def _lost(world: World, made: dict[str, Entry], entries: Collection[Entry]) -> Iterator[str]:
    """Sessions that must be somewhere and are not, and places where they cannot be."""
    asked = {verb: {entry.session for entry in entries if entry.verb == verb} for verb in ("archive", "delete")}
    pruned = any(entry.verb == "prune" for entry in entries)
    for session_id, entry in made.items():
        if session_id not in world.kept and not (pruned and session_id in asked["delete"]):
            yield f"{session_id} was told of ({entry.verb} of {entry.client}) and is gone"
        if session_id in world.archived and session_id not in asked["archive"]:
            yield f"{session_id} is archived, and nobody asked for it"
        if session_id in world.trashed and session_id not in asked["delete"]:
            yield f"{session_id} is deleted, and nobody asked for it"
        if entry.marked and session_id in world.kept and world.marker(session_id) != marker_of(session_id):
            yield f"the work of {session_id} is lost: {world.marker(session_id)!r}"


def _lost_messages(world: World, entries: Collection[Entry]) -> Iterator[str]:
    for entry in entries:
        if entry.verb != "send" or entry.end != "done" or entry.session not in world.kept:
            continue
        try:
            letter = mail_of(world, entry.session).letters.get(entry.message)
        except Unreadable:
            # Told by who looks at all mail.
            continue
        if letter is None:
            yield f"{entry.message} to {entry.session} was acknowledged to {entry.client} and is lost"
        elif letter.text != entry.text:
            yield f"{entry.message} says {letter.text!r} instead of {entry.text!r}"
