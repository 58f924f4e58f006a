"""Teams: which agents exist, in which units. The only list of the thirteen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple, get_args

from mas.model.errors import BadInput, NoAgent
from mas.model.fields import AGENT_ID, Rule
from mas.model.ids import LONGEST_NAME, UNIT, is_name, shown
from mas.model.isolation import AgentLimits, Limits, Policy, PolicyOrWord, SessionLimits

MOST_AGENTS = 99
META_UNIT = "meta"
CUSTOM = "custom"
HIERARCHY, OPEN, TABLE = "hierarchy", "open", "table"
Restart = Literal["never", "on-failure", "always"]
NEVER, ON_FAILURE, ALWAYS = RESTARTS = get_args(Restart)
_USUAL_LIMIT = 3
_LARGEST_LIMIT = 1000
NAME = Rule(f"1 to {LONGEST_NAME} printable characters, with no '-' or space first", longest=LONGEST_NAME, test=is_name)
_UNIT_NAME = Rule("a-z first, then a-z 0-9 _ -, 32 at most", pattern=UNIT.pattern)
RESTART_LIMIT = Rule(
    f"a whole number from 0 to {_LARGEST_LIMIT}", "Restarts within ten minutes", least=0, most=_LARGEST_LIMIT
)


class Agent(NamedTuple):
    """One agent of a team. Fields that are left out come from the session, the provider or the team."""

    id: Annotated[str, AGENT_ID] = ""
    role: Annotated[str, NAME] = ""
    provider: str | None = None
    model: str | None = None
    command: str | None = None
    prompt: str | None = None
    restart: Restart | None = None
    restart_limit: Annotated[int | None, RESTART_LIMIT] = None
    limits: AgentLimits = Limits()


class Unit(NamedTuple):
    """A group of agents in one tmux window; the first is its manager."""

    name: Annotated[str, _UNIT_NAME]
    agents: tuple[Agent, ...] = ()

    @property
    def manager(self) -> Agent:
        return self.agents[0]


class Routing(NamedTuple):
    """Who may write to whom: `hierarchy`, `open`, or a `table` of agents and what each may write to."""

    rule: str = HIERARCHY
    table: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @staticmethod
    def read(value: object) -> Routing:
        """What is written as a word or as a table; `ValueError` if it is neither."""
        if isinstance(value, str) and value in (HIERARCHY, OPEN):
            return Routing(value)
        if not isinstance(value, Mapping):
            raise ValueError("neither word nor table")
        for targets in value.values():
            if not isinstance(targets, (list, tuple)) or not all(isinstance(target, str) for target in targets):
                raise ValueError("not a list of targets")
        return Routing(TABLE, tuple((sender, tuple(targets)) for sender, targets in value.items()))

    def written(self) -> str | dict[str, list[str]]:
        return {sender: list(targets) for sender, targets in self.table} if self.rule == TABLE else self.rule


ROUTING = Rule(
    f"{HIERARCHY}, {OPEN} or a table of agents, with a list of agents, units, managers or all for each",
    read=Routing.read,
    write=Routing.written,
    written_as=Literal["hierarchy", "open"] | dict[str, list[str]],
)


class Team(NamedTuple):
    """Units of agents, in the order of their windows."""

    name: str = ""
    units: tuple[Unit, ...] = ()
    routing: Annotated[Routing, ROUTING] = Routing()
    restart: Restart | None = None
    restart_limit: Annotated[int | None, RESTART_LIMIT] = None
    isolation: PolicyOrWord = Policy()
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
            Unit(unit, tuple(Agent(agent, _ROLES[agent]) for agent in agents.split())) for unit, agents in units.items()
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


class UnitBody(NamedTuple):
    """A unit of a custom team."""

    name: Annotated[str, _UNIT_NAME]
    manager: Agent = Agent()
    workers: tuple[Agent, ...] = ()


class TeamBody(NamedTuple):
    """A custom team. An empty one means the default team of 13."""

    meta_manager: Agent | None = None
    units: tuple[UnitBody, ...] = ()


def custom_team(body: TeamBody, base: Team) -> Team:
    """The team that `body` describes; an empty one means `base`."""
    if body == TeamBody():
        return base
    units = [Unit(unit.name, (unit.manager, *unit.workers)) for unit in body.units]
    tens = [10 * position for position in range(1, len(units) + 1)]
    if body.meta_manager is not None:
        units, tens = [Unit(META_UNIT, (body.meta_manager,)), *units], [0, *tens]
    return Team(CUSTOM, _numbered(units, tens))


def team_body(team: Team) -> TeamBody:
    """What `custom_team` makes the same units of."""

    def short(agent: Agent) -> Agent:
        return agent._replace(role="") if agent.role == usual_role(agent.id) else agent

    units = [UnitBody(unit.name, short(unit.manager), tuple(map(short, unit.agents[1:]))) for unit in team.units]
    is_led = bool(units) and units[0].name == META_UNIT and not units[0].workers
    return TeamBody(units[0].manager, tuple(units[1:])) if is_led else TeamBody(None, tuple(units))


def numbered_units(units: Sequence[Unit]) -> tuple[Unit, ...]:
    """The units of a team file, with an id and a role for every agent."""
    if not units:
        raise BadInput("A team has at least one unit")
    for position, unit in enumerate(units):
        if not unit.agents:
            raise BadInput.at(f"units[{position}].agents", f"is empty: the unit {unit.name} needs at least one agent")
    # A unit of the meta manager comes first and leaves the tens to the others.
    names = [unit.name for unit in units]
    tens = [10 * (place + (META_UNIT not in names[:place])) for place in range(len(units))]
    return _numbered(units, [0 if name == META_UNIT else ten for name, ten in zip(names, tens, strict=True)])


def _numbered(units: Sequence[Unit], tens: Sequence[int]) -> tuple[Unit, ...]:
    """The units with an id for every agent: the one asked for, or the first free one from the unit's tens on."""
    if sum(len(unit.agents) for unit in units) > MOST_AGENTS:
        raise BadInput(f"A team has at most {MOST_AGENTS} agents")
    names = ["all", "managers"]
    for unit in units:
        if unit.name in names:
            raise BadInput(f"The unit name {unit.name!r} is taken")
        names.append(unit.name)
    asked = [agent.id for unit in units for agent in unit.agents if agent.id]
    for agent_id in asked:
        if asked.count(agent_id) > 1:
            raise BadInput(f"Two agents have the id {agent_id}")
    taken = set(asked)

    def numbered(agent: Agent, start: int) -> Agent:
        # Past 99 it goes on at 01: a team of the largest size always finds ids.
        numbers = (f"{number:02d}" for number in (*range(start, 100), *range(1, 100)))
        agent_id = agent.id or next(number for number in numbers if number not in taken)
        taken.add(agent_id)
        return agent._replace(id=agent_id, role=agent.role or usual_role(agent_id))

    return tuple(
        unit._replace(agents=tuple(numbered(agent, start) for agent in unit.agents))
        for unit, start in zip(units, tens, strict=True)
    )


def routed(team: Team, routing: Routing) -> Team:
    """The team with that routing; `BadInput` if it names an agent that is not in the team."""
    ids = {agent.id for agent in team.agents()}
    for sender, targets in routing.table:
        if sender not in ids:
            raise BadInput.at("routing", f"names {shown(sender)}, which is no agent of this team")
        try:
            for target in targets:
                team.targets(target)
        except NoAgent as error:
            raise BadInput.at(f"routing.{sender}", f"is wrong: {error.message}") from None
    return team._replace(routing=routing)


def usual_role(agent_id: str) -> str:
    return _ROLES.get(agent_id, "Agent")
