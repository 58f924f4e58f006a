"""What MAS answers: the same values for the command line, the API and the page."""

from __future__ import annotations

from typing import Any, NamedTuple


class AgentView(NamedTuple):
    """An agent and how it is now."""

    id: str
    unit: str
    role: str
    provider: str
    model: str | None
    state: str
    state_text: str
    state_source: str
    pane: str | None
    exit_status: int | None


class SessionInfo(NamedTuple):
    """A session in a listing."""

    session_id: str
    tmux_session: str
    name: str | None
    status: str
    created_at: str
    last_activity: str
    working_dir: str
    unit_dir: str
    workflows_dir: str
    agent_count: int
    tmux_socket: str | None


class SessionList(NamedTuple):
    """A page of sessions, of `total` in all."""

    sessions: tuple[SessionInfo, ...]
    total: int
    warnings: tuple[str, ...] = ()


class SessionDetail(NamedTuple):
    """Everything about one session."""

    session_id: str
    tmux_session: str
    name: str | None
    status: str
    created_at: str
    started_at: str
    last_activity: str
    working_dir: str
    unit_dir: str
    workflows_dir: str
    unit_dirs: dict[str, str]
    config_file: str
    logs: dict[str, str]
    tmux_socket: str | None
    origin: str | None
    session_file: dict[str, str]
    agents: tuple[AgentView, ...]
    warnings: tuple[str, ...] = ()


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


class Initialised(NamedTuple):
    """A workspace and what was made in it."""

    workspace: str
    name: str
    made: tuple[str, ...]


def wire(value: object) -> Any:  # noqa: ANN401 - JSON
    """`value` as JSON would have it: camelCase names, lists, plain text."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {_camel(key): wire(item) for key, item in value._asdict().items()}
    if isinstance(value, (list, tuple)):
        return [wire(item) for item in value]
    if isinstance(value, dict):
        return {key: wire(item) for key, item in value.items()}
    return value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
