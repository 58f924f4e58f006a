"""How much processor, memory and disk sessions, agents and the machine use."""

from typing import NamedTuple


class AgentStats(NamedTuple):
    """What an agent uses of the machine, with its launcher and all processes that they started.

    `cpu` is in cores, since the last request; `cpuSeconds` since it was started. Shared memory is counted once.
    """

    id: str
    cpu: float
    cpu_seconds: float
    memory: int
    processes: int


class HostStats(NamedTuple):
    """The machine: its size, and how much is free. `cpu` is the number of cores in use by any program."""

    cores: int
    cpu: float
    memory: int
    memory_free: int
    disk: int
    disk_free: int
    processes: int


class SessionStats(NamedTuple):
    """What a session uses of the machine. `diskLimit` is null if there is no limit."""

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
    """What the workspace uses of the machine."""

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
