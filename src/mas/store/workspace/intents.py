"""Intents: what is being done to which session, so that work interrupted by a crash is found and finished.

Every verb that changes more than one place first writes an intent and keeps it locked. The kernel drops the
lock when the process dies: an intent without an owner is unfinished work for the next command.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from mas.model.errors import Busy, MasError
from mas.model.fields import parse_json, parse_record
from mas.model.ids import is_session_id
from mas.store.files.atomic import open_lock, sync_directory
from mas.store.files.descriptors import SAFE, remove_file, still_at, take_lock, try_lock, write_all
from mas.store.layout import Layout

_A_LOOK = 1.0
# What a listing does by itself about a session it finds damaged or without its tmux session, and how long at most.
_OF_LISTINGS = ("lost", "damage")
_A_LISTING = 10.0
_LOOK_AGAIN = 0.002


class Intent(NamedTuple):
    """One piece of work on one session, or on one agent of it. `socket` is the tmux server it may have touched."""

    session_id: str
    verb: str
    pid: int
    at: str
    socket: str | None = None
    agent: str | None = None


class Operation:
    """Work in progress, with its undo steps.

    If it fails, its undo steps are run, last first. What cannot be undone, and what fails past the point of
    no return, is left to the next command, as if the process had been killed.
    """

    def __init__(self, intent: Intent) -> None:
        self.intent = intent
        self.settled = False
        self._undo: list[Callable[[], object]] = []
        self._can_go_back = True

    def undo(self, step: Callable[[], object]) -> None:
        """Have `step` run if what follows fails."""
        self._undo.append(step)

    def forget(self) -> None:
        """Do not run the last undo step after all: what it would undo was not done by us."""
        self._undo.pop()

    def no_return(self) -> None:
        """From here on the work is finished, by us or by the next command, and not undone."""
        self._can_go_back = False

    def done(self) -> None:
        """All of it worked: keep it."""
        self.settled = True

    def roll_back(self) -> None:
        """Undo what was done; settled if that worked."""
        if self.settled or not self._can_go_back:
            return
        complete = True
        for step in reversed(self._undo):
            try:
                step()
            except (OSError, MasError):
                complete = False
        self.settled = complete


class Intents:
    """The unfinished work of one workspace."""

    def __init__(self, layout: Layout, now: Callable[[], str]) -> None:
        self._layout = layout
        self._now = now

    @contextmanager
    def begin(
        self,
        session_id: str,
        verb: str,
        socket: str | None = None,
        allowed: Callable[[], object] = bool,
        agent: str | None = None,
    ) -> Iterator[Operation]:
        """Own the session for one verb; `Busy` if another process does.

        `allowed` is called once no other process can change the session, and before anything is written: a
        verb it refuses by raising leaves nothing that a recovery could take for work cut short.
        """
        path = self._path(session_id)
        fd = self._own(path, session_id, verb)
        try:
            if left := self._read(path):
                raise Busy(f"An earlier {left.verb} of session {session_id} was interrupted", "mas list; try again")
            with self._session_lock(session_id):
                operation = Operation(Intent(session_id, verb, os.getpid(), self._now(), socket, agent))
                self._write(path, fd, operation.intent, allowed)
                try:
                    yield operation
                except BaseException:
                    operation.roll_back()
                    raise
                finally:
                    if operation.settled:
                        os.unlink(path)
                        # After a power cut, work that was reported as done must not come back as interrupted work.
                        with suppress(OSError):
                            sync_directory(self._layout.intents)
        finally:
            # Refused before anything was written: no process is at work on the session.
            if not os.fstat(fd).st_size and still_at(fd, path):
                os.unlink(path)
            os.close(fd)

    def _own(self, path: str, session_id: str, verb: str) -> int:
        """The intent file, open and locked; `Busy` if another process has it."""
        began = time.monotonic()
        left: Intent | None = None
        while True:
            fd = open_lock(path)
            if not try_lock(fd):
                os.close(fd)
                before, left = left, self._read(path)
                if left is None and before is not None:
                    # Its owner has just finished, and another process looks.
                    began = time.monotonic()
                if time.monotonic() - began > _patience(verb, left):
                    raise _busy(session_id, left)
                time.sleep(_LOOK_AGAIN)
                continue
            if still_at(fd, path):
                return fd
            # Its owner finished and removed it between our two looks.
            os.close(fd)

    def unfinished(self) -> Iterator[Operation]:
        """Work whose process is gone, each owned by the caller until it asks for the next."""
        for name in os.listdir(self._layout.intents):
            path = self._path(name)
            if not is_session_id(name):
                continue
            try:
                fd = os.open(path, os.O_RDWR | SAFE)
            except FileNotFoundError:
                continue
            try:
                if not try_lock(fd) or not still_at(fd, path):
                    continue
                intent = self._read(path)
                if intent is None:
                    # Killed before it was written: nothing had been touched yet.
                    remove_file(path)
                    continue
                operation = Operation(intent)
                yield operation
                if operation.settled:
                    remove_file(path)
            finally:
                os.close(fd)

    def sessions(self) -> set[str]:
        """The sessions that a process works on, or was working on when it was killed."""
        return {name for name in os.listdir(self._layout.intents) if is_session_id(name)}

    def is_owned(self, session_id: str) -> bool:
        """Whether a process works on the session now; interrupted work has no process."""
        try:
            fd = os.open(self._path(session_id), os.O_RDWR | SAFE)
        except FileNotFoundError:
            return False
        try:
            return not try_lock(fd)
        finally:
            os.close(fd)

    def _path(self, session_id: str) -> str:
        return os.path.join(self._layout.intents, session_id)

    def _write(self, path: str, fd: int, intent: Intent, allowed: Callable[[], object]) -> None:
        try:
            allowed()
            # A line cut off by a crash may be longer than ours.
            os.ftruncate(fd, 0)
            write_all(fd, (json.dumps(intent._asdict()) + "\n").encode())
            os.fsync(fd)
            sync_directory(self._layout.intents)
        except BaseException:
            os.unlink(path)
            raise

    def _read(self, path: str) -> Intent | None:
        try:
            with open(path, "rb") as file:
                intent = parse_record(Intent, parse_json(file.read()))
        except (FileNotFoundError, ValueError):
            # A line cut off by a crash was never acknowledged: its owner had done nothing yet.
            return None
        # An intent that names another session than its file does was not written by the owner of that session.
        return intent if intent.session_id == os.path.basename(path) else None

    @contextmanager
    def _session_lock(self, session_id: str) -> Iterator[None]:
        """Hold the session's own lock file too: scripts may guard their work with it."""
        path = self._layout.session(session_id).lock
        try:
            fd = open_lock(path)
        except (FileNotFoundError, NotADirectoryError):
            yield
            return
        try:
            # The last owner of the session releases this lock a moment after its intent.
            if not take_lock(fd, round(_A_LOOK / _LOOK_AGAIN), _LOOK_AGAIN):
                raise Busy(f"Session {session_id} is locked by another program", f"fuser {path}")
            yield
        finally:
            os.close(fd)


def _patience(verb: str, other: Intent | None) -> float:
    """How long to wait for the process that has a session."""
    if other is None:
        # The owner has written nothing: it only looks for interrupted work, and is gone in a moment.
        return _A_LOOK
    # A repair by a listing is no reason to refuse a command.
    return _A_LISTING if other.verb in _OF_LISTINGS and verb not in _OF_LISTINGS else 0.0


def _busy(session_id: str, intent: Intent | None) -> Busy:
    if intent is None:
        return Busy(f"Another mas process is working on session {session_id}", "try again")
    return Busy(
        f"Another mas process (pid {intent.pid}) is working on session {session_id}: {intent.verb}",
        "try again",
    )
