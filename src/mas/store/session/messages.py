"""Messages on disk: one SQLite database per session, which never loses a sent message.

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
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from threading import Lock

from mas.model.errors import Busy, Corrupt, Disk, DiskFull, DiskRefused, MasError, NoSession
from mas.store.files.atomic import ensure_directory, open_lock, set_aside, sync_directory
from mas.store.files.descriptors import DIRECTORY, NEW, remove_file, still_at, try_lock
from mas.store.layout import PRIVATE_DIR, PRIVATE_FILE, Layout
from mas.store.session.mailbox import MIGRATIONS, VERSION, Mailbox, transaction

# How long to wait for another process that writes, or that makes or packs the database.
_PATIENCE = 10.0
_LOOK_AGAIN = 0.005
_SIDES = ("-wal", "-shm")

_FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_ERROR}
_REFUSED = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_CANTOPEN}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}


class Messages:
    """The messages of a workspace's sessions. `warn(session_id, text)` is called on damage."""

    def __init__(self, layout: Layout, now: Callable[[], str], warn: Callable[[str, str], None]) -> None:
        self._layout = layout
        self._now = now
        self._warn = warn
        self._turns: dict[str, Lock] = {}

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
        with (
            self._usable(session_id),
            self._connected(session_id) as (connection, fresh),
            _our_errors(self.path(session_id)),
        ):
            yield Mailbox(connection, fresh, self._turns.setdefault(session_id, Lock()))

    def copy(self, source: str, target: str, reason: str) -> None:
        """Give a session what was sent in another. What is not all the way is undelivered there, for `reason`."""
        if not self.exists(source):
            return
        with (
            self._usable(source),
            self._connected(source) as (messages, _),
            self._connected(target) as (copy, _),
            _our_errors(self.path(target)),
        ):
            messages.backup(copy)
            Mailbox(copy).give_up(self._now(), reason)

    @contextmanager
    def _usable(self, session_id: str) -> Iterator[None]:
        """Set a database aside if damage shows while it is used."""
        try:
            yield
        except _Damage as damage:
            self._renew(session_id)
            hint = "mas inbox --all; the damaged file is kept next to it"
            raise Corrupt(self.path(session_id), damage.why, hint) from None

    @contextmanager
    def shut(self, session_id: str) -> Iterator[None]:
        """Keep all processes from the session's messages, which are now all in the one file."""
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
        """The right to type to an agent; waits for it. The kernel releases it if the process dies."""
        with self._typing_lock(session_id, agent) as fd:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield

    @contextmanager
    def nobody_typing(self, session_id: str, agent: str) -> Iterator[bool]:
        """Whether no other process was typing to the agent; if so, none can until this ends."""
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
        raise Corrupt(path, "it cannot be created again")

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
                    self._warn(session_id, f"{path} is damaged: {damage.why}; kept as {aside}, a new one created")
            elif os.path.lexists(f"{path}-wal"):
                # Its database is gone; a new one must not take it for its own.
                set_aside(f"{path}-wal", self._now())
            remove_file(f"{path}-shm")
            try:
                with _our_errors(path):
                    _make(path)
            except (FileNotFoundError, Disk):
                if self._layout.is_session(session_id):
                    raise
                # Deleted meanwhile: its directory has another place.
                raise NoSession(session_id) from None

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
            raise Corrupt.newer(path, version)
        if version < VERSION:
            _migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _migrate(connection: sqlite3.Connection) -> None:
    """Bring a database to the present version, in one step."""
    with transaction(connection, "IMMEDIATE"):
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        for script in MIGRATIONS[version:]:
            for statement in script.split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")


def _make(path: str) -> None:
    """A new database, whole before it has its name."""
    directory, name = os.path.split(path)
    # A delete may move the session meanwhile: nothing half-made goes with it.
    where = os.open(directory, DIRECTORY)
    try:
        half = f".{name}.tmp"
        # What a killed maker left.
        _remove(half, where)
        try:
            _fill(os.path.join(directory, half), where)
            os.rename(half, name, src_dir_fd=where, dst_dir_fd=where)
        finally:
            _remove(half, where)
    finally:
        os.close(where)
    sync_directory(directory)


def _fill(path: str, directory: int) -> None:
    """An empty database in an open directory, on the disk."""
    fd = os.open(os.path.basename(path), os.O_RDWR | NEW, PRIVATE_FILE, dir_fd=directory)
    try:
        # SQLite gives the files beside it the same mode.
        os.fchmod(fd, PRIVATE_FILE)
        with closing(_connect(path)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            # One that is not whole is thrown away: nothing of it need be written down to be taken back.
            connection.execute("PRAGMA journal_mode = MEMORY")
            _migrate(connection)
            # Not before: what is only in a log is brought over by closing, which does not say where there is no room.
            connection.execute("PRAGMA journal_mode = WAL")
        os.fsync(fd)
    finally:
        # Not while SQLite is at work: closing any descriptor of a file gives up all locks on it.
        os.close(fd)


def _remove(name: str, directory: int) -> None:
    for side in ("", *_SIDES):
        remove_file(name + side, directory)


def _check(path: str) -> None:
    """Damage if the database cannot be used; takes longer than opening it."""
    with closing(_opened(path)) as connection:
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise _Damage(found)
        # SQLite takes any value for a column; what is none of ours shows only when it is read.
        Mailbox(connection).page(limit=-1)
        if connection.execute("PRAGMA foreign_key_check").fetchone():
            raise _Damage("it holds deliveries of messages that are not there")
        connection.execute(
            "SELECT message, position, agent, state, at, reason, typing_since, forced, awaited, entered_again_at"
            " FROM deliveries LIMIT 1"
        ).fetchall()


@contextmanager
def _our_errors(path: str) -> Iterator[None]:
    """Says what SQLite refused in MAS's own words."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translated(error, path) from error
    except UnicodeDecodeError:
        # What SQLite quotes of a damaged schema.
        raise _Damage("it holds what is no text") from None


def _translated(error: sqlite3.Error, path: str) -> MasError | _Damage:
    code = getattr(error, "sqlite_errorcode", None) or 0
    kind = code & 0xFF
    if code in _FULL or kind in _FULL or (kind in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and _no_room(path)):
        return DiskFull(f"The disk is full ({path})", "df -h; mas prune --older-than 7d")
    # An error without a code comes from Python: bytes that are not valid text.
    undecoded = code == 0 and isinstance(error, sqlite3.OperationalError)
    if kind in _DAMAGED or code == sqlite3.SQLITE_IOERR_SHORT_READ or undecoded:
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
