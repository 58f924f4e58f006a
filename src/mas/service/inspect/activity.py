"""Activity: when a session was last used, taken from its log.

Whatever is done to a session is noted in its log, a message too. Nothing has to be written for this alone.
"""

from __future__ import annotations

from mas.model.session import Status
from mas.service.world import World


def last_activity(world: World, session_id: str, status: str, recorded: str) -> str:
    """When a session was last used; `recorded` is when its status last changed."""
    return max(recorded, world.logs.last_note(session_id)) if status == Status.ACTIVE else recorded
