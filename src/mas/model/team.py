"""Teams: which agents there are, in which units. The only list of the thirteen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from mas.model.errors import BadInput, NoAgent
from mas.model.ids import parse_agent_id, parse_unit_name, shown

MOST_AGENTS = 99
META_UNIT = "meta"
CUSTOM = "custom"


class Agent(NamedTuple):
    """One program in one pane. What is None is taken from the session or the provider."""

    id: str
    unit: str
    role: str = "agent"
    provider: str | None = None
    model: str | None = None
    command: str | None = None
    prompt: str | None = None


class Unit(NamedTuple):
    """A group of agents in one tmux window; the first is its manager."""

    name: str
    agents: tuple[Agent, ...]

    @property
    def manager(self) -> Agent:
        return self.agents[0]


class Team(NamedTuple):
    """Units of agents, in the order of their windows."""

    name: str
    units: tuple[Unit, ...]

    def agents(self) -> Iterator[Agent]:
        for unit in self.units:
            yield from unit.agents

    def targets(self, target: str) -> tuple[Agent, ...]:
        """Whom `target` means: an agent id, a unit name, `managers` or `all`; `NoAgent` if nobody."""
        if target == "all":
            return tuple(self.agents())
        if target == "managers":
            return tuple(unit.manager for unit in self.units)
        for unit in self.units:
            if unit.name == target:
                return unit.agents
        for agent in self.agents():
            if agent.id == target:
                return (agent,)
        names = " ".join([*(unit.name for unit in self.units), "managers", "all"])
        raise NoAgent(f"No agent, unit or group {shown(target)} in this session (units: {names})", "mas show")


_ROLES = {
    "00": "Meta manager",
    "10": "Design manager",
    "11": "UX researcher",
    "12": "Interface designer",
    "13": "Visual designer",
    "20": "Development manager",
    "21": "Frontend developer",
    "22": "Backend developer",
    "23": "Quality engineer",
    "30": "Business manager",
    "31": "Market analyst",
    "32": "Finance planner",
    "33": "Communications writer",
}


def _team(name: str, **units: str) -> Team:
    return Team(
        name,
        tuple(
            Unit(unit, tuple(Agent(agent, unit, _ROLES[agent]) for agent in agents.split()))
            for unit, agents in units.items()
        ),
    )


DEFAULT_TEAM = _team("default", meta="00", design="10 11 12 13", development="20 21 22 23", business="30 31 32 33")
TEAMS = {
    team.name: team
    for team in (
        DEFAULT_TEAM,
        _team("dev", meta="00", development="20 21 22 23"),
        _team("pair", development="21 23"),
        _team("solo", meta="00"),
    )
}


def team_named(name: str) -> Team:
    try:
        return TEAMS[name]
    except KeyError:
        raise BadInput(f"No team {shown(name)} (there are: {', '.join(TEAMS)})", "mas start --help") from None


def parse_team(body: Mapping[str, Any], base: Team) -> Team:
    """The team an `agents` object describes; an empty one means `base`."""
    known(body, "agents", {"metaManager", "units"})
    if body.get("metaManager") is None and not _list(body, "units"):
        return base
    groups = _groups(body)
    if sum(len(group.members) for group in groups) > MOST_AGENTS:
        raise BadInput(f"A team has at most {MOST_AGENTS} agents")
    numbers = _Numbers(groups)
    units = (Unit(group.name, tuple(_agent(member, group, numbers) for member in group.members)) for group in groups)
    return Team(CUSTOM, tuple(units))


class _Group(NamedTuple):
    """A unit as it was asked for: its agents unread, its ids to start at `tens`."""

    name: str
    tens: int
    members: list[Any]


def _groups(body: Mapping[str, Any]) -> list[_Group]:
    groups: list[_Group] = []
    if body.get("metaManager") is not None:
        groups.append(_Group(META_UNIT, 0, [body["metaManager"]]))
    for position, item in enumerate(_list(body, "units"), start=1):
        unit = known(item, "agents.units[]", {"name", "manager", "workers"})
        name = parse_unit_name(text(unit, "name") or "")
        if name in {"all", "managers", *(other.name for other in groups)}:
            raise BadInput(f"The unit name {name!r} is taken")
        manager = unit.get("manager")
        groups.append(_Group(name, position * 10, [{} if manager is None else manager, *_list(unit, "workers")]))
    return groups


def team_body(team: Team) -> dict[str, Any]:
    """The `agents` object that `parse_team` reads back as the same team."""
    body: dict[str, Any] = {"units": []}
    for unit in team.units:
        members = [_agent_body(agent) for agent in unit.agents]
        if unit is team.units[0] and unit.name == META_UNIT and len(members) == 1:
            body["metaManager"] = members[0]
        else:
            body["units"].append({"name": unit.name, "manager": members[0], "workers": members[1:]})
    return body


def _agent_body(agent: Agent) -> dict[str, str]:
    fields = {
        "id": agent.id,
        "provider": agent.provider,
        "model": agent.model,
        "command": agent.command,
        "prompt": agent.prompt,
    }
    return {key: value for key, value in fields.items() if value is not None}


class _Numbers:
    """Hands out agent ids: the one asked for, or the first that nobody has or asks for, from the unit's tens on."""

    def __init__(self, groups: list[_Group]) -> None:
        members = [member for group in groups for member in group.members if isinstance(member, Mapping)]
        self._asked = {member["id"] for member in members if isinstance(member.get("id"), str)}
        self._taken: set[str] = set()

    def take(self, wanted: str | None, tens: int) -> str:
        if wanted is None:
            # Past 99 it goes on at 01: a team of the largest size always finds ids.
            numbers = (f"{number:02d}" for number in (*range(tens, 100), *range(1, 100)))
            wanted = next(number for number in numbers if number not in self._taken | self._asked)
        if wanted in self._taken:
            raise BadInput(f"Two agents have the id {wanted}")
        self._taken.add(wanted)
        return wanted


def _agent(body: Any, group: _Group, numbers: _Numbers) -> Agent:  # noqa: ANN401 - raw JSON
    fields = known(body, "an agent", {"id", "prompt", "provider", "model", "command"})
    wanted = text(fields, "id")
    agent_id = numbers.take(None if wanted is None else parse_agent_id(wanted), group.tens)
    return Agent(
        id=agent_id,
        unit=group.name,
        role=_ROLES.get(agent_id, "Agent"),
        provider=text(fields, "provider"),
        model=text(fields, "model"),
        command=text(fields, "command"),
        prompt=text(fields, "prompt"),
    )


def known(body: Any, what: str, fields: set[str]) -> Mapping[str, Any]:  # noqa: ANN401 - raw JSON
    """`body` as an object with no other keys than `fields`, or `BadInput` naming the stranger."""
    if not isinstance(body, Mapping):
        raise BadInput(f"{what} must be an object")
    for key in body:
        if key not in fields:
            raise BadInput(f"Unknown field {shown(str(key))} in {what} (known: {', '.join(sorted(fields))})")
    return body


def text(body: Mapping[str, Any], key: str) -> str | None:
    """The string under `key`, None where there is none; `BadInput` for anything that cannot be an argument."""
    value = body.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise BadInput(f"{key} must be text")
    if "\0" in value:
        raise BadInput(f"{key} must not hold a NUL character")
    try:
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise BadInput(f"{key} must be valid UTF-8") from None
    return value


def _list(body: Mapping[str, Any], key: str) -> list[Any]:
    value = body.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadInput(f"{key} must be a list")
    return value
