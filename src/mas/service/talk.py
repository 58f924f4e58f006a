"""Send, output, attach: what passes between people and an agent's terminal."""

from __future__ import annotations

from mas.model.errors import AgentExited, Conflict, NoAgent
from mas.model.ids import SessionId
from mas.model.message import parse_message
from mas.model.reports import AgentOutput, Sent
from mas.model.session import Session, Status
from mas.model.team import Agent
from mas.runtime.runtime import PaneState, Place
from mas.service.team import place_of
from mas.service.world import World


def send(world: World, session_id: SessionId, target: str, message: str, sender: str | None) -> Sent:
    """Type a message to every agent that `target` means; nobody gets it if one of them has ended."""
    text = parse_message(message)
    session = world.records.load(session_id)
    run = world.records.load_run(session_id)
    agents = run.team.targets(target)
    place, panes = _panes_of(world, session, agents)
    for agent in agents:
        delay = world.providers().submit_delay(agent.provider or "", agent.command)
        try:
            world.runtime.paste(place, panes[agent.id], text, delay)
        except AgentExited:
            # The whole team may be gone, which is the better thing to say.
            _live_panes(world, session)
            raise _not_running([agent.id], session_id) from None
    size = len(text.encode())
    world.logs.session(session_id, f"send from={sender or 'person'} to={target} bytes={size}")
    world.registry.touch(session_id)
    return Sent(session_id, target, tuple(agent.id for agent in agents), size)


def _panes_of(world: World, session: Session, agents: tuple[Agent, ...]) -> tuple[Place, dict[str, str]]:
    """Where to type. Of one agent the record is enough, since a paste looks for itself; of several all must live."""
    place = place_of(session)
    recorded = {agent.id: agent.pane for agent in session.agents if agent.pane}
    if place and session.status is Status.ACTIVE and len(agents) == 1 and agents[0].id in recorded:
        return place, recorded
    place, panes = _live_panes(world, session)
    ended = [agent.id for agent in agents if agent.id not in panes]
    if ended:
        raise _not_running(ended, session.id)
    return place, {agent: state.pane for agent, state in panes.items()}


def _not_running(agents: list[str], session_id: SessionId) -> AgentExited:
    return AgentExited(f"Not running: agent {', '.join(agents)}", f"mas show {session_id}")


def output(world: World, session_id: SessionId, agent: str, lines: int) -> AgentOutput:
    """What an agent's terminal shows; once it is gone, what its log kept."""
    session = world.records.load(session_id)
    known_agent(session, agent)
    place = place_of(session)
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
        return paths.session_log()
    known_agent(world.records.load(session_id), agent)
    return paths.agent_log(agent)


def attach(world: World, session_id: SessionId, agent: str | None) -> None:
    """Hand the terminal over to the session. Does not return."""
    session = world.records.load(session_id)
    if agent is not None:
        known_agent(session, agent)
    place, panes = _live_panes(world, session, dead_too=True)
    world.runtime.attach(place, panes[agent].pane if agent else None)


def _live_panes(world: World, session: Session, dead_too: bool = False) -> tuple[Place, dict[str, PaneState]]:
    place = place_of(session)
    panes = world.runtime.panes(place) if place and session.status is Status.ACTIVE else []
    if place is None or not panes:
        raise Conflict(f"Session {session.id} is not running", f"mas restore {session.id}")
    return place, {pane.agent: pane for pane in panes if pane.agent and (dead_too or not pane.dead)}


def known_agent(session: Session, agent: str) -> None:
    """`NoAgent` if the session has no such agent."""
    if agent not in {known.id for known in session.agents}:
        ids = " ".join(known.id for known in session.agents)
        raise NoAgent(f"No agent {agent!r} in session {session.id} (there are: {ids})", f"mas show {session.id}")
