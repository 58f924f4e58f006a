"""Team files: a team as people write it, and as they can choose it by name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, NamedTuple

from mas.model.catalog import TeamView
from mas.model.errors import BadInput
from mas.model.fields import FLAT
from mas.model.ids import parse_unit_name, shown
from mas.model.shapes import read, write
from mas.model.team import CUSTOM, TEAMS, Routing, Team, numbered_units, routed

SHIPPED, OWN = "shipped", "workspace"
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_DESCRIPTIONS = {
    "default": "a meta manager and three units: design, development, business",
    "dev": "a meta manager and the development unit",
    "pair": "two developers, one to write and one to check",
    "solo": "one agent",
}


class TeamFile(NamedTuple):
    """What a team file says."""

    description: str = ""
    team: Annotated[Team, FLAT] = Team()


def parse_team_file(body: Mapping[str, Any], name: str) -> TeamView:
    """The team that a file called `name` describes."""
    if parse_unit_name(name) == CUSTOM:
        raise BadInput(f"A team cannot be called {CUSTOM}")
    description, team = read(TeamFile, body, called="a team", snake=True)
    if team.name not in ("", name):
        raise BadInput.at("name", f"is {shown(team.name)}; it must be {name!r}, as the file is called")
    team = team._replace(name=name, units=numbered_units(team.units))
    return view_of(routed(team, team.routing), description, OWN)


def shipped_teams() -> tuple[TeamView, ...]:
    """The teams that come with MAS."""
    return tuple(view_of(team, _DESCRIPTIONS[team.name], SHIPPED) for team in TEAMS.values())


def view_of(team: Team, description: str, origin: str) -> TeamView:
    """A team as it is offered."""
    return TeamView(
        **team._asdict() | {"routing": team.routing.rule},
        routes=dict(team.routing.table),
        agent_count=sum(1 for _ in team.agents()),
        description=description,
        origin=origin,
    )


def team_in(teams: Iterable[TeamView], name: str) -> Team:
    """The team called `name` of those on offer, or an error that names them."""
    return _team(view_in(teams, name))


def _team(view: TeamView) -> Team:
    fields = {name: value for name, value in view._asdict().items() if name in Team._fields}
    return Team(**fields | {"routing": Routing(view.routing, tuple(view.routes.items()))})


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


def team_file(view: TeamView) -> str:
    """The team as the text of a file, for people to change. It is called as the file is, so it names itself nowhere."""
    fields = write(TeamFile(team=_team(view)._replace(name="")), snake=True)
    units = fields.pop("units", [])
    fields = {"description": view.description, "routing": view.routing} | fields
    lines = [f"# The team {view.name}. As templates/teams/NAME.toml it is the team NAME of a workspace."]
    lines += _set({key: value for key, value in fields.items() if not isinstance(value, dict)})
    for name, table in fields.items():
        if isinstance(table, dict):
            lines += ["", f"[{name}]", *_set(table)]
    for unit in units:
        lines += ["", "[[units]]", *_set({"name": unit["name"]})]
        for agent in unit["agents"]:
            lines += ["", "[[units.agents]]", *_set(agent)]
    return "\n".join(lines) + "\n"


def _set(fields: dict[str, Any]) -> list[str]:
    return [f"{_key(key)} = {_value(value)}" for key, value in fields.items()]


def _value(value: Any) -> str:  # noqa: ANN401 - whatever a file may hold
    if isinstance(value, dict):
        return "{ " + ", ".join(_set(value)) + " }"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    return _quoted(value) if isinstance(value, str) else str(value)


def _key(text: str) -> str:
    return text if _BARE_KEY.fullmatch(text) else _quoted(text)


def _quoted(text: str) -> str:
    """A string of TOML: as JSON writes it, but for one character that TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
