"""Output, logs, attach: what people see of an agent's terminal."""

from __future__ import annotations

from mas.model.agents import AgentOutput
from mas.model.errors import NoSession
from mas.model.ids import SessionId
from mas.service.agents.living import panes_of, place_of, running_pane, running_panes
from mas.service.messages.routing import check_may_read
from mas.service.world import World


def output(world: World, session_id: SessionId, agent: str, lines: int, reader: str | None = None) -> AgentOutput:
    """What an agent's terminal shows; once it is gone, what its log kept. An agent reads by the team's routing."""
    session = world.records.load(session_id)
    session.agent(agent)
    if reader is not None:
        check_may_read(world.records.load_run(session_id).team, reader, agent)
    place = place_of(world, session)
    if place and (pane := panes_of(world, session).get(agent)):
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
    world.records.load(session_id).agent(agent)
    return paths.agent_log(agent)


def attach(world: World, session_id: SessionId, agent: str | None) -> None:
    """Hand the terminal over to the session. Does not return."""
    session = world.records.load(session_id)
    if agent is None:
        world.runtime.attach(running_panes(world, session)[0], None)
    else:
        place, pane = running_pane(world, session, session.agent(agent).id)
        world.runtime.attach(place, pane.pane)
