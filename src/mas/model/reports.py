"""What MAS reports beside sessions: messages sent, upkeep done, damage found, numbers."""

# No postponed annotations here: NamedTuple would compile the type of every field anew at each start.
from typing import NamedTuple

from mas.model.isolation import Limits, Policy, SessionLimits, TierView
from mas.model.message import Delivery, Message
from mas.model.views import AgentView


class AgentOutput(NamedTuple):
    """What an agent's terminal shows, or last showed."""

    agent: str
    text: str


class AgentReport(NamedTuple):
    """What an agent says it is doing."""

    session_id: str
    agent: str
    text: str
    state: str | None
    at: str


class Sent(NamedTuple):
    """A message and how far it came with each agent."""

    session_id: str
    target: str
    agents: tuple[str, ...]
    bytes: int
    id: str
    deliveries: tuple[Delivery, ...]


class Standing(NamedTuple):
    """How an agent was at the end of a wait, and in its own words."""

    agent: str
    state: str
    text: str


class Waited(NamedTuple):
    """How a wait ended: `reached`, `timeout`, or with an agent that is `blocked` or `exited`; and who wrote back."""

    until: str
    end: str
    agents: tuple[Standing, ...]
    reply: Message | None = None


class Asked(NamedTuple):
    """A question and its answer: the message that came back, or else what the agent's terminal shows."""

    sent: Sent
    waited: Waited
    output: str | None


class RestartedAgent(NamedTuple):
    """An agent that runs again. Where it could not go on with its conversation, a warning says why."""

    session_id: str
    agent: AgentView
    warnings: tuple[str, ...] = ()


class Pruned(NamedTuple):
    """One thing a prune does: `what` is `archive` or `trash` (can be undone) or `remove` (for good).

    `reason` is which limit of a policy it is past.
    """

    session_id: str
    name: str | None
    status: str
    since: str
    what: str
    disk: int
    reason: str = ""


class PrunePlan(NamedTuple):
    """What a prune does, or would do."""

    items: tuple[Pruned, ...]
    done: bool


class Migrated(NamedTuple):
    """One old workspace or session and what became of it."""

    source: str
    session_id: str | None
    note: str


class Migration(NamedTuple):
    """What a migration found and did."""

    migrated: tuple[Migrated, ...]
    warnings: tuple[str, ...] = ()


class Finding(NamedTuple):
    """Something that was not as it should be, and what was (or would be) done."""

    what: str
    action: str


class Repair(NamedTuple):
    """What a repair found."""

    findings: tuple[Finding, ...]
    done: bool


class Check(NamedTuple):
    """One thing the doctor looked at."""

    name: str
    ok: bool
    text: str
    hint: str = ""
    absent: bool = False
    """Not there, and fine without."""


class Diagnosis(NamedTuple):
    """All the doctor looked at."""

    checks: tuple[Check, ...]
    ok: bool


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


class TeamAgent(NamedTuple):
    """An agent of a team template. What is None is taken from the session or the provider."""

    id: str
    role: str
    provider: str | None = None
    model: str | None = None
    command: str | None = None
    prompt: str | None = None
    restart: str | None = None
    restart_limit: int | None = None
    limits: Limits = Limits()


class TeamUnit(NamedTuple):
    """A unit of a team template; its first agent is the manager."""

    name: str
    agents: tuple[TeamAgent, ...]


class TeamView(NamedTuple):
    """A team that a session can be started with. `origin` is `shipped` or `workspace`.

    `routing` is `hierarchy`, `open` or `table`; for a table `routes` says whom each agent may write to.
    `problem` says why a file describes no team; then there are no agents.
    """

    name: str
    agent_count: int
    units: tuple[TeamUnit, ...]
    description: str = ""
    routing: str = "hierarchy"
    routes: dict[str, tuple[str, ...]] = {}  # noqa: RUF012 - never written to
    origin: str = "shipped"
    problem: str = ""
    restart: str | None = None
    restart_limit: int | None = None
    isolation: Policy = Policy()
    limits: SessionLimits = SessionLimits()


class ProviderView(NamedTuple):
    """A provider, and whether its program is on this machine and new enough. `install` says how to get it."""

    id: str
    description: str
    is_default: bool
    installed: bool
    program: str | None
    problem: str
    version: str | None = None
    min_version: str | None = None
    meets_minimum: bool = True
    install: str = ""


class TeamList(NamedTuple):
    """All team templates."""

    teams: tuple[TeamView, ...]


class ProviderList(NamedTuple):
    """All providers."""

    providers: tuple[ProviderView, ...]


class AgentList(NamedTuple):
    """The agents of a session."""

    agents: tuple[AgentView, ...]


class LogText(NamedTuple):
    """The end of a log; `agent` is None for the session's own."""

    agent: str | None
    text: str


class Variables(NamedTuple):
    """Environment variables."""

    variables: dict[str, str]


class MessageCounts(NamedTuple):
    """How many deliveries are in each state."""

    counts: dict[str, int]


class Health(NamedTuple):
    """Whether the server is well (`ok` or `degraded`), and how agents of a session started now would be isolated."""

    status: str
    version: str
    isolation: TierView
    failing: tuple[str, ...] = ()
    """The background tasks of the server that failed and have not run well since."""


class LoginCode(NamedTuple):
    """A code that signs one browser in, once."""

    code: str
    url: str
    expires_at: str


class ServerInfo(NamedTuple):
    """A server that runs: where it listens, on an address and on a socket file.

    `until_idle` is how many seconds without a session and a client it stays; None for one that stays for good.
    """

    pid: int
    url: str
    socket: str
    started_at: str
    version: str
    until_idle: float | None = None
