"""What a session can be started with: teams and providers."""

from typing import NamedTuple

from mas.model.isolation import Policy, SessionLimits
from mas.model.team import Restart, Unit


class TeamView(NamedTuple):
    """A team that a session can be started with. `origin` is `shipped` or `workspace`.

    `routing` is `hierarchy`, `open` or `table`; with a table, `routes` says which targets each agent may write to.
    `problem` says why a file is not a valid team; then it has no agents.
    """

    name: str
    agent_count: int
    units: tuple[Unit, ...]
    description: str = ""
    routing: str = "hierarchy"
    routes: dict[str, tuple[str, ...]] = {}  # noqa: RUF012 - never written to
    origin: str = "shipped"
    problem: str = ""
    restart: Restart | None = None
    restart_limit: int | None = None
    isolation: Policy = Policy()
    limits: SessionLimits = SessionLimits()


class ProviderView(NamedTuple):
    """A provider, and whether its program is on this machine and new enough. `install` says how to get it.

    `composer` says whether its file describes the program's input line: without that, messages are typed by the
    reported state alone.
    `origin` is `shipped`, or `workspace` if its file is there.
    """

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
    composer: bool = False
    origin: str = "shipped"


class CopiedProvider(NamedTuple):
    """A provider whose file, and the templates that it names, are now in the workspace."""

    id: str
    files: tuple[str, ...]


class TeamList(NamedTuple):
    """All team templates."""

    teams: tuple[TeamView, ...]


class ProviderList(NamedTuple):
    """All providers."""

    providers: tuple[ProviderView, ...]
