"""What to start: the body of `POST /runs` and the session's `config.json`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mas.model.errors import BadInput
from mas.model.fields import about, known, text
from mas.model.ids import SessionId, parse_name, parse_session_id, shown
from mas.model.isolation import (
    Policy,
    SessionLimits,
    parse_policy,
    parse_session_limits,
    policy_body,
    session_limits_body,
)
from mas.model.session import AgentRun
from mas.model.team import (
    CUSTOM,
    DEFAULT_TEAM,
    Agent,
    Routing,
    Team,
    parse_restart,
    parse_routing,
    parse_team,
    restart_body,
    routing_body,
    team_body,
    team_named,
)

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FIELDS = {
    "agents", "name", "team", "provider", "env", "lazyUnits", "routing", "restart", "restartLimit", "isolation",
    "limits", "model", "sessionId", "request", "version",
}  # fmt: skip
# What a session's config.json is written as. Version 1 had no `request`; both are read.
CONFIG_VERSION = 2
_BODY_VERSION = 1
_MODES = ("legacy", "isolated")
# An agent with its own command behaves as the provider of this name says.
GENERIC = "generic"


class Run(NamedTuple):
    """Everything needed to start a session, and to start it again."""

    team: Team = DEFAULT_TEAM
    name: str | None = None
    provider: str | None = None
    command: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    lazy_units: bool = False
    isolation: Policy = Policy()
    limits: SessionLimits = SessionLimits()
    session_id: SessionId | None = None
    """The id the session is to have; without one, MAS draws it."""
    request: Mapping[str, Any] | None = None
    """What was asked for, word for word; `config.json` keeps it beside what became of it."""
    model: str | None = None
    """For the agents that name none; a start gives it to those whose provider takes one."""

    @property
    def policy(self) -> Policy:
        """How its agents are to be isolated, as far as the run and its team say."""
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


def parse_run(body: object, named: Callable[[str], Team] = team_named) -> Run:
    """A `POST /runs` body as a `Run`; `sessionMode` may say one of the two words it once could, and changes nothing.

    `named` knows the teams that can be asked for by name.
    """
    if not isinstance(body, Mapping):
        raise BadInput("A run must be a JSON object")
    fields = known(
        {key: value for key, value in body.items() if key != "sessionMode" or value not in _MODES},
        "a run",
        _FIELDS,
    )
    if fields.get("version", CONFIG_VERSION) not in (_BODY_VERSION, CONFIG_VERSION):
        raise BadInput(f"This run was written by another version of MAS (version {fields['version']})")
    name = text(fields, "name")
    team_name = text(fields, "team")
    with about("team"):
        base = named(team_name) if team_name else DEFAULT_TEAM
    lazy = fields.get("lazyUnits", False)
    if not isinstance(lazy, bool):
        raise BadInput("lazyUnits must be true or false")
    with about("agents"):
        team = parse_team(_object(fields, "agents"), base)
    if fields.get("routing") is not None:
        team = team._replace(routing=parse_routing(fields["routing"], team))
    restart, limit = parse_restart(fields)
    team = team._replace(
        restart=team.restart if restart is None else restart,
        restart_limit=team.restart_limit if limit is None else limit,
    )
    with about("name"):
        name = None if name is None else parse_name(name)
    # Whatever agents it has, what the team asked for says of them still holds.
    with about("isolation"):
        isolation = parse_policy(fields.get("isolation")).under(base.isolation)
    with about("limits"):
        limits = parse_session_limits(fields.get("limits")).under(base.limits)
    return Run(
        team=team._replace(name=base.name) if team_name else team,
        name=name,
        provider=text(fields, "provider"),
        env=parse_env(_object(fields, "env")),
        lazy_units=lazy,
        isolation=isolation,
        limits=limits,
        session_id=_session_id(fields),
        request=_object(fields, "request") if "request" in fields else None,
        model=text(fields, "model"),
    )


def asks_for_legacy(body: object) -> bool:
    """Whether a `POST /runs` body asks for the old single mode."""
    return isinstance(body, Mapping) and body.get("sessionMode") == "legacy"


def as_asked(body: Mapping[str, Any]) -> dict[str, Any]:
    """What `config.json` keeps of a request; one that is itself such a file brings no older request along."""
    return {key: value for key, value in body.items() if key != "request"}


def _session_id(fields: Mapping[str, Any]) -> SessionId | None:
    with about("sessionId"):
        wanted = text(fields, "sessionId")
        return None if wanted is None else parse_session_id(wanted.lower())


def _object(fields: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object under `key`; none at all means an empty one."""
    value = fields.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise BadInput(f"{key} must be an object")
    return value


def run_body(run: Run) -> dict[str, Any]:
    """The body that `parse_run` reads back as the same run: all of it but `session_id` and `request`."""
    body: dict[str, Any] = {"version": _BODY_VERSION, "agents": team_body(run.team)}
    if run.team.name != CUSTOM:
        body["team"] = run.team.name
    if run.team.routing != Routing():
        body["routing"] = routing_body(run.team.routing)
    body |= restart_body(run.team.restart, run.team.restart_limit)
    if run.name is not None:
        body["name"] = run.name
    if run.provider is not None:
        body["provider"] = run.provider
    if run.model is not None:
        body["model"] = run.model
    body["env"] = dict(run.env)
    body["lazyUnits"] = run.lazy_units
    if run.policy != Policy():
        body["isolation"] = policy_body(run.policy)
    if run.all_limits != SessionLimits():
        body["limits"] = session_limits_body(run.all_limits)
    return body


def parse_env(body: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Environment variables for every agent of the session."""
    for key in body:
        if not _VARIABLE.fullmatch(key):
            raise BadInput(f"Not a variable name: {shown(key)}")
    return tuple((key, text(body, key) or "") for key in body)


def agent_runs(team: Team, panes: Mapping[str, str] = {}) -> tuple[AgentRun, ...]:
    """The agents of a team, with the panes they run in where they run."""
    return tuple(
        AgentRun(agent.id, agent.unit, agent.role, agent.provider or "", agent.model, panes.get(agent.id))
        for agent in team.agents()
    )
