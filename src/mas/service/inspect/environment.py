"""Env: a session's variables, for a shell."""

from __future__ import annotations

from mas.model.ids import SessionId, parse_agent_id
from mas.service.agents.team import session_environment
from mas.service.world import World

REMOVED = ("MAS_DATA_DIR", "MAS_SESSION_MODE")


def env(world: World, session_id: SessionId, agent: str | None) -> dict[str, str]:
    """The variables an agent of the session has; those in `REMOVED` it must not have."""
    session = world.records.load(session_id)
    found = session_environment(world, session_id)
    if agent is not None:
        found["MAS_AGENT_ID"] = parse_agent_id(agent)
        session.agent(agent)
    return found
