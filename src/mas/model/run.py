"""What to start: the body of `POST /runs` and the session's `config.json`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, NamedTuple

from mas.model.errors import BadInput
from mas.model.fields import FLAT, NOT_WRITTEN, Rule, in_field
from mas.model.ids import UUID4, SessionId, is_session_id
from mas.model.isolation import Policy, PolicyOrWord, SessionLimits
from mas.model.session import AgentRun
from mas.model.shapes import read, write
from mas.model.team import (
    CUSTOM,
    DEFAULT_TEAM,
    NAME,
    RESTART_LIMIT,
    ROUTING,
    Agent,
    Restart,
    Routing,
    Team,
    TeamBody,
    custom_team,
    routed,
    team_body,
    team_named,
)

# What a session's config.json is written as. Version 1 had no `request`; both are read.
CONFIG_VERSION = 2
_BODY_VERSION = 1
# An agent with its own command behaves as the provider of this name says.
GENERIC = "generic"


def _session_id(value: object) -> SessionId:
    if not isinstance(value, str) or not is_session_id(value.lower()):
        raise ValueError("not a session id")
    return SessionId(value.lower())


_SESSION_ID = Rule(
    "a full UUID of version 4",
    "The session's id, a UUID v4; 409 if it is in use",
    pattern=UUID4.replace("a-f", "a-fA-F").replace("89ab", "89abAB"),
    read=_session_id,
    written_as=str,
)
_VARIABLE = Rule("the name of a variable", pattern="[A-Za-z_][A-Za-z0-9_]*")
_VERSION = Rule(about="Of a session's config.json")
_REQUEST = Rule(about="Of a session's config.json: what was asked for when it was started")
_MODE = Rule(about="Does nothing: every session is isolated")
_MODEL = Rule(about="The model of agents that name none, if they take one")


class Run(NamedTuple):
    """Everything needed to start a session, and to start it again."""

    team: Annotated[Team, NOT_WRITTEN] = DEFAULT_TEAM
    name: Annotated[str | None, NAME] = None
    provider: str | None = None
    command: Annotated[str | None, NOT_WRITTEN] = None
    env: tuple[tuple[Annotated[str, _VARIABLE], str], ...] = ()
    lazy_units: bool = False
    isolation: PolicyOrWord = Policy()
    limits: SessionLimits = SessionLimits()
    session_id: Annotated[SessionId | None, _SESSION_ID] = None
    """The id the session is to have; without one, MAS draws it."""
    request: Annotated[Mapping[str, Any] | None, NOT_WRITTEN] = None
    """What was asked for, word for word; `config.json` keeps it beside what became of it."""
    model: Annotated[str | None, _MODEL] = None

    @property
    def policy(self) -> Policy:
        """How its agents must be isolated, as far as the run and its team say."""
        return self.isolation.under(self.team.isolation)

    @property
    def all_limits(self) -> SessionLimits:
        """What it may take, as far as the run and its team say."""
        return self.limits.under(self.team.limits)

    def settled(self, default_provider: str) -> Run:
        """The same run with every agent's provider and command written out."""

        def settle(agent: Agent) -> Agent:
            command = agent.command or self.command
            provider = GENERIC if command else agent.provider or self.provider or default_provider
            return agent._replace(provider=provider, command=command)

        units = tuple(unit._replace(agents=tuple(settle(agent) for agent in unit.agents)) for unit in self.team.units)
        return self._replace(
            team=self.team._replace(units=units), provider=self.provider or default_provider, command=None
        )


class TeamWish(NamedTuple):
    """The team that a run asks for: by name, agent by agent, and what is to hold for it."""

    team: str | None = None
    agents: TeamBody = TeamBody()
    routing: Annotated[Routing | None, ROUTING] = None
    restart: Restart | None = None
    restart_limit: Annotated[int | None, RESTART_LIMIT] = None


class RunBody(NamedTuple):
    """The session to start. An empty body starts the default team of 13."""

    wish: Annotated[TeamWish, FLAT] = TeamWish()
    run: Annotated[Run, FLAT] = Run()
    version: Annotated[int, _VERSION] = CONFIG_VERSION
    request: Annotated[dict[str, Any] | None, _REQUEST] = None
    session_mode: Annotated[Literal["legacy", "isolated"] | None, _MODE] = None


def parse_run(body: object, named: Callable[[str], Team] = team_named) -> Run:
    """A `POST /runs` body or a `config.json` as a `Run`; `named` knows the teams that can be asked for by name."""
    wish, run, version, request, _ = read(RunBody, body, called="a run")
    if version not in (_BODY_VERSION, CONFIG_VERSION):
        raise BadInput(f"This run was written by another version of MAS (version {version})", field="version")
    with in_field("team"):
        base = named(wish.team) if wish.team else DEFAULT_TEAM
    with in_field("agents"):
        team = custom_team(wish.agents, base)
    team = team._replace(
        name=base.name if wish.team else team.name,
        restart=wish.restart or team.restart,
        restart_limit=team.restart_limit if wish.restart_limit is None else wish.restart_limit,
    )
    return run._replace(
        team=team if wish.routing is None else routed(team, wish.routing),
        # The named team's rules for its agents still hold if the run lists other agents.
        isolation=run.isolation.under(base.isolation),
        limits=run.limits.under(base.limits),
        request=request,
    )


def asks_for_legacy(body: object) -> bool:
    """Whether a `POST /runs` body asks for the old single mode."""
    return isinstance(body, Mapping) and body.get("sessionMode") == "legacy"


def as_asked(body: Mapping[str, Any]) -> dict[str, Any]:
    """What `config.json` keeps of a request; one that is itself such a file brings no older request along."""
    return {key: value for key, value in body.items() if key != "request"}


def run_body(run: Run) -> dict[str, Any]:
    """The body that `parse_run` reads back as the same run: all of it but `session_id` and `request`."""
    team = run.team
    wish = TeamWish(
        None if team.name == CUSTOM else team.name,
        team_body(team),
        None if team.routing == Routing() else team.routing,
        team.restart,
        team.restart_limit,
    )
    whole = run._replace(isolation=run.policy, limits=run.all_limits, session_id=None)
    # Older readers of the file may look for these.
    older = {"version": _BODY_VERSION, "env": {}, "lazyUnits": False}
    return older | write(RunBody(wish, whole, _BODY_VERSION))


def agent_runs(team: Team, panes: Mapping[str, str] = {}) -> tuple[AgentRun, ...]:
    """The agents of a team, with the panes they run in where they run."""
    return tuple(
        AgentRun(agent.id, unit.name, agent.role, agent.provider or "", agent.model, panes.get(agent.id))
        for unit in team.units
        for agent in unit.agents
    )
