"""How much processor, memory and disk sessions, agents and the machine use."""

from typing import NamedTuple


class AgentStats(NamedTuple):
    """How much of the machine an agent takes: it, its launcher and all they started.

    `cpu` is in cores, since the last look; `cpu_seconds` since it was started. Memory counts what is shared once.
    """

    id: str
    cpu: float
    cpu_seconds: float
    memory: int
    processes: int


class HostStats(NamedTuple):
    """The machine itself: what all of it there is, and how much of that is free; cpu is in cores, in use by anybody."""

    cores: int
    cpu: float
    memory: int
    memory_free: int
    disk: int
    disk_free: int
    processes: int


class SessionStats(NamedTuple):
    """How much of the machine a session takes. `disk_limit` is None where there is none."""

    session_id: str
    name: str | None
    status: str
    agents: int
    live_agents: int
    states: dict[str, int]
    processes: int
    disk: int
    cpu: float = 0.0
    cpu_seconds: float = 0.0
    memory: int = 0
    disk_limit: int | None = None
    each: tuple[AgentStats, ...] = ()
    lost: bool = False


class Stats(NamedTuple):
    """How much of the machine the workspace takes."""

    active: int
    stopped: int
    error: int
    archived: int
    deleted: int
    live_agents: int
    disk: int
    sessions: tuple[SessionStats, ...]
    cpu: float = 0.0
    cpu_seconds: float = 0.0
    memory: int = 0
    processes: int = 0
    host: HostStats | None = None
    warnings: tuple[str, ...] = ()
