"""Team files: a team as people write it down, and as it is offered to them by name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from mas.model.errors import BadInput
from mas.model.fields import known, text
from mas.model.ids import parse_unit_name, shown
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
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_DESCRIPTIONS = {
    "default": "a meta manager and three units: design, development, business",
    "dev": "a meta manager and the development unit",
    "pair": "two developers, one to write and one to check",
    "solo": "one agent",
}


def parse_team_file(body: Mapping[str, Any], name: str) -> TeamView:
    """The team that a file called `name` describes."""
    fields = known(body, "a team", {"name", "description", "routing", "restart", "restart_limit", "units"})
    if parse_unit_name(name) == CUSTOM:
        raise BadInput(f"A team cannot be called {CUSTOM}")
    if (called := text(fields, "name")) not in (None, name):
        raise BadInput(f"name is {shown(called or '')}; it must be {name!r}, as the file is called")
    units = fields.get("units")
    if not isinstance(units, list):
        raise BadInput("units must be a list")
    restart, limit = parse_restart(fields, "restart_limit")
    team = Team(name, parse_units(units), restart=restart, restart_limit=limit)
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
    )


def team_in(teams: Iterable[TeamView], name: str) -> Team:
    """The team called `name` of those on offer, or an error that names them."""
    view = view_in(teams, name)
    units = tuple(
        Unit(unit.name, tuple(Agent(agent.id, unit.name, *agent[1:]) for agent in unit.agents)) for unit in view.units
    )
    routing = Routing(view.routing, tuple(view.routes.items()))
    return Team(view.name, units, routing, view.restart, view.restart_limit)


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
    for unit in team.units:
        lines += ["", "[[units]]", f"name = {_quoted(unit.name)}"]
        for agent in unit.agents:
            lines += ["", "[[units.agents]]"]
            lines += _set(**agent._asdict())
    return "\n".join(lines) + "\n"


def _set(**fields: str | int | None) -> list[str]:
    """The lines that say what is known."""
    return [
        f"{key} = {value if isinstance(value, int) else _quoted(value)}"
        for key, value in fields.items()
        if value is not None
    ]


def _key(text: str) -> str:
    return text if _BARE_KEY.fullmatch(text) else _quoted(text)


def _quoted(text: str) -> str:
    """A string of TOML: as JSON writes it, but for one character that TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
