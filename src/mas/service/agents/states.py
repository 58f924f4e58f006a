"""States: how the agents of a session are, by what was written down about them and by tmux's word on who lives."""

from __future__ import annotations

import json
from typing import Any

from mas.model.ids import SessionId
from mas.model.session import Session, Status
from mas.model.state import LAUNCHED, NO_REPORTS, AgentState, State, fold
from mas.runtime.runtime import PaneState
from mas.service.agents.output import known_agent
from mas.service.agents.team import place_of
from mas.service.world import World
from mas.store.agent.agentlog import EXIT, last_run


def state_of(world: World, session: Session, agent_id: str, sources: tuple[str, ...] | None = None) -> AgentState:
    """How one agent is; `sources` are those that its run began with, unless told otherwise.

    `NoAgent` if there is none of that name, `NoTmux` if it could not be looked at.
    """
    known_agent(session, agent_id)
    return seen(world, session.id, agent_id, _panes(world, session).get(agent_id), sources)


def states_of(world: World, session: Session) -> dict[str, AgentState]:
    """How all agents of a session are, after one look at tmux; `NoTmux` if that could not be had."""
    panes = _panes(world, session)
    return {agent.id: seen(world, session.id, agent.id, panes.get(agent.id)) for agent in session.agents}


def seen(
    world: World, session_id: SessionId, agent_id: str, pane: PaneState | None, sources: tuple[str, ...] | None = None
) -> AgentState:
    """How an agent is whose pane has just been looked at; None means that it has none."""
    return seen_with_restarts(world, session_id, agent_id, pane, sources)[0]


def seen_with_restarts(
    world: World, session_id: SessionId, agent_id: str, pane: PaneState | None, sources: tuple[str, ...] | None = None
) -> tuple[AgentState, int]:
    """The same, and how often its launcher has started the agent again."""
    if pane is None:
        return AgentState(State.EXITED, "", "not running", "tmux"), 0
    run = _last_run(world, session_id, agent_id)
    start = begun(run)
    if start.get("launcher") != pane.pid:
        # What is written there tells of an earlier run: this one's launcher has yet to begin.
        state = AgentState(State.STARTING, "", LAUNCHED, "tmux")
        return (_ended(pane, state) if pane.dead else state), 0
    restarts = start.get("restarts")
    state = _ended(pane, fold(run, ())) if pane.dead else _living(run, sources)
    return state, restarts if isinstance(restarts, int) else 0


def _ended(pane: PaneState, told: AgentState) -> AgentState:
    """An agent whose pane is dead, by tmux's word; its launcher may have said more about it."""
    if pane.replaced:
        return AgentState(State.EXITED, "", "another program runs in its pane", "tmux")
    if told.gone and told.state is State.ERROR:
        return told
    how = "ended" if pane.exit_status is None else f"exit status {pane.exit_status}"
    return AgentState(State.EXITED, "", told.text if told.state is State.EXITED and ";" in told.text else how, "tmux")


def _living(run: list[bytes], sources: tuple[str, ...] | None) -> AgentState:
    state = fold(run, _sources(run) if sources is None else sources)
    if state.source == "none":
        return AgentState(State.UNKNOWN, "", NO_REPORTS, "tmux", state.at)
    return state


def last_run_of(world: World, session_id: SessionId, agent_id: str) -> dict[str, Any]:
    """What was noted when the agent's last run began; nothing if none has."""
    return begun(_last_run(world, session_id, agent_id))


def before_its_end(world: World, session_id: SessionId, agent_id: str) -> AgentState:
    """How an agent was before its last run ended, by what was written down."""
    run = [line for line in _last_run(world, session_id, agent_id) if EXIT not in line]
    return fold(run, _sources(run))


def has_ended(world: World, session_id: SessionId, agent_id: str) -> bool:
    """Whether the last run of an agent has ended, by what was written down; another may be about to begin."""
    return any(EXIT in line for line in _last_run(world, session_id, agent_id))


def begun(run: list[bytes]) -> dict[str, Any]:
    """What was noted when the run began; nothing if none has."""
    try:
        start = json.loads(run[0]) if run else {}
    except (ValueError, RecursionError):
        return {}
    return start if isinstance(start, dict) else {}


def living(world: World, session: Session) -> set[str]:
    """The agents whose programs tmux says live; `NoTmux` if it could not be asked."""
    return {agent for agent, pane in _panes(world, session).items() if agent is not None and not pane.dead}


def told(world: World, session_id: SessionId, agent_id: str) -> AgentState:
    """How an agent is by what was written down about its last run alone, without a look at tmux."""
    run = _last_run(world, session_id, agent_id)
    return fold(run, _sources(run))


def _last_run(world: World, session_id: SessionId, agent_id: str) -> list[bytes]:
    return last_run(world.layout.session(session_id).agent_events(agent_id))


def _sources(run: list[bytes]) -> tuple[str, ...]:
    """The sources that a run began with."""
    listed = begun(run).get("sources")
    return tuple(map(str, listed)) if isinstance(listed, list) else ()


def _panes(world: World, session: Session) -> dict[str | None, PaneState]:
    place = place_of(world, session)
    panes = world.runtime.panes(place) if place and session.status is Status.ACTIVE else []
    return {pane.agent: pane for pane in panes}
