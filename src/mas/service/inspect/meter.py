"""The meter: how much of the machine and the disk sessions use, cached for callers that ask often."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from threading import Lock

from mas.model.ids import SessionId
from mas.model.state import State
from mas.runtime.usage import Host, Meter, Use, Whose
from mas.store.files.tree import usage
from mas.store.layout import Layout

# Walking through all files of a session is the expensive part: it is done rarely, and less often if it takes long.
_KEPT = 30.0
_PAUSES = 400


class SessionMeter:
    """Remembers the last look at processes, and for a while what is on disk."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._processes = Meter()
        self._lock = Lock()
        self._disk: dict[SessionId, tuple[float, float, int]] = {}
        self._crossed: set[SessionId] = set()
        self._states: dict[tuple[SessionId, str], tuple[tuple[int | None, int, int], State]] = {}

    def look(self) -> tuple[dict[Whose, tuple[int, Use]], Host]:
        """The launcher of every agent that lives and what it takes with all below it; and what the machine has."""
        return self._processes.look(os.path.realpath(self._layout.sessions))

    def state(self, session_id: SessionId, agent: str, launcher: int | None, find: Callable[[], State]) -> State:
        """The state of an agent, computed again only if its event file has changed since."""
        try:
            status = os.stat(self._layout.session(session_id).agent_events(agent))
            stamp = launcher, status.st_size, status.st_mtime_ns
        except OSError:
            stamp = launcher, 0, 0
        with self._lock:
            known = self._states.get((session_id, agent))
        if known and known[0] == stamp:
            return known[1]
        state = find()
        with self._lock:
            self._states[session_id, agent] = stamp, state
        return state

    def disk(self, session_id: SessionId, age: float = _KEPT) -> int:
        """The bytes a session uses on disk, at most `age` seconds old, or older if counting is expensive."""
        begun = time.monotonic()
        with self._lock:
            known = self._disk.get(session_id)
        if known and age and begun < known[0] + max(age, known[1]):
            return known[2]
        taken = usage(self._layout.session(session_id).root, open_up=True).disk
        now = time.monotonic()
        with self._lock:
            self._disk[session_id] = now, (now - begun) * _PAUSES, taken
        return taken

    def has_crossed(self, session_id: SessionId, much: bool) -> bool:
        """Whether a session takes `much` that did not when this was asked last."""
        with self._lock:
            before = session_id in self._crossed
            (self._crossed.add if much else self._crossed.discard)(session_id)
            return much and not before

    def keep_only(self, sessions: set[SessionId]) -> None:
        """Forget sessions that are gone."""
        with self._lock:
            self._disk = {key: value for key, value in self._disk.items() if key in sessions}
            self._crossed &= sessions
            self._states = {key: value for key, value in self._states.items() if key[0] in sessions}
