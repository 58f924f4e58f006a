"""One client: `python -m tests.torture.client ORDER` asks for one random thing after the other through its door."""

from __future__ import annotations

import json
import os
import random
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from tests.checker import MARKER, UUID4
from tests.torture.doors import Client, CommandLine, Door, Http, Wish
from tests.torture.ledger import Entry, Pen, marker_of

# How often each verb is drawn.
WEIGHTS = {
    "start": 6, "stop": 4, "restore": 4, "clone": 3, "archive": 3, "unarchive": 3, "delete": 3, "undelete": 3,
    "restart-agent": 2, "send": 12, "prune": 1, "list": 3, "show": 2, "inbox": 2,
}  # fmt: skip
# How many of the sessions are isolated.
_ISOLATED = 0.4
_PASSING = {"disk", "unavailable", "not begun"}
_ARCHIVED, _DELETED, _THERE = "archive", "trash", "there"
_PLACE = {"unarchive": _ARCHIVED, "undelete": _DELETED}


class Order(NamedTuple):
    """What a client gets: who it is, where everything is, how much to ask for and how to draw it."""

    name: str
    door: str
    root: str
    ledgers: str
    url: str
    token: str
    seed: int
    wishes: int
    # A workspace with more sessions than this gets no new ones.
    most: int
    # Whether this machine can have agents in tier A, with a network of their session's own.
    isolates: bool


def main(order: Order) -> None:
    door, pen, dice = _door(order), Pen(os.path.join(order.ledgers, f"{order.name}.jsonl")), random.Random(order.seed)
    for number in range(order.wishes):
        wish = draw(dice, order, number)
        pen.ask(Entry(order.name, order.door, *wish))
        outcome = door.ask(wish)
        pen.tell(**outcome._asdict())
        if outcome.why == "silence":
            _await_server(order.root)
        elif outcome.why in _PASSING:
            # Nobody asks on and on while nothing can be done.
            time.sleep(dice.uniform(0.2, 0.8))
        if outcome.made and wish.verb == "start" and _mark(order.root, outcome.made):
            pen.tell(marked=True)


def draw(dice: random.Random, order: Order, number: int) -> Wish:
    """The next thing to ask for: the dice decide on the verb, and which of the sessions that are there."""
    verb = dice.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
    position, flag, to_all = dice.random(), dice.random() < 0.25, dice.random() < 0.3
    isolated = dice.random() < _ISOLATED and order.isolates
    message = f"m-{dice.getrandbits(64):016x}"
    there = sorted(sessions(order.root, _PLACE.get(verb, _THERE)))
    if verb in ("start", "clone") and len(there) >= order.most:
        verb = "delete"
    if verb in ("start", "prune", "list"):
        return Wish(verb, flag=flag, isolated=isolated)
    if not there:
        return Wish("start", flag=flag, isolated=isolated) if verb not in _PLACE else Wish("list")
    # Half of all is asked of one session, by everybody at the same time: that is where things go wrong.
    session = _used_last(order.root, there) if dice.random() < 0.5 else there[int(position * len(there))]
    target = "all" if to_all and verb == "send" else _first_agent(order.root, session)
    return Wish(verb, session, flag, target, message, f"{order.name} says {number}: do good work\n\tand tell.")


def _used_last(root: str, there: list[str]) -> str:
    """The session to which something was done last, by any client."""

    def used(session: str) -> float:
        try:
            return os.stat(os.path.join(root, "sessions", session, "logs", "session.log")).st_mtime
        except OSError:
            return 0.0

    return max(there, key=used)


def _first_agent(root: str, session: str) -> str:
    """An agent of the session; if that is no longer known, one that most have."""
    try:
        with open(os.path.join(root, "sessions", session, "metadata.json"), encoding="utf-8") as file:
            return str(json.load(file)["agents"][0]["id"])
    except FileNotFoundError:
        return "00"


def sessions(root: str, place: str) -> Iterator[str]:
    """The sessions of a place that can be worked with: what is found in their directories is known already."""
    where = os.path.join(root, "sessions", *([] if place == _THERE else [".mas", place]))
    for name in os.listdir(where):
        session_id = name[:36]
        is_it = place != _THERE or (name == session_id and os.path.exists(os.path.join(where, name, MARKER)))
        if UUID4.fullmatch(session_id) and is_it and not name.endswith((".tmp", ".json")):
            yield session_id


def _mark(root: str, session_id: str) -> bool:
    """Leave work in a new session; every client that looks for a session finds it from then on."""
    path = os.path.join(root, "sessions", session_id, MARKER)
    try:
        with open(f"{path}.half", "w", encoding="utf-8") as file:
            file.write(marker_of(session_id))
        os.rename(f"{path}.half", path)
    except OSError:
        return False
    return True


def _await_server(root: str) -> None:
    """Wait until a server listens again, but not for ever."""
    for _ in range(200):
        with socket.socket(socket.AF_UNIX) as wire, suppress(OSError):
            wire.connect(_socket(root))
            return
        time.sleep(0.05)


def _socket(root: str) -> str:
    return os.path.join(root, "sessions", ".mas", "server", "api.sock")


def _door(order: Order) -> Door:
    if order.door == "http":
        return Http(order.url, order.token)
    if order.door == "client":
        return Client(_socket(order.root))
    return CommandLine(order.root, os.environ)


if __name__ == "__main__":
    main(Order(**json.loads(sys.argv[1])))
