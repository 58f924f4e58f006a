"""Output, logs, attach: what people see of an agent's terminal."""

from __future__ import annotations

from mas.model.errors import Conflict, NoAgent, NoSession
from mas.model.ids import SessionId
from mas.model.reports import AgentOutput
from mas.model.session import Session, Status
from mas.runtime.runtime import PaneState, Place
from mas.service.agents.team import place_of
from mas.service.messages.routing import check_may_read
from mas.service.world import World


def output(world: World, session_id: SessionId, agent: str, lines: int, reader: str | None = None) -> AgentOutput:
    """What an agent's terminal shows; once it is gone, what its log kept. An agent reads by the team's routing."""
    session = world.records.load(session_id)
    known_agent(session, agent)
    if reader is not None:
        check_may_read(world.records.load_run(session_id).team, reader, agent)
    place = place_of(world, session)
    if place and session.status is Status.ACTIVE:
        for pane in world.runtime.panes(place):
            if pane.agent == agent:
                return AgentOutput(agent, world.runtime.screen(place, pane.pane, lines))
    return AgentOutput(agent, world.logs.tail(world.layout.session(session_id).agent_log(agent), lines))


def logs(world: World, session_id: SessionId, agent: str | None, lines: int) -> str:
    """The last lines of the session's log, or of an agent's."""
    return world.logs.tail(log_path(world, session_id, agent), lines)


def log_path(world: World, session_id: SessionId, agent: str | None) -> str:
    paths = world.layout.session(session_id)
    if agent is None:
        # Not by its files: the log of a damaged session says how it came to that.
        if not world.layout.is_session(session_id):
            raise NoSession(session_id)
        return paths.session_log()
    known_agent(world.records.load(session_id), agent)
    return paths.agent_log(agent)


def attach(world: World, session_id: SessionId, agent: str | None) -> None:
    """Hand the terminal over to the session. Does not return."""
    session = world.records.load(session_id)
    if agent is not None:
        known_agent(session, agent)
    place, panes = live_panes(world, session, dead_too=True)
    world.runtime.attach(place, panes[agent].pane if agent else None)


def live_panes(world: World, session: Session, dead_too: bool = False) -> tuple[Place, dict[str, PaneState]]:
    """Where the session runs, and its panes by agent; `Conflict` if it does not."""
    place = place_of(world, session)
    panes = world.runtime.panes(place) if place and session.status is Status.ACTIVE else []
    if place is None or not panes:
        raise Conflict(f"Session {session.id} is not running", f"mas restore {session.id}")
    return place, {pane.agent: pane for pane in panes if pane.agent and (dead_too or not pane.dead)}


def known_agent(session: Session, agent: str) -> None:
    """`NoAgent` if the session has no such agent."""
    if agent not in {known.id for known in session.agents}:
        ids = " ".join(known.id for known in session.agents)
        raise NoAgent(f"No agent {agent!r} in session {session.id} (there are: {ids})", f"mas show {session.id}")
