"""Terminals of this machine's agents; those of one session share their queries to its tmux server."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from threading import Lock

from mas.model.errors import AgentExited, Corrupt, NoSession, NoTmux
from mas.model.ids import SessionId
from mas.runtime.runtime import PaneSize, Place
from mas.service.agents.living import place_of
from mas.service.agents.terminal import Look, Piece, Screen
from mas.service.world import World
from mas.store.agent.log_stream import Recording

# How old a look may be before the next one asks tmux again.
_FRESH = 1.0
_HISTORY = 1000
# A screen is exact once the log has been quiet this long, and the launcher holds nothing back.
_QUIET = 0.02
# Then tmux has yet to read what its terminal holds, at most 12 KiB: with every answer it has read 4 of them.
_ANSWERS = 4
_LONG_QUIET = 2.0
_TRIES = 20
_NEXT_TRY = 0.01
# What may have been written down and not yet drawn: the launcher's buffer, the terminal's and tmux's.
_IN_FLIGHT = 448 << 10
_TAIL = 64 << 10
# The size panes are opened with.
_USUAL = (100, 30)
_RESET = b"\x1bc"
# Ends a sequence that was cut off, then undoes what full-screen programs do to a terminal. Where none did, leaving
# their screen moves the cursor to where it was kept last: here.
_SETTLE = b"\x18\x1b7\x1b[?1049l\x1b[?1000l\x1b[?2004l\x1b[?25h\x1b[0m\x0f"
_BRACKETS = b"\x1b[?2004h"
_NO_BRACKETS = b"\x1b[?2004l"
_LOOK_BACK = 8 << 20


class WatchedTeams:
    """The sessions that are being watched at the moment."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._lock = Lock()
        self._teams: dict[SessionId, tuple[_TeamPanes, int]] = {}

    def terminal(self, session_id: SessionId, agent: str) -> WatchedTerminal:
        """The terminal of one agent; `NoSession` and `NoAgent` if there is none."""
        self._world.records.load(session_id).agent(agent)
        with self._lock:
            team, watchers = self._teams.get(session_id) or (_TeamPanes(self._world, session_id), 0)
            self._teams[session_id] = (team, watchers + 1)
        path = self._world.layout.session(session_id).agent_log(agent)
        return WatchedTerminal(team, agent, path, lambda: self._leave(session_id))

    def _leave(self, session_id: SessionId) -> None:
        with self._lock:
            team, watchers = self._teams[session_id]
            if watchers > 1:
                self._teams[session_id] = (team, watchers - 1)
                return
            del self._teams[session_id]
        team.close()


class _TeamPanes:
    """The panes of one session, looked at together."""

    def __init__(self, world: World, session_id: SessionId) -> None:
        self.runtime = world.runtime
        self._world = world
        self._session_id = session_id
        self._lock = Lock()
        self._watching = ExitStack()
        self._place: Place | None = None
        self._panes: dict[str, PaneSize] = {}
        self._unseen: NoTmux | None = None
        self._at = 0.0

    def look(self, agent: str, fresh: bool = False) -> tuple[Place, PaneSize] | None:
        """Where an agent's pane is and how it is; None if it has none. `NoTmux` if it could not be looked at."""
        with self._lock:
            if fresh or time.monotonic() - self._at > _FRESH:
                self._look()
                self._at = time.monotonic()
            if self._unseen:
                raise self._unseen
            pane = self._panes.get(agent)
            return (self._place, pane) if self._place and pane else None

    def _look(self) -> None:
        self._panes, self._unseen = {}, None
        self._be_at(self._active_place())
        if self._place:
            try:
                sizes = self.runtime.sizes(self._place)
            except NoTmux as error:
                # Kept like any other look: those who wait behind this one need not wait as long each.
                self._unseen = error
                return
            self._panes = {size.state.agent: size for size in sizes if size.state.agent}

    def _active_place(self) -> Place | None:
        try:
            return place_of(self._world, self._world.records.load(self._session_id))
        except (NoSession, Corrupt):
            return None

    def _be_at(self, place: Place | None) -> None:
        if place == self._place:
            return
        self._watching.close()
        self._place = place
        if place:
            self._watching.enter_context(self.runtime.watching(place))

    def close(self) -> None:
        with self._lock:
            self._be_at(None)


class WatchedTerminal:
    """The `Terminal` of one agent of this machine."""

    def __init__(self, team: _TeamPanes, agent: str, path: str, leave: Callable[[], None]) -> None:
        self._team = team
        self._agent = agent
        self._path = path
        self._recording = Recording(path)
        # Emptied by the first one that closes it.
        self._leaving = [leave]
        self._size = _USUAL

    @property
    def log_path(self) -> str:
        return self._path

    def look(self, fresh: bool = False) -> Look:
        found = self._team.look(self._agent, fresh)
        if found is None:
            return Look("", *self._size, ended=True, exit_status=None)
        place, pane = found
        self._size = (pane.columns, pane.rows)
        state = pane.state
        run = f"{place.socket} {state.pane} {state.pid}"
        return Look(run, *self._size, ended=state.dead, exit_status=state.exit_status)

    def snapshot(self) -> Screen:
        found = self._team.look(self._agent)
        if found is None:
            return self._written()
        place, pane = found
        try:
            return self._drawn(place, pane.state.pane)
        except AgentExited:
            # Its pane has gone since the look.
            self._team.look(self._agent, fresh=True)
            return self._written()

    def _drawn(self, place: Place, pane: str) -> Screen:
        first = self._recording.end()
        for _ in range(_TRIES):
            quiet = self._recording.age()
            if quiet >= _QUIET and not self._recording.is_ahead():
                for _ in range(_ANSWERS if quiet < _LONG_QUIET else 0):
                    self._team.runtime.sizes(place)
                screen, before = self._taken(place, pane)
                if self._recording.end() == before:
                    return screen._replace(exact=True)
            time.sleep(_NEXT_TRY)
        screen, before = self._taken(place, pane)
        return screen._replace(position=max(first, before - _IN_FLIGHT))

    def _taken(self, place: Place, pane: str) -> tuple[Screen, int]:
        before = self._recording.end()
        data, columns, rows, pastes = self._team.runtime.snapshot(place, pane, _HISTORY)
        if pastes is None:
            pastes = self._recording.last_of((_BRACKETS, _NO_BRACKETS), before, _LOOK_BACK) == _BRACKETS
        return Screen(data + (_BRACKETS if pastes else b""), columns, rows, before, exact=False), before

    def _written(self) -> Screen:
        """The end of the log, from the start of a line."""
        end = self._recording.end()
        data, _ = self._recording.read(max(0, end - _TAIL), _TAIL)
        if end > _TAIL:
            data = data.partition(b"\n")[2] or data
        return Screen(_RESET + data + _SETTLE, *self._size, end, exact=True)

    def read(self, position: int, most: int) -> Piece:
        data, position = self._recording.read(position, most)
        return Piece(data, position, self._recording.end() - position)

    def type(self, data: bytes) -> None:
        place, pane = self._living()
        self._team.runtime.keys(place, pane.state.pane, data)

    def resize(self, columns: int, rows: int) -> None:
        place, pane = self._living()
        self._team.runtime.resize(place, pane.state.pane, columns, rows)
        self._team.look(self._agent, fresh=True)

    def _living(self) -> tuple[Place, PaneSize]:
        found = self._team.look(self._agent)
        if found is None:
            raise AgentExited(f"Agent {self._agent} is not running", "mas list")
        return found

    def close(self) -> None:
        try:
            leave = self._leaving.pop()
        except IndexError:
            return
        self._recording.close()
        leave()
