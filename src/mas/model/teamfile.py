"""Team files: a team as people write it, and as they can choose it by name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from mas.model.errors import BadInput
from mas.model.fields import known, text
from mas.model.ids import parse_unit_name, shown
from mas.model.isolation import (
    limits_body,
    parse_policy,
    parse_session_limits,
    policy_body,
    session_limits_body,
)
from mas.model.reports import TeamAgent, TeamUnit, TeamView
from mas.model.team import (
    CUSTOM,
    HIERARCHY,
    TABLE,
    TEAMS,
    Agent,
    Routing,
    Team,
    Unit,
    parse_restart,
    parse_routing,
    parse_units,
)

SHIPPED, OWN = "shipped", "workspace"
_FIELDS = {"name", "description", "routing", "restart", "restart_limit", "isolation", "limits", "units"}
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_DESCRIPTIONS = {
    "default": "a meta manager and three units: design, development, business",
    "dev": "a meta manager and the development unit",
    "pair": "two developers, one to write and one to check",
    "solo": "one agent",
}


def parse_team_file(body: Mapping[str, Any], name: str) -> TeamView:
    """The team that a file called `name` describes."""
    fields = known(body, "a team", _FIELDS)
    if parse_unit_name(name) == CUSTOM:
        raise BadInput(f"A team cannot be called {CUSTOM}")
    if (called := text(fields, "name")) not in (None, name):
        raise BadInput(f"name is {shown(called or '')}; it must be {name!r}, as the file is called")
    units = fields.get("units")
    if not isinstance(units, list):
        raise BadInput("units must be a list")
    restart, limit = parse_restart(fields, "restart_limit")
    team = Team(
        name,
        parse_units(units),
        restart=restart,
        restart_limit=limit,
        isolation=parse_policy(fields.get("isolation"), run_as="run_as"),
        limits=parse_session_limits(fields.get("limits"), file_size="file_size"),
    )
    team = team._replace(routing=parse_routing(fields.get("routing", HIERARCHY), team))
    return view_of(team, text(fields, "description") or "", OWN)


def shipped_teams() -> tuple[TeamView, ...]:
    """The teams that come with MAS."""
    return tuple(view_of(team, _DESCRIPTIONS[team.name], SHIPPED) for team in TEAMS.values())


def view_of(team: Team, description: str, origin: str) -> TeamView:
    """A team as it is offered."""
    return TeamView(
        name=team.name,
        agent_count=sum(1 for _ in team.agents()),
        units=tuple(
            TeamUnit(
                unit.name,
                tuple(TeamAgent(agent.id, *agent[2:]) for agent in unit.agents),
            )
            for unit in team.units
        ),
        description=description,
        routing=team.routing.rule,
        routes=dict(team.routing.table),
        origin=origin,
        restart=team.restart,
        restart_limit=team.restart_limit,
        isolation=team.isolation,
        limits=team.limits,
    )


def team_in(teams: Iterable[TeamView], name: str) -> Team:
    """The team called `name` of those on offer, or an error that names them."""
    view = view_in(teams, name)
    units = tuple(
        Unit(unit.name, tuple(Agent(agent.id, unit.name, *agent[1:]) for agent in unit.agents)) for unit in view.units
    )
    routing = Routing(view.routing, tuple(view.routes.items()))
    return Team(view.name, units, routing, view.restart, view.restart_limit, view.isolation, view.limits)


def view_in(teams: Iterable[TeamView], name: str) -> TeamView:
    """What is offered under `name`."""
    offered = {team.name: team for team in teams}
    if name not in offered:
        raise BadInput(f"No team {shown(name)} (there are: {', '.join(offered)})", "mas teams")
    if offered[name].problem:
        raise BadInput(offered[name].problem)
    return offered[name]


def broken_team(name: str, problem: str) -> TeamView:
    """A file that describes no team, to be shown among those that do."""
    return TeamView(name, 0, (), origin=OWN, problem=problem)


def team_file(team: TeamView) -> str:
    """The team as the text of a file, for people to change. It is called as the file is, so it names itself nowhere."""
    lines = [f"# The team {team.name}. As templates/teams/NAME.toml it is the team NAME of a workspace."]
    lines += [f"description = {_quoted(team.description)}"]
    lines += _set(restart=team.restart, restart_limit=team.restart_limit)
    if team.routing == TABLE:
        lines += ["", "[routing]"]
        lines += [f"{_key(sender)} = [{', '.join(map(_quoted, targets))}]" for sender, targets in team.routes.items()]
    else:
        lines.append(f"routing = {_quoted(team.routing)}")
    for name, table in _tables(team).items():
        lines += ["", f"[{name}]", *_set(**table)]
    for unit in team.units:
        lines += ["", "[[units]]", f"name = {_quoted(unit.name)}"]
        for agent in unit.agents:
            lines += ["", "[[units.agents]]"]
            limits = limits_body(agent.limits, "file_size")
            lines += _set(**agent._asdict() | {"limits": limits or None})
    return "\n".join(lines) + "\n"


def _tables(team: TeamView) -> dict[str, dict[str, Any]]:
    """What the file says of isolation and limits, a table each."""
    policy = policy_body(team.isolation, "run_as")
    tables = {
        "isolation": {"enforce": policy} if isinstance(policy, str) else policy,
        "limits": session_limits_body(team.limits, "file_size"),
    }
    return {name: table for name, table in tables.items() if table}


def _set(**fields: Any) -> list[str]:  # noqa: ANN401 - whatever a file may hold
    """The lines that say what is known."""
    return [f"{_key(key)} = {_value(value)}" for key, value in fields.items() if value is not None]


def _value(value: Any) -> str:  # noqa: ANN401 - whatever a file may hold
    if isinstance(value, dict):
        return "{ " + ", ".join(_set(**value)) + " }"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    return _quoted(value) if isinstance(value, str) else str(value)


def _key(text: str) -> str:
    return text if _BARE_KEY.fullmatch(text) else _quoted(text)


def _quoted(text: str) -> str:
    """A string of TOML: as JSON writes it, but for one character that TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
