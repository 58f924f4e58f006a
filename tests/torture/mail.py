"""What was sent in a session, read from its files without the product: how far each message came, and who got it."""

from __future__ import annotations

import os
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

from tests.checker import World

_STATES = {"queued", "typed", "acknowledged", "undelivered"}
_HEADER = re.compile(r"\[MAS from=\S+ to=\S+ id=(m-[0-9a-f]{16})\]")
_DATABASE = ".mas/messages.db"


class Letter(NamedTuple):
    """A message, its place in the order of all, and how far it came with each agent."""

    number: int
    id: str
    text: str
    states: dict[str, str]
    reasons: dict[str, str | None]


class Mail(NamedTuple):
    """All that was sent in a session, and the ids that each agent noted, in their order."""

    letters: dict[str, Letter]
    noted: dict[str, list[str]]


class Unreadable(Exception):
    """The messages of a session cannot be read."""


def mail_of(world: World, session_id: str) -> Mail:
    """The session's mail, wherever the session is kept."""
    letters = _letters(world, session_id)
    agents = sorted({agent for letter in letters.values() for agent in letter.states})
    return Mail(letters, {agent: _noted(world, session_id, agent) for agent in agents})


def mail_problems(world: World, session_id: str, copied: bool) -> Iterator[str]:
    """What is wrong with the mail of a session. A `copied` one has of its source what was there at two moments."""
    try:
        mail = mail_of(world, session_id)
    except Unreadable as error:
        yield f"the messages of {session_id} cannot be read: {error}"
        return
    for letter in mail.letters.values():
        for agent, state in letter.states.items():
            if state not in _STATES:
                yield f"{letter.id} in {session_id} is {state}"
            if state == "undelivered" and not letter.reasons[agent]:
                yield f"{letter.id} in {session_id} is undelivered for no reason"
            if state == "acknowledged" and not copied and letter.id not in mail.noted[agent]:
                yield f"{letter.id} in {session_id} is acknowledged, and agent {agent} never got it"
        if not letter.states:
            yield f"{letter.id} in {session_id} is for nobody"
    for agent, noted in mail.noted.items():
        for message_id in sorted({one for one in noted if noted.count(one) > 1}):
            yield f"{message_id} in {session_id} came to agent {agent} {noted.count(message_id)} times"
        numbers = [mail.letters[one].number for one in noted if one in mail.letters]
        if numbers != sorted(numbers):
            yield f"agent {agent} of {session_id} got messages out of their order: {noted}"
        if not copied and (unknown := set(noted) - set(mail.letters)):
            yield f"agent {agent} of {session_id} got what nobody sent: {sorted(unknown)}"


def unsettled(world: World, session_id: str) -> Iterator[str]:
    """Messages of a running session that are still on their way."""
    for letter in mail_of(world, session_id).letters.values():
        for agent, state in letter.states.items():
            if state in ("queued", "typed"):
                yield f"{letter.id} to agent {agent} of {session_id} stays {state}"


def _letters(world: World, session_id: str) -> dict[str, Letter]:
    database = world.file(session_id, _DATABASE)
    if database is None:
        return {}
    # A copy: SQLite changes files even where one only reads.
    with tempfile.TemporaryDirectory(prefix="mt") as directory:
        path = os.path.join(directory, "messages.db")
        for side in ("", "-wal"):
            content = world.file(session_id, _DATABASE + side)
            if content is not None:
                with open(path + side, "wb") as file:
                    file.write(content)
        try:
            with closing(sqlite3.connect(path)) as connection:
                return _rows(connection)
        except sqlite3.Error as error:
            raise Unreadable(str(error)) from None


def _rows(connection: sqlite3.Connection) -> dict[str, Letter]:
    (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        raise Unreadable(found)
    letters = {
        number: Letter(number, message_id, text, {}, {})
        for number, message_id, text in connection.execute("SELECT number, id, message FROM messages ORDER BY number")
    }
    for number, agent, state, reason in connection.execute("SELECT message, agent, state, reason FROM deliveries"):
        if number not in letters:
            raise Unreadable(f"delivery of message {number}, which is not there")
        letters[number].states[agent] = state
        letters[number].reasons[agent] = reason
    return {letter.id: letter for letter in letters.values()}


def _noted(world: World, session_id: str, agent: str) -> list[str]:
    text = (world.file(session_id, f"unit/{agent}/headers") or b"").decode()
    # An agent that is killed may leave half a line.
    lines = text.split("\n")[:-1]
    return [match[1] if (match := _HEADER.fullmatch(line)) else line for line in lines]
