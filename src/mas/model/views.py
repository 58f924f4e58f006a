"""What MAS returns: the same values for the command line, the API and the page."""

from typing import Any, NamedTuple

from mas.model.isolation import Isolation, SessionLimits
from mas.model.session import AgentRun


class AgentView(NamedTuple):
    """An agent and its current state."""

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
    restarts: int = 0
    report: str | None = None
    """What it last reported about itself."""


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
    agents: tuple[AgentRun, ...] = ()
    tier: str | None = None
    """How strongly the kernel isolates its agents; None if that was not recorded when it started."""
    stopped_at: str | None = None
    """When it stopped, or was found to be lost; None while it is running."""
    lost: bool = False
    """Its tmux session ended without a `stop`."""
    reason: str | None = None
    """Why it stopped, if nobody asked for it."""
    warnings: tuple[str, ...] = ()
    """What an archive leaves out."""


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
    tier: str | None = None
    isolation: Isolation | None = None
    limits: SessionLimits = SessionLimits()
    reason: str | None = None
    """Why it stopped, if nobody asked for it."""
    stopped_at: str | None = None
    """When it stopped, or was found to be lost; None while it is running."""
    lost: bool = False
    """Its tmux session ended without a `stop`."""


_PLAIN = frozenset((str, int, float, bool, type(None)))
_NAMES: dict[type, tuple[str, ...]] = {}


def wire(value: object) -> Any:  # noqa: ANN401 - JSON
    """`value` as JSON would have it: camelCase names, lists, plain text."""
    kind = type(value)
    # A listing has thousands of such, and always the same fields.
    if kind in _PLAIN:
        return value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        names = _NAMES.get(kind) or _NAMES.setdefault(kind, tuple(map(camel, value._fields)))
        return {name: item if type(item) in _PLAIN else wire(item) for name, item in zip(names, value, strict=True)}
    if isinstance(value, (list, tuple)):
        return [wire(item) for item in value]
    if isinstance(value, dict):
        return {key: wire(item) for key, item in value.items()}
    return value


def camel(name: str) -> str:
    """A field's name on the wire."""
    if name == "sender":
        # `from` is a word that Python keeps for itself.
        return "from"
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
