"""Living: where a session runs, which of its agents have panes there, and the state of each agent."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from mas.model.errors import Conflict
from mas.model.ids import SessionId
from mas.model.session import Session, Status
from mas.model.state import LAUNCHED, NO_REPORTS, AgentState, State, fold
from mas.runtime.runtime import NO_PROCESS, PaneState, Place
from mas.service.world import World
from mas.store.agent.agentlog import EXIT, last_run

NOT_RUNNING = AgentState(State.EXITED, "", "not running", "tmux")


def place_of(world: World, session: Session) -> Place | None:
    """Where the session runs; None if it does not."""
    runs = session.status is Status.ACTIVE and session.socket is not None
    return Place(session.socket or "", session.tmux, world.layout.home()) if runs else None


def by_agent(panes: Iterable[PaneState]) -> dict[str, PaneState]:
    """The panes of agents, dead ones too; panes that people opened are left out."""
    return {pane.agent: pane for pane in panes if pane.agent}


def panes_of(world: World, session: Session) -> dict[str, PaneState]:
    """The panes of a session's agents, by one look at tmux; none if it does not run."""
    place = place_of(world, session)
    return by_agent(world.runtime.panes(place)) if place else {}


def running_panes(world: World, session: Session) -> tuple[Place, dict[str, PaneState]]:
    """Where the session runs, and the panes of its agents; `Conflict` if it does not run."""
    place = place_of(world, session)
    panes = world.runtime.panes(place) if place else []
    if place is None or not panes:
        raise not_running(session.id)
    return place, by_agent(panes)


def running_pane(world: World, session: Session, agent_id: str) -> tuple[Place, PaneState]:
    """Where the session runs, and the agent's pane; `Conflict` if there is none."""
    place, panes = running_panes(world, session)
    if agent_id not in panes:
        raise Conflict(f"The pane of agent {agent_id} is gone", f"mas stop {session.id}; mas restore {session.id}")
    return place, panes[agent_id]


def not_running(session_id: SessionId) -> Conflict:
    return Conflict(f"Session {session_id} is not running", f"mas restore {session_id}")


def state_of(world: World, session_id: SessionId, agent_id: str, pane: PaneState | None) -> AgentState:
    """The state of an agent; `pane` is its pane as it was just looked at, None if it has none."""
    return state_and_restarts(world, session_id, agent_id, pane)[0]


def state_and_restarts(
    world: World, session_id: SessionId, agent_id: str, pane: PaneState | None
) -> tuple[AgentState, int]:
    """The same, and how often its launcher has started the agent again."""
    if pane is None:
        return NOT_RUNNING, 0
    run = _last_run(world, session_id, agent_id)
    start = _start_of(run)
    if start.get("launcher") != pane.pid:
        # What is written there is of an earlier run: this one's launcher has not begun yet.
        state = AgentState(State.STARTING, "", LAUNCHED, "tmux")
        return (_ended(pane, state) if pane.dead else state), 0
    restarts = start.get("restarts")
    state = _ended(pane, fold(run, ())) if pane.dead else _running(run)
    return state, restarts if isinstance(restarts, int) else 0


def _ended(pane: PaneState, reported: AgentState) -> AgentState:
    """The state of an agent whose pane is dead; its launcher knows best how it exited, if it recorded that."""
    if pane.replaced:
        return AgentState(State.EXITED, "", "another program is running in its pane", "tmux")
    if pane.pid == NO_PROCESS:
        return AgentState(State.EXITED, "", "tmux could not start it again", "tmux")
    if reported.gone and reported.state is State.ERROR:
        return reported
    how = "ended" if pane.exit_status is None else f"exit status {pane.exit_status}"
    return AgentState(State.EXITED, "", reported.text if reported.state is State.EXITED else how, "tmux")


def _running(run: list[bytes]) -> AgentState:
    state = fold(run, _sources(run))
    if state.source == "none":
        return AgentState(State.UNKNOWN, "", NO_REPORTS, "tmux", state.at)
    return state


def reported_state(world: World, session_id: SessionId, agent_id: str) -> AgentState:
    """How an agent is by what was written down about its last run, without a look at tmux."""
    run = _last_run(world, session_id, agent_id)
    return fold(run, _sources(run))


def state_before_end(world: World, session_id: SessionId, agent_id: str) -> AgentState:
    """How an agent was before its last run ended, by what was written down."""
    run = [line for line in _last_run(world, session_id, agent_id) if EXIT not in line]
    return fold(run, _sources(run))


def has_ended(world: World, session_id: SessionId, agent_id: str) -> bool:
    """Whether the last run of an agent has ended, by what was written down; another may be about to begin."""
    return any(EXIT in line for line in _last_run(world, session_id, agent_id))


def last_start(world: World, session_id: SessionId, agent_id: str) -> dict[str, Any]:
    """What was noted when the agent's last run began; nothing if none has."""
    return _start_of(_last_run(world, session_id, agent_id))


def _last_run(world: World, session_id: SessionId, agent_id: str) -> list[bytes]:
    return last_run(world.layout.session(session_id).agent_events(agent_id))


def _start_of(run: list[bytes]) -> dict[str, Any]:
    try:
        start = json.loads(run[0]) if run else {}
    except (ValueError, RecursionError):
        return {}
    return start if isinstance(start, dict) else {}


def _sources(run: list[bytes]) -> tuple[str, ...]:
    """The sources that a run began with."""
    listed = _start_of(run).get("sources")
    return tuple(map(str, listed)) if isinstance(listed, list) else ()
