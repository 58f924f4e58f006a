"""A mailbox: the messages of one session in its SQLite database, and how far each came with its recipients."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import NamedTuple, NoReturn

from mas.model.errors import AlreadyThere, Busy, Conflict
from mas.model.message import Box, Delivery, DeliveryState, Message
from mas.store.files.atomic import sync_directory, sync_file

_STATES = {state.value: state for state in DeliveryState}
# Each entry brings a database of the version before it to its own; a new one goes through all of them.
MIGRATIONS = (
    """
    CREATE TABLE messages (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        sender TEXT,
        target TEXT NOT NULL,
        message TEXT NOT NULL,
        created_at TEXT NOT NULL
    );
    CREATE TABLE deliveries (
        message INTEGER NOT NULL REFERENCES messages (number),
        position INTEGER NOT NULL,
        agent TEXT NOT NULL,
        state TEXT NOT NULL,
        at TEXT NOT NULL,
        reason TEXT,
        typing_since TEXT,
        PRIMARY KEY (message, position)
    ) WITHOUT ROWID;
    CREATE INDEX deliveries_by_state ON deliveries (state, agent, message);
    CREATE INDEX deliveries_by_agent ON deliveries (agent, message);
    """,
    """
    ALTER TABLE deliveries ADD COLUMN forced INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE deliveries ADD COLUMN awaited INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE deliveries ADD COLUMN entered_again_at TEXT;
    CREATE INDEX deliveries_awaited ON deliveries (agent, message) WHERE awaited;
    """,
)
VERSION = len(MIGRATIONS)
# How long to wait for other threads that write.
_PATIENCE = 10.0
_LOG_PAGES = 1000
_OF_ONE = "WHERE message = (SELECT number FROM messages WHERE id = ?) AND agent = ?"
_UNDER_WAY = "(state = 'queued' OR awaited)"


class Pending(NamedTuple):
    """A message on its way to an agent.

    `typing_since` says that a process began to type it, `entered_again_at` that Enter was pressed once more, `forced`
    that its sender does not want it to wait until the agent is idle.
    """

    message: Message
    state: DeliveryState
    typing_since: str | None
    entered_again_at: str | None
    forced: bool


class Mailbox:
    """The messages of one session, open. Threads of a process that write to the same ones share their `turn`."""

    def __init__(self, connection: sqlite3.Connection, fresh: bool = False, turn: Lock | None = None) -> None:
        self._sql = connection
        self._fresh = fresh
        # What need not last does not wait for the disk: not at all where SQLite's log begins with it, and where
        # it does not, just enough to keep a log that starts again from being mistaken for the old one.
        self._hasty = "OFF" if fresh else "NORMAL"
        self._turn = turn or Lock()

    def add(self, message: Message, forced: bool = False, lasting: bool = True) -> bool:
        """Keep a message. False if it is there already; `AlreadyThere` if another one has its id.

        Not `lasting` means that it survives the end of this process, and a power cut from the next step on: enough if
        that step comes before anything reports that the message was sent.
        """
        with self._writing(lasting):
            known = self._find(message.id)
            if known is not None:
                if known.says_the_same(message):
                    return False
                raise AlreadyThere(f"A different message was already sent with the id {message.id}", "mas inbox --all")
            number = self._sql.execute(
                "INSERT INTO messages (id, sender, target, message, created_at) VALUES (?, ?, ?, ?, ?)", message[:5]
            ).lastrowid
            self._sql.executemany(
                "INSERT INTO deliveries (message, position, agent, state, at, reason, forced)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                ((number, position, *delivery, forced) for position, delivery in enumerate(message.deliveries)),
            )
        return True

    def make_last(self, message_id: str) -> None:
        """Bring a message to the disk that was not added as lasting; nothing to do if a step has done so."""
        if all(one.state is not DeliveryState.QUEUED for one in self.deliveries(message_id)):
            return
        # Past SQLite, which leaves out writes that change nothing; and not in turn, so that many are one for the disk.
        database = self._sql.execute("PRAGMA database_list").fetchone()[2]
        try:
            sync_file(f"{database}-wal")
            if self._fresh:
                sync_directory(os.path.dirname(database))
        except FileNotFoundError:
            # The session was deleted since: its directory has another name, and only SQLite has its files open.
            self._bring_over()

    def _bring_over(self) -> None:
        """Bring the log to the disk and into the database, wherever the two are by now."""
        self._sql.execute("PRAGMA synchronous = FULL")
        if self._sql.execute("PRAGMA wal_checkpoint(FULL)").fetchone()[0]:
            raise Busy("Another process blocks writing the session's messages to disk", "try again")

    def begin(self, message_id: str, agent: str, at: str) -> None:
        """Say that a queued message is now being typed; the caller holds the right to type to the agent."""
        # Such a mark need only outlive this process: a machine that goes down takes the terminal with it.
        with self._writing(lasting=False):
            marked = self._sql.execute(
                f"UPDATE deliveries SET typing_since = ? {_OF_ONE} AND state = 'queued' AND typing_since IS NULL",
                (at, message_id, agent),
            ).rowcount
            if not marked:
                raise Conflict(f"Message {message_id} is not waiting to be typed to agent {agent}", "mas inbox")

    def put_back(self, message_id: str, agent: str) -> None:
        """Say that nothing was typed of a message after all: it waits as before."""
        with self._writing(lasting=False):
            self._sql.execute(f"UPDATE deliveries SET typing_since = NULL {_OF_ONE}", (message_id, agent))

    def enter_again(self, message_id: str, agent: str, at: str) -> None:
        """Say that Enter is pressed once more, which is done once only."""
        with self._writing():
            self._sql.execute(f"UPDATE deliveries SET entered_again_at = ? {_OF_ONE}", (at, message_id, agent))

    def step(
        self,
        message_id: str,
        agents: Iterable[str],
        state: DeliveryState,
        at: str,
        reason: str | None = None,
        awaited: bool = False,
    ) -> list[Delivery]:
        """Take a message to another state with these agents, with all or none; `Conflict` if that is not allowed.

        `awaited` says that the agent will acknowledge it.
        """
        with self._writing():
            message = self.get(message_id)
            there = {delivery.agent: delivery for delivery in message.deliveries}
            stepped = [_of(there, agent, message_id).to(state, at, reason) for agent in agents]
            self._sql.executemany(
                f"UPDATE deliveries SET state = ?, at = ?, reason = ?, awaited = ?, typing_since = NULL {_OF_ONE}",
                ((state, at, reason, awaited, message_id, delivery.agent) for delivery in stepped),
            )
        return stepped

    def give_up(self, at: str, reason: str) -> None:
        """Call all that is not yet all the way undelivered."""
        with self._writing():
            self._sql.execute(
                "UPDATE deliveries SET state = 'undelivered', at = ?, reason = ?, awaited = 0, typing_since = NULL"
                f" WHERE {_UNDER_WAY}",
                (at, reason),
            )

    def get(self, message_id: str) -> Message:
        """One message, or `Conflict` if there is none of that id."""
        found = self._find(message_id)
        if found is None:
            raise Conflict(f"No message {message_id} in this session", "mas inbox --all")
        return found

    def page(
        self, limit: int, offset: int = 0, agent: str | None = None, box: Box = Box.ALL
    ) -> tuple[list[Message], int]:
        """Of the messages that are meant, newest last, at most `limit` after the `offset` newest; and how many."""
        to = "number IN (SELECT message FROM deliveries WHERE agent = :agent)"
        which = {
            Box.ALL: f"(:agent IS NULL OR sender = :agent OR {to})",
            Box.INBOX: f"(:agent IS NULL OR {to})",
            Box.SENT: "(:agent IS NULL OR sender = :agent)",
        }[box]
        given = {"agent": agent, "limit": limit, "offset": offset}
        with self._reading():
            total = self._sql.execute(f"SELECT count(*) FROM messages WHERE {which}", given).fetchone()[0]
            rows = self._sql.execute(
                f"SELECT * FROM messages WHERE {which} ORDER BY number DESC LIMIT :limit OFFSET :offset",
                given,
            ).fetchall()
            return [self._message(row) for row in reversed(rows)], total

    def next(self, agent: str) -> Pending | None:
        """The oldest message that is not yet all the way with an agent."""
        with self._reading():
            row = self._sql.execute(
                "SELECT message, state, typing_since, entered_again_at, forced FROM deliveries"
                f" WHERE agent = ? AND {_UNDER_WAY} ORDER BY message LIMIT 1",
                (agent,),
            ).fetchone()
            if row is None:
                return None
            number, state, typing_since, entered_again_at, forced = row
            found = self._sql.execute("SELECT * FROM messages WHERE number = ?", (number,)).fetchone()
            return Pending(
                self._message(found or _damage()), DeliveryState(state), typing_since, entered_again_at, bool(forced)
            )

    def waiting(self) -> list[str]:
        """The agents for which a message is not finished yet."""
        rows = self._sql.execute(f"SELECT DISTINCT agent FROM deliveries WHERE {_UNDER_WAY} ORDER BY agent")
        return [agent for (agent,) in rows]

    def number(self, message_id: str | None) -> int:
        """Where a message stands in the order of all; None is the newest."""
        if message_id is None:
            return int(self._sql.execute("SELECT coalesce(max(number), 0) FROM messages").fetchone()[0])
        row = self._sql.execute("SELECT number FROM messages WHERE id = ?", (message_id,)).fetchone()
        if row is None:
            raise Conflict(f"No message {message_id} in this session", "mas inbox --all")
        return int(row[0])

    def first_from(self, senders: Iterable[str], to: str, after: int) -> Message | None:
        """The first message behind number `after` that one of these wrote to `to`."""
        given = {f"s{position}": sender for position, sender in enumerate(senders)}
        row = self._sql.execute(
            f"SELECT * FROM messages WHERE number > :after AND sender IN ({', '.join(f':{name}' for name in given)})"
            " AND (target = :to OR number IN (SELECT message FROM deliveries WHERE agent = :to)) ORDER BY number",
            {**given, "after": after, "to": to},
        ).fetchone()
        return self._message(row) if row else None

    def counts(self) -> dict[str, int]:
        """How many deliveries are in each state."""
        found = dict(self._sql.execute("SELECT state, count(*) FROM deliveries GROUP BY state"))
        return {state.value: found.get(state.value, 0) for state in DeliveryState}

    def _find(self, message_id: str) -> Message | None:
        row = self._sql.execute("SELECT * FROM messages WHERE id = ?", (message_id,)).fetchone()
        return self._message(row) if row else None

    def deliveries(self, message_id: str) -> tuple[Delivery, ...]:
        """How far a message came with everybody it is for."""
        row = self._sql.execute("SELECT number FROM messages WHERE id = ?", (message_id,)).fetchone()
        return self._deliveries(row[0]) if row else ()

    def _message(self, row: tuple[int, str, str | None, str, str, str]) -> Message:
        number, message_id, sender, target, text, created_at = row
        _must_be_text(message_id, sender or "", target, text, created_at)
        return Message(message_id, sender, target, text, created_at, self._deliveries(number))

    def _deliveries(self, number: int) -> tuple[Delivery, ...]:
        rows = self._sql.execute(
            "SELECT agent, state, at, reason FROM deliveries WHERE message = ? ORDER BY position", (number,)
        )
        found = []
        for agent, state, at, reason in rows:
            _must_be_text(agent, at, reason or "")
            found.append(Delivery(agent, _STATES.get(state) or _damage(), at, reason))
        return tuple(found)

    @contextmanager
    def _writing(self, lasting: bool = True) -> Iterator[None]:
        """A change: all of it or nothing, and if `lasting`, on the disk at the end with all that came before."""
        self._sql.execute(f"PRAGMA synchronous = {'FULL' if lasting else self._hasty}")
        # The log may only be brought into the database by who waits for the disk.
        self._sql.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES if lasting else 0}")
        # SQLite would have threads that meet here sleep and try again, longer each time.
        if not self._turn.acquire(timeout=_PATIENCE):
            raise Busy("Too many processes are writing to the session's messages", "try again")
        try:
            with transaction(self._sql, "IMMEDIATE"):
                yield
        finally:
            self._turn.release()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with transaction(self._sql, "DEFERRED"):
            yield


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str) -> Iterator[None]:
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # Some errors have rolled it back already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _of(there: dict[str, Delivery], agent: str, message_id: str) -> Delivery:
    if agent not in there:
        raise Conflict(f"Message {message_id} is not for agent {agent}", "mas inbox --all")
    return there[agent]


def _must_be_text(*values: object) -> None:
    if not all(isinstance(value, str) for value in values):
        _damage()


def _damage() -> NoReturn:
    """The same error as SQLite raises for damage: MAS never writes such a row."""
    error = sqlite3.DatabaseError("a row cannot be read")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    raise error
