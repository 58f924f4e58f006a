"""A session: one run of a team, its status, and which status may follow which."""

from enum import StrEnum
from typing import Annotated, Literal, NamedTuple, get_args

from mas.model.errors import BadTransition, NoAgent
from mas.model.fields import AGENT_ID
from mas.model.ids import SessionId, tmux_name
from mas.model.isolation import Isolation, SessionLimits


class Status(StrEnum):
    ACTIVE = "active"
    STOPPED = "stopped"
    ERROR = "error"


class Gone(StrEnum):
    """The status of a session that is no longer in the registry."""

    ARCHIVED = "archived"
    DELETED = "deleted"


# The values that listings accept: a stopped session that was not stopped on purpose is lost.
LOST = "lost"
Listed = Literal[Status.ACTIVE, Status.STOPPED, "lost", Status.ERROR, Gone.ARCHIVED, Gone.DELETED]
LISTED: tuple[str, ...] = get_args(Listed)
# What can be asked for without being done.
Tryable = Literal["stop", "restore", "archive", "unarchive", "delete", "undelete"]

_NEXT = {
    Status.ACTIVE: {Status.ACTIVE, Status.STOPPED, Status.ERROR},
    Status.STOPPED: {Status.STOPPED, Status.ACTIVE, Status.ERROR},
    # A damaged session is repaired first, and then it is stopped.
    Status.ERROR: {Status.ERROR, Status.STOPPED},
}


class AgentRun(NamedTuple):
    """An agent of a session and where it last ran."""

    id: Annotated[str, AGENT_ID]
    unit: str
    role: str
    provider: str
    model: str | None = None
    pane: str | None = None


class Session(NamedTuple):
    """A session as its directory records it."""

    id: SessionId
    status: Status
    created_at: str
    started_at: str
    last_activity: str
    name: str | None = None
    socket: str | None = None
    agents: tuple[AgentRun, ...] = ()
    origin: str | None = None
    isolation: Isolation | None = None
    """How its agents are isolated since its last start; None before the first."""
    limits: SessionLimits = SessionLimits()
    reason: str | None = None
    """Why it stopped, if nobody asked for it."""
    stopped_at: str | None = None
    """When it stopped, or was found to be lost; None while it is running."""
    lost: bool = False
    """Its tmux session ended without a `stop`."""

    @property
    def tmux(self) -> str:
        return tmux_name(self.id)

    def agent(self, agent_id: str) -> AgentRun:
        """The agent of that id; `NoAgent` if there is none."""
        for agent in self.agents:
            if agent.id == agent_id:
                return agent
        ids = " ".join(agent.id for agent in self.agents)
        raise NoAgent(f"No agent {agent_id!r} in session {self.id} (there are: {ids})", f"mas show {self.id}")

    def to(self, status: Status, now: str, reason: str | None = None, lost: bool = False) -> "Session":
        """The same session in `status`, or `BadTransition` if that step is not allowed."""
        if status not in _NEXT[self.status]:
            raise BadTransition(self.id, self.status, status, f"mas repair; mas show {self.id}")
        changed = self._replace(status=status, last_activity=now)
        if status is Status.ACTIVE:
            return changed._replace(reason=None, stopped_at=None, lost=False)
        stopped_at = self.stopped_at or (now if status is Status.STOPPED else None)
        return changed._replace(reason=reason, stopped_at=stopped_at, lost=lost)
