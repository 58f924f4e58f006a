"""Messages on disk: one SQLite database per session, in which nothing that was sent is ever lost.

A database lives in its session's directory, and moves with it. It is opened for as long as one verb needs it,
by as many processes and threads as there are; `messages.lock` beside it is held shared by all who use the
database, and alone by who makes it, puts it aside or packs it.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager

from mas.model.errors import AlreadyThere, Busy, Conflict, Corrupt, Disk, DiskFull, DiskRefused, MasError, NoSession
from mas.model.message import Box, Delivery, DeliveryState, Message
from mas.store.atomic import (
    ensure_directory,
    open_lock,
    remove_file,
    set_aside,
    still_at,
    sync_directory,
    try_lock,
)
from mas.store.layout import PRIVATE_DIR, PRIVATE_FILE, Layout

# Each entry brings a database of the version before it to its own; a new one goes through all of them.
_MIGRATIONS = (
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
)
VERSION = len(_MIGRATIONS)
# How long to wait for another process that writes, or that makes or packs the database.
_PATIENCE = 10.0
_LOOK_AGAIN = 0.005
_LOG_PAGES = 1000
_SIDES = ("-wal", "-shm")

_FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_ERROR}
_REFUSED = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_CANTOPEN}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}


class Mailbox:
    """The messages of one session, open."""

    def __init__(self, connection: sqlite3.Connection, fresh: bool = False) -> None:
        self._sql = connection
        # What need not last does not wait for the disk: not at all where SQLite's log begins with it, and where
        # it does not, for as little as keeps a log that begins anew from being taken for the old one.
        self._hasty = "OFF" if fresh else "NORMAL"

    def add(self, message: Message, lasting: bool = True) -> bool:
        """Keep a message. False if it is there already; `AlreadyThere` if another one has its id.

        Not `lasting` means that it outlives this process, and the machine from the next step on: enough where
        that comes before anybody is told that the message was sent.
        """
        with self._writing(lasting):
            known = self._find(message.id)
            if known is not None:
                if known.says_the_same(message):
                    return False
                raise AlreadyThere(f"Another message was sent with the id {message.id}", "mas inbox --all")
            number = self._sql.execute(
                "INSERT INTO messages (id, sender, target, message, created_at) VALUES (?, ?, ?, ?, ?)", message[:5]
            ).lastrowid
            self._sql.executemany(
                "INSERT INTO deliveries (message, position, agent, state, at, reason) VALUES (?, ?, ?, ?, ?, ?)",
                ((number, position, *delivery) for position, delivery in enumerate(message.deliveries)),
            )
        return True

    def begin(self, message_id: str, agent: str, at: str) -> None:
        """Say that a queued message is now being typed; the caller holds the right to type to the agent."""
        # Such a mark need only outlive this process: a machine that goes down takes the terminal with it.
        with self._writing(lasting=False):
            marked = self._sql.execute(
                "UPDATE deliveries SET typing_since = ? WHERE message = (SELECT number FROM messages WHERE id = ?)"
                " AND agent = ? AND state = 'queued' AND typing_since IS NULL",
                (at, message_id, agent),
            ).rowcount
            if not marked:
                raise Conflict(f"Message {message_id} is not waiting to be typed to agent {agent}", "mas inbox")

    def step(
        self, message_id: str, agents: Iterable[str], state: DeliveryState, at: str, reason: str | None = None
    ) -> list[Delivery]:
        """Take a message to another state with these agents, with all or none; `Conflict` if that is not allowed."""
        with self._writing():
            message = self.get(message_id)
            there = {delivery.agent: delivery for delivery in message.deliveries}
            stepped = [_of(there, agent, message_id).to(state, at, reason) for agent in agents]
            self._sql.executemany(
                "UPDATE deliveries SET state = ?, at = ?, reason = ?, typing_since = NULL"
                " WHERE message = (SELECT number FROM messages WHERE id = ?) AND agent = ?",
                ((state, at, reason, message_id, delivery.agent) for delivery in stepped),
            )
        return stepped

    def give_up(self, message_id: str, agent: str, at: str, reason: str) -> bool:
        """Call what nobody types any more undelivered; False if its sender came to an end with it after all."""
        with self._writing():
            changed = self._sql.execute(
                "UPDATE deliveries SET state = 'undelivered', at = ?, reason = ?, typing_since = NULL"
                " WHERE message = (SELECT number FROM messages WHERE id = ?) AND agent = ?"
                " AND state = 'queued' AND typing_since IS NOT NULL",
                (at, reason, message_id, agent),
            ).rowcount
        return changed > 0

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
            total = self._sql.execute(f"SELECT count(*) FROM messages WHERE {which}", given).fetchone()[0]  # noqa: S608
            rows = self._sql.execute(
                f"SELECT * FROM messages WHERE {which} ORDER BY number DESC LIMIT :limit OFFSET :offset",  # noqa: S608
                given,
            ).fetchall()
            return [self._message(row) for row in reversed(rows)], total

    def pending(self, agent: str) -> list[Message]:
        """What waits to be typed to an agent, oldest first."""
        with self._reading():
            rows = self._sql.execute(
                "SELECT messages.* FROM deliveries JOIN messages ON number = deliveries.message"
                " WHERE state = 'queued' AND agent = ? AND typing_since IS NULL ORDER BY number",
                (agent,),
            ).fetchall()
            return [self._message(row) for row in rows]

    def being_typed(self) -> list[tuple[str, str]]:
        """Messages and agents to whom they are being typed, or were when their sender ended."""
        return self._sql.execute(
            "SELECT id, agent FROM deliveries JOIN messages ON number = deliveries.message"
            " WHERE state = 'queued' AND typing_since IS NOT NULL ORDER BY number"
        ).fetchall()

    def counts(self) -> dict[str, int]:
        """How many deliveries are in each state."""
        found = dict(self._sql.execute("SELECT state, count(*) FROM deliveries GROUP BY state"))
        return {state.value: found.get(state.value, 0) for state in DeliveryState}

    def _find(self, message_id: str) -> Message | None:
        row = self._sql.execute("SELECT * FROM messages WHERE id = ?", (message_id,)).fetchone()
        return self._message(row) if row else None

    def _message(self, row: tuple[int, str, str | None, str, str, str]) -> Message:
        number, message_id, sender, target, text, created_at = row
        deliveries = self._sql.execute(
            "SELECT agent, state, at, reason FROM deliveries WHERE message = ? ORDER BY position", (number,)
        )
        return Message(
            message_id,
            sender,
            target,
            text,
            created_at,
            tuple(Delivery(agent, DeliveryState(state), at, reason) for agent, state, at, reason in deliveries),
        )

    @contextmanager
    def _writing(self, lasting: bool = True) -> Iterator[None]:
        """A change: all of it or nothing, and if `lasting`, on the disk at the end with all that came before."""
        self._sql.execute(f"PRAGMA synchronous = {'FULL' if lasting else self._hasty}")
        # The log may only be brought into the database by who waits for the disk.
        self._sql.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES if lasting else 0}")
        with _transaction(self._sql, "IMMEDIATE"):
            yield

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with _transaction(self._sql, "DEFERRED"):
            yield


class Messages:
    """The messages of a workspace's sessions. `warn(session_id, text)` is told of damage."""

    def __init__(self, layout: Layout, now: Callable[[], str], warn: Callable[[str, str], None]) -> None:
        self._layout = layout
        self._now = now
        self._warn = warn

    def path(self, session_id: str) -> str:
        return self._layout.session(session_id).at(".mas", "messages.db")

    def exists(self, session_id: str) -> bool:
        """Whether anything was ever sent in the session."""
        return os.path.lexists(self.path(session_id))

    def kept_aside(self, session_id: str) -> list[str]:
        """Damaged databases of the session that were put aside."""
        directory, name = os.path.split(self.path(session_id))
        try:
            found = sorted(os.listdir(directory))
        except FileNotFoundError:
            return []
        return [
            os.path.join(directory, kept)
            for kept in found
            if kept.startswith(f"{name}.corrupt-") and not kept.endswith(_SIDES)
        ]

    @contextmanager
    def open(self, session_id: str) -> Iterator[Mailbox]:
        """The session's messages. A damaged database is put aside, and where that shows only in use, `Corrupt`."""
        path = self.path(session_id)
        try:
            with self._connected(session_id) as (connection, fresh), _our_errors(path):
                yield Mailbox(connection, fresh)
        except _Damage as damage:
            self._renew(session_id)
            raise Corrupt(path, damage.why, "mas inbox --all; what was damaged is kept beside it") from None

    @contextmanager
    def shut(self, session_id: str) -> Iterator[None]:
        """Keep everybody from the session's messages, all of which are now in the one file."""
        path = self.path(session_id)
        with self._held(session_id, shared=False):
            if os.path.lexists(path):
                try:
                    with _our_errors(path), closing(_connect(path)) as connection:
                        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                except _Damage:
                    # It is kept as it is.
                    pass
            yield

    @contextmanager
    def typing(self, session_id: str, agent: str) -> Iterator[None]:
        """The right to type to an agent, waiting for it; whoever dies gives it back."""
        with self._typing_lock(session_id, agent) as fd:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield

    @contextmanager
    def nobody_typing(self, session_id: str, agent: str) -> Iterator[bool]:
        """Whether nobody was typing to the agent; if so, nobody is until this ends."""
        with self._typing_lock(session_id, agent) as fd:
            yield try_lock(fd)

    @contextmanager
    def _typing_lock(self, session_id: str, agent: str) -> Iterator[int]:
        try:
            fd = open_lock(self._layout.session(session_id).at(".mas", f"typing-{agent}.lock"))
        except FileNotFoundError:
            # Deleted since its messages were opened.
            raise NoSession(session_id) from None
        try:
            yield fd
        finally:
            os.close(fd)

    @contextmanager
    def _connected(self, session_id: str) -> Iterator[tuple[sqlite3.Connection, bool]]:
        """A connection to a database that is there and can be opened, and whether it had no log yet."""
        path = self.path(session_id)
        for _ in range(2):
            with self._held(session_id, shared=True):
                fresh = not os.path.lexists(f"{path}-wal")
                try:
                    with _our_errors(path):
                        connection = _opened(path)
                except _Damage:
                    pass
                else:
                    with closing(connection):
                        yield connection, fresh
                    return
            self._renew(session_id)
        raise Corrupt(path, "it cannot be made anew")

    def _renew(self, session_id: str) -> None:
        """Make the database; what is there and damaged is put aside."""
        path = self.path(session_id)
        with self._held(session_id, shared=False):
            if os.path.lexists(path):
                try:
                    with _our_errors(path):
                        _check(path)
                    return
                except _Damage as damage:
                    aside = self._put_aside(path)
                    self._warn(session_id, f"{path} is damaged: {damage.why}; kept as {aside}, a new one begun")
            elif os.path.lexists(f"{path}-wal"):
                # Its database is gone; a new one must not take it for its own.
                set_aside(f"{path}-wal", self._now())
            remove_file(f"{path}-shm")
            with _our_errors(path):
                _make(path)

    def _put_aside(self, path: str) -> str:
        aside = set_aside(path, self._now())
        if os.path.lexists(f"{path}-wal"):
            os.rename(f"{path}-wal", f"{aside}-wal")
        return aside

    @contextmanager
    def _held(self, session_id: str, shared: bool) -> Iterator[None]:
        """Hold the lock beside the database; `Busy` if that takes too long, `NoSession` if there is no session."""
        path = self._layout.session(session_id).at(".mas", "messages.lock")
        deadline = time.monotonic() + _PATIENCE
        while (fd := self._lock(session_id, path, shared)) is None:
            if time.monotonic() > deadline:
                raise Busy(f"The messages of session {session_id} are in use by another process", "try again")
            time.sleep(_LOOK_AGAIN)
        try:
            yield
        finally:
            os.close(fd)

    def _lock(self, session_id: str, path: str, shared: bool) -> int | None:
        """The lock file, open and locked; None if others have it, or the directory goes elsewhere meanwhile."""
        if not self._layout.is_session(session_id):
            raise NoSession(session_id)
        try:
            ensure_directory(os.path.dirname(path), PRIVATE_DIR)
            fd = open_lock(path)
        except FileNotFoundError:
            return None
        if try_lock(fd, shared) and still_at(fd, path):
            return fd
        os.close(fd)
        return None


class _Damage(Exception):
    """The database cannot be read."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def _of(there: dict[str, Delivery], agent: str, message_id: str) -> Delivery:
    if agent not in there:
        raise Conflict(f"Message {message_id} is not for agent {agent}", "mas inbox --all")
    return there[agent]


@contextmanager
def _transaction(connection: sqlite3.Connection, kind: str) -> Iterator[None]:
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # Some errors have rolled it back already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def _opened(path: str) -> sqlite3.Connection:
    """A connection to a whole database of the present version."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        raise _Damage("it is missing") from None
    if not stat.S_ISREG(found.st_mode):
        raise _Damage("it is not a file")
    connection = _connect(path)
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            # A new one gets its name when it is whole.
            raise _Damage("it is empty")
        if version > VERSION:
            raise Corrupt(path, f"it was written by a newer MAS (version {version} of it)", "mas version")
        if version < VERSION:
            _migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _migrate(connection: sqlite3.Connection) -> None:
    """Bring a database to the present version, in one step."""
    with _transaction(connection, "IMMEDIATE"):
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        for script in _MIGRATIONS[version:]:
            for statement in script.split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")


def _make(path: str) -> None:
    """A new database, whole before it has its name."""
    directory, name = os.path.split(path)
    half = os.path.join(directory, f".{name}.tmp")
    # What a killed maker left.
    _remove(half)
    fd = os.open(half, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        # SQLite gives the files beside it the same mode.
        os.fchmod(fd, PRIVATE_FILE)
        with closing(_connect(half)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("PRAGMA journal_mode = WAL")
            _migrate(connection)
        os.fsync(fd)
        os.rename(half, path)
    except BaseException:
        _remove(half)
        raise
    finally:
        # Not while SQLite is at work: closing any descriptor of a file gives up all locks on it.
        os.close(fd)
    sync_directory(directory)


def _remove(path: str) -> None:
    for side in ("", *_SIDES):
        remove_file(path + side)


def _check(path: str) -> None:
    """Damage if the database cannot be used; takes longer than opening it."""
    with closing(_opened(path)) as connection:
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise _Damage(found)
        connection.execute("SELECT id, sender, target, message, created_at FROM messages LIMIT 1").fetchall()
        connection.execute(
            "SELECT message, position, agent, state, at, reason, typing_since FROM deliveries LIMIT 1"
        ).fetchall()


@contextmanager
def _our_errors(path: str) -> Iterator[None]:
    """Says what SQLite refused in MAS's own words."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translated(error, path) from error


def _translated(error: sqlite3.Error, path: str) -> MasError | _Damage:
    code = getattr(error, "sqlite_errorcode", None) or 0
    kind = code & 0xFF
    if code in _FULL or kind in _FULL or (kind in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and _no_room(path)):
        return DiskFull(f"No room left on the disk ({path})", "df -h; mas prune --older-than 7d")
    if kind in _DAMAGED or code == sqlite3.SQLITE_IOERR_SHORT_READ:
        return _Damage(str(error))
    if kind in _BUSY:
        return Busy(f"Another process is writing to {path}", "try again")
    if kind in _REFUSED:
        return DiskRefused(f"The disk refused: {error} ({path})", "mas doctor")
    return Disk(f"The disk failed: {error} ({path})", "dmesg; mas doctor")


def _no_room(path: str) -> bool:
    try:
        found = os.statvfs(os.path.dirname(path))
    except FileNotFoundError:
        return False
    return found.f_bavail == 0 or (found.f_files > 0 and found.f_favail == 0)
