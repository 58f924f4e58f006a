"""What MAS reports beside sessions: messages sent, upkeep done, damage found, numbers."""

# No postponed annotations here: NamedTuple would compile the type of every field anew at each start.
from typing import NamedTuple


class AgentOutput(NamedTuple):
    """What an agent's terminal shows, or last showed."""

    agent: str
    text: str


class Sent(NamedTuple):
    """Text that was typed to agents."""

    session_id: str
    target: str
    agents: tuple[str, ...]
    bytes: int


class Pruned(NamedTuple):
    """One thing a prune removes: `what` is `trash` (can be undone) or `remove` (for good)."""

    session_id: str
    name: str | None
    status: str
    since: str
    what: str
    disk: int


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


class Diagnosis(NamedTuple):
    """All the doctor looked at."""

    checks: tuple[Check, ...]
    ok: bool


class SessionStats(NamedTuple):
    """How much of the machine a session takes."""

    session_id: str
    name: str | None
    status: str
    agents: int
    live_agents: int
    processes: int
    disk: int


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
