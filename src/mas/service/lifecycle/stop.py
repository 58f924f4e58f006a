"""Stop: end every process of a session, keep its directory."""

from __future__ import annotations

from mas.model.ids import SessionId
from mas.model.session import Session, Status
from mas.model.views import SessionDetail
from mas.service.agents.team import close_team
from mas.service.inspect.show import describe
from mas.service.lifecycle.quit import quit_agents
from mas.service.world import World
from mas.store.workspace.registry import entry_of

TMUX_GONE = "its tmux session was gone"


def stop(world: World, session_id: SessionId, reason: str | None = None) -> SessionDetail:
    """Stop a session. Stopping twice is fine. A `reason` is stored: MAS itself stopped it."""
    session = world.records.load(session_id)
    with world.intents.begin(session_id, "stop", session.socket, lambda: world.records.load(session_id)) as operation:
        operation.no_return()
        session = stop_owned(world, session_id, reason)
        operation.done()
    return describe(world, session)


def stop_owned(world: World, session_id: SessionId, reason: str | None = None, lost: bool = False) -> Session:
    """End a session this process already owns and say so in all four places.

    A lost session that is stopped by hand is no longer lost: it must not come back by itself.
    """
    session = world.records.load(session_id)
    quit_agents(world, session, tuple(agent.id for agent in session.agents))
    close_team(world, session_id, session.socket)
    if session.status is Status.ACTIVE or (session.lost and not lost):
        return set_status(world, session, Status.STOPPED, reason, lost)
    return session


def set_status(
    world: World, session: Session, status: Status, reason: str | None = None, lost: bool = False
) -> Session:
    """Write a new status everywhere: first where the truth is kept, then where listings look."""
    changed = session.to(status, world.now(), reason, lost)
    world.records.save(changed)
    world.registry.put(entry_of(changed))
    world.logs.session(session.id, f"{status}")
    return changed
