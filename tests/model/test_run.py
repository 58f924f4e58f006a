"""Runs: the body of `POST /runs`, and the configuration a session can be restored from."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mas.model.errors import BadInput
from mas.model.isolation import Limits
from mas.model.run import Run, parse_run, run_body
from mas.model.team import CUSTOM, DEFAULT_TEAM, TEAMS, Agent, Routing, Team, Unit, team_named
from tests.model.policies import AGENT_LIMITS, POLICIES, SESSION_LIMITS

ROLES = {agent.id: agent.role for agent in DEFAULT_TEAM.agents()}
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
MAYBE = st.none() | TEXT
AGENT_ID = st.integers(0, 99).map("{:02d}".format)
UNIT_NAME = st.from_regex(r"[a-z][a-z0-9_-]{0,31}", fullmatch=True).filter(lambda name: name not in {"all", "managers"})
NAME = TEXT.filter(lambda name: bool(name) and name.isprintable() and name == name.strip() and name[0] != "-")
VARIABLE = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
FIELDS = (
    "agents name team provider env lazyUnits version sessionMode sessionId request "
    "metaManager units manager workers id role prompt model command routing isolation limits mode read memory cpu agent"
)


@st.composite
def teams(draw: st.DrawFn) -> Team:
    names = draw(st.lists(st.just("meta") | UNIT_NAME, min_size=1, max_size=4, unique=True))
    ids = draw(st.lists(AGENT_ID, min_size=len(names), max_size=len(names) + 8, unique=True))
    units = []
    for position, name in enumerate(names):
        mine = ids[position :: len(names)]
        rest = st.tuples(MAYBE, MAYBE, MAYBE, MAYBE)
        roles = [draw(st.just(ROLES.get(agent, "Agent")) | NAME) for agent in mine]
        limits = [draw(st.just(Limits()) | AGENT_LIMITS) for _ in mine]
        agents = [
            Agent(agent, role, *draw(rest), limits=most) for agent, role, most in zip(mine, roles, limits, strict=True)
        ]
        units.append(Unit(name, tuple(agents)))
    tables = st.dictionaries(
        st.sampled_from([agent.id for unit in units for agent in unit.agents]),
        st.lists(st.sampled_from([*names, *ids, "managers", "all"]), max_size=3).map(tuple),
        max_size=3,
    ).map(lambda table: Routing("table", tuple(table.items())))
    routing = draw(st.sampled_from([Routing(), Routing("open")]) | tables)
    return Team(draw(st.sampled_from([CUSTOM, *TEAMS])), tuple(units), routing)


RUNS = st.builds(
    Run,
    team=teams() | st.sampled_from([*TEAMS.values()]),
    name=st.none() | NAME,
    provider=MAYBE,
    model=MAYBE,
    command=st.none(),  # settling writes it out for every agent
    env=st.dictionaries(VARIABLE, TEXT, max_size=3).map(lambda env: tuple(env.items())),
    lazy_units=st.booleans(),
    isolation=POLICIES,
    limits=SESSION_LIMITS,
    session_id=st.none(),
    request=st.none(),
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | TEXT
    | st.sampled_from(["solo", "default", "10", "\ud800"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS.split()) | TEXT, inner, max_size=4)
    ),
    max_leaves=12,
)


@given(RUNS)
def test_the_body_of_a_run_reads_back_as_the_same_run(run: Run) -> None:
    assert parse_run(json.loads(json.dumps(run_body(run)))) == run


@given(JSON | st.dictionaries(st.sampled_from(FIELDS.split()), JSON, max_size=4))
@settings(max_examples=150)
def test_any_body_is_a_run_or_bad_input(body: object) -> None:
    try:
        run = parse_run(body)
    except BadInput:
        return
    assert parse_run(run_body(run)) == run._replace(session_id=None, request=None)


@pytest.mark.parametrize(
    "body", [{}, {"agents": {}}, {"agents": None}, {"agents": {}, "sessionMode": "legacy"}, {"sessionMode": "isolated"}]
)
def test_a_run_that_asks_for_nothing_is_the_default_team_of_thirteen(body: dict[str, Any]) -> None:
    run = parse_run(body)
    assert run == Run()
    assert len(list(run.team.agents())) == 13


def test_everything_a_run_asks_for_is_in_it() -> None:
    run = parse_run(
        {
            "agents": {
                "metaManager": {"prompt": "lead", "provider": "shell"},
                "units": [{"name": "red", "manager": {"model": "m"}, "workers": [{"id": "42", "command": "sh -i"}]}],
            },
            "name": "Release",
            "provider": "demo",
            "env": {"A": "1", "EMPTY": ""},
        }
    )
    assert run.team.name == CUSTOM
    assert list(run.team.agents()) == [
        Agent("00", "Meta manager", provider="shell", prompt="lead"),
        Agent("10", "Design manager", model="m"),
        Agent("42", "Agent", command="sh -i"),
    ]
    assert (run.name, run.provider, run.env) == ("Release", "demo", (("A", "1"), ("EMPTY", "")))


def test_a_team_is_asked_for_by_name() -> None:
    assert parse_run({"team": "pair"}).team == team_named("pair")


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ([], "object"),
        (None, "object"),
        ("{}", "object"),
        ({"agnets": {}}, "Unknown field 'agnets'"),
        ({"mode": "legacy"}, "Unknown field 'mode'"),
        ({"team": "everyone"}, "No team 'everyone'"),
        ({"team": 13}, "team must be text"),
        ({"name": "-x"}, "it must be 1 to 64 printable"),
        ({"name": "x" * 300}, "it must be 1 to 64 printable"),
        ({"name": ""}, "it must be 1 to 64 printable"),
        ({"agents": []}, "agents must be an object"),
        ({"agents": "all"}, "agents must be an object"),
        ({"env": []}, "env must be an object"),
        ({"env": {"A=B": "x"}}, "not the name of a variable"),
        ({"env": {"Ä": "x"}}, "not the name of a variable"),
        ({"env": {"1A": "x"}}, "not the name of a variable"),
        ({"env": {"A\n": "x"}}, "not the name of a variable"),
        ({"env": {"A": 1}}, "A must be text"),
        ({"env": {"A": "x\0y"}}, "NUL"),
        ({"env": {"A": "\ud800"}}, "A "),
        ({"provider": ["demo"]}, "provider must be text"),
        ({"lazyUnits": "yes"}, "lazyUnits"),
        ({"version": 3}, "version 3"),
        ({"sessionMode": "bogus"}, "sessionMode is"),
        ({"sessionMode": 5}, "sessionMode is"),
        ({"sessionMode": {"any": 1}}, "sessionMode is"),
        ({"sessionId": "550e8400"}, "must be a full UUID"),
        ({"sessionId": 5}, "sessionId must be a full UUID"),
        ({"request": "all"}, "request must be an object"),
        ({"routing": "chaos"}, "routing is 'chaos'; it must be hierarchy, open or a table"),
        ({"routing": 7}, "routing must be hierarchy, open or a table"),
        ({"routing": {"99": []}}, "routing names '99', which is no agent of this team"),
        ({"routing": {"00": "all"}}, "routing must be hierarchy, open or a table"),
        ({"routing": {"00": ["nobody"]}}, "routing.00 is wrong: No agent, unit or group 'nobody'"),
        ({"agents": {"metaManager": {"role": "a\nb"}}}, "it must be 1 to 64 printable"),
    ],
)
def test_a_body_that_is_no_run_is_refused_by_what_is_wrong(body: object, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        parse_run(body)


def test_teams_by_name_are_those_the_caller_knows() -> None:
    own = Team("own", team_named("pair").units, Routing("open"))
    run = parse_run({"team": "own"}, {"own": own}.__getitem__)
    assert run.team == own
    assert parse_run(json.loads(json.dumps(run_body(run))), lambda name: Team(name, ())) == run


def test_settling_writes_out_provider_and_command_of_every_agent() -> None:
    team = parse_run(
        {"agents": {"units": [{"name": "red", "manager": {"provider": "p"}, "workers": [{"command": "c"}]}]}}
    )
    settled = team._replace(command="all").settled("demo")
    assert [(agent.provider, agent.command) for agent in settled.team.agents()] == [
        ("generic", "all"),
        ("generic", "c"),
    ]
    assert (settled.provider, settled.command) == ("demo", None)
    assert [agent.provider for agent in team._replace(provider="q").settled("demo").team.agents()] == ["p", "generic"]
