"""Teams: which agents exist, in which units. The only list of the thirteen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, get_args

from mas.model.errors import BadInput, NoAgent
from mas.model.fields import known, text
from mas.model.ids import parse_agent_id, parse_name, parse_unit_name, shown
from mas.model.isolation import Limits, Policy, SessionLimits, limits_body, parse_limits

MOST_AGENTS = 99
META_UNIT = "meta"
CUSTOM = "custom"
HIERARCHY, OPEN, TABLE = "hierarchy", "open", "table"
Restart = Literal["never", "on-failure", "always"]
NEVER, ON_FAILURE, ALWAYS = RESTARTS = get_args(Restart)
_USUAL_LIMIT = 3
_LARGEST_LIMIT = 1000


class Agent(NamedTuple):
    """One program in one pane. What is None is taken from the session or the provider."""

    id: str
    unit: str
    role: str = "agent"
    provider: str | None = None
    model: str | None = None
    command: str | None = None
    prompt: str | None = None
    restart: str | None = None
    restart_limit: int | None = None
    limits: Limits = Limits()


class Unit(NamedTuple):
    """A group of agents in one tmux window; the first is its manager."""

    name: str
    agents: tuple[Agent, ...]

    @property
    def manager(self) -> Agent:
        return self.agents[0]


class Routing(NamedTuple):
    """Who may write to whom: `hierarchy`, `open`, or a `table` of agents and what each may write to."""

    rule: str = HIERARCHY
    table: tuple[tuple[str, tuple[str, ...]], ...] = ()


class Team(NamedTuple):
    """Units of agents, in the order of their windows."""

    name: str
    units: tuple[Unit, ...]
    routing: Routing = Routing()
    restart: str | None = None
    restart_limit: int | None = None
    isolation: Policy = Policy()
    limits: SessionLimits = SessionLimits()

    def agents(self) -> Iterator[Agent]:
        for unit in self.units:
            yield from unit.agents

    def restart_of(self, agent: Agent) -> tuple[str, int]:
        """When an agent that ended is started again (`never`, `on-failure`, `always`), and how often in ten minutes."""
        limit = self.restart_limit if agent.restart_limit is None else agent.restart_limit
        return agent.restart or self.restart or NEVER, _USUAL_LIMIT if limit is None else limit

    def targets(self, target: str) -> tuple[Agent, ...]:
        """The agents that `target` means: an agent id, a unit name, `managers` or `all`; `NoAgent` if none."""
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
        ids = " ".join(agent.id for agent in self.agents())
        names = " ".join([*(unit.name for unit in self.units), "managers", "all"])
        raise NoAgent(
            f"No agent, unit or group {shown(target)} in this session (agents: {ids}; units: {names})", "mas show"
        )


def may_write(team: Team, sender: str, target: str) -> str | None:
    """None if the agent `sender` may write to the agent `target`, else the rule that forbids it."""
    if sender == target or team.routing.rule == OPEN:
        return None
    if team.routing.rule == TABLE:
        allowed = dict(team.routing.table).get(sender, ())
        if any(agent.id == target for name in allowed for agent in team.targets(name)):
            return None
        return f"the team's table lets {sender} write to: {', '.join(allowed) or 'nobody'}"
    units = {agent.id: unit for unit in team.units for agent in unit.agents}
    mine, other = units[sender], units[target]
    tops = {unit.manager.id for unit in team.units if unit.name == META_UNIT}
    both_manage = {mine.manager.id, other.manager.id} == {sender, target}
    if mine is other or (both_manage and tops & {sender, target}):
        return None
    return "hierarchy: to the own manager and unit; managers also to the meta manager, who writes to managers"


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
    return Team(CUSTOM, _units(_groups(body)))


def parse_units(items: list[Any]) -> tuple[Unit, ...]:
    """The units that a team file lists, each with its agents."""
    groups: list[_Group] = []
    for position, item in enumerate(items):
        unit = known(item, f"units[{position}]", {"name", "agents"})
        name = _unit_name(unit, groups)
        members = [_as_in_bodies(member) for member in _list(unit, "agents")]
        if not members:
            raise BadInput(f"units[{position}]: the unit {name} has no agents")
        # A unit of the meta manager comes first and leaves the tens to the others.
        tens = 0 if name == META_UNIT else 10 * (position + (not any(group.name == META_UNIT for group in groups)))
        groups.append(_Group(name, tens, members))
    if not groups:
        raise BadInput("A team has at least one unit")
    return _units(groups)


def _units(groups: list[_Group]) -> tuple[Unit, ...]:
    if sum(len(group.members) for group in groups) > MOST_AGENTS:
        raise BadInput(f"A team has at most {MOST_AGENTS} agents")
    numbers = _Numbers(groups)
    return tuple(
        Unit(group.name, tuple(_agent(member, group, numbers) for member in group.members)) for group in groups
    )


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
        name = _unit_name(unit, groups)
        manager = unit.get("manager")
        groups.append(_Group(name, position * 10, [{} if manager is None else manager, *_list(unit, "workers")]))
    return groups


def _unit_name(unit: Mapping[str, Any], groups: list[_Group]) -> str:
    name = parse_unit_name(text(unit, "name") or "")
    if name in {"all", "managers", *(other.name for other in groups)}:
        raise BadInput(f"The unit name {name!r} is taken")
    return name


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


def parse_routing(value: object, team: Team) -> Routing:
    """Who may write to whom in `team`, as a word or as a table of agents and targets."""
    if isinstance(value, str):
        if value not in (HIERARCHY, OPEN):
            raise BadInput(f"routing is {shown(value)}; it can be {HIERARCHY}, {OPEN} or a table of agents and targets")
        return Routing(value)
    if not isinstance(value, Mapping):
        raise BadInput(f"routing must be {HIERARCHY}, {OPEN} or a table of agents and targets")
    ids = {agent.id for agent in team.agents()}
    table = []
    for sender, targets in value.items():
        if sender not in ids:
            raise BadInput(f"routing: no agent {shown(str(sender))} in this team")
        if not isinstance(targets, (list, tuple)) or not all(isinstance(target, str) for target in targets):
            raise BadInput(f"routing.{sender} must be a list of agents, units, managers or all")
        try:
            for target in targets:
                team.targets(target)
        except NoAgent as error:
            raise BadInput(f"routing.{sender}: {error.message}") from None
        table.append((sender, tuple(targets)))
    return Routing(TABLE, tuple(table))


def routing_body(routing: Routing) -> str | dict[str, list[str]]:
    """What `parse_routing` reads back as the same."""
    if routing.rule == TABLE:
        return {sender: list(targets) for sender, targets in routing.table}
    return routing.rule


def parse_restart(fields: Mapping[str, Any], limit: str = "restartLimit") -> tuple[str | None, int | None]:
    """The policy and its limit of an agent or of a whole team; None where nothing is said."""
    policy, most = text(fields, "restart"), fields.get(limit)
    if policy is not None and policy not in RESTARTS:
        raise BadInput(f"restart is {shown(policy)}; it can be {NEVER}, {ON_FAILURE} or {ALWAYS}")
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or not 0 <= most <= _LARGEST_LIMIT):
        raise BadInput(f"{limit} must be a number from 0 to {_LARGEST_LIMIT}")
    return policy, most


def restart_body(restart: str | None, limit: int | None) -> dict[str, Any]:
    """What `parse_restart` reads back as the same."""
    fields = {"restart": restart, "restartLimit": limit}
    return {key: value for key, value in fields.items() if value is not None}


def _as_in_bodies(member: Any) -> Any:  # noqa: ANN401 - raw TOML
    """An agent of a team file as a body has it: names of more than one word are written differently there."""
    if not isinstance(member, Mapping):
        return member
    fields = dict(member)
    if "limits" in fields:
        fields["limits"] = limits_body(parse_limits(fields["limits"], file_size="file_size"))
    if "restart_limit" in fields:
        if "restartLimit" in fields:
            raise BadInput("restart_limit and restartLimit are the same")
        parse_restart(fields, "restart_limit")
        fields["restartLimit"] = fields.pop("restart_limit")
    return fields


def _agent_body(agent: Agent) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": agent.id,
        "role": None if agent.role == usual_role(agent.id) else agent.role,
        "provider": agent.provider,
        "model": agent.model,
        "command": agent.command,
        "prompt": agent.prompt,
        **restart_body(agent.restart, agent.restart_limit),
        "limits": limits_body(agent.limits) or None,
    }
    return {key: value for key, value in fields.items() if value is not None}


class _Numbers:
    """Gives out agent ids: the requested one, or the first that is free and not requested, from the unit's tens on."""

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
    fields = known(
        body, "an agent", {"id", "role", "prompt", "provider", "model", "command", "restart", "restartLimit", "limits"}
    )
    restart, limit = parse_restart(fields)
    wanted = text(fields, "id")
    agent_id = numbers.take(None if wanted is None else parse_agent_id(wanted), group.tens)
    return Agent(
        id=agent_id,
        unit=group.name,
        role=parse_role(text(fields, "role")) or usual_role(agent_id),
        provider=text(fields, "provider"),
        model=text(fields, "model"),
        command=text(fields, "command"),
        prompt=text(fields, "prompt"),
        restart=restart,
        restart_limit=limit,
        limits=parse_limits(fields.get("limits")),
    )


def usual_role(agent_id: str) -> str:
    return _ROLES.get(agent_id, "Agent")


def parse_role(role: str | None) -> str | None:
    """A role is a title of one line."""
    return None if role is None else parse_name(role)


def _list(body: Mapping[str, Any], key: str) -> list[Any]:
    value = body.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadInput(f"{key} must be a list")
    return value
