"""Teams: the thirteen, and what the `agents` of a run may describe."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mas.model.errors import BadInput, NoAgent
from mas.model.shapes import read, write
from mas.model.team import DEFAULT_TEAM, MOST_AGENTS, TEAMS, Team, TeamBody, custom_team, team_body, team_named


def parse_team(body: object, base: Team) -> Team:
    return custom_team(read(TeamBody, body, "agents"), base)


def parsed(*units: dict[str, Any], **more: Any) -> Team:
    return parse_team({"units": list(units), **more}, DEFAULT_TEAM)


def ids(team: Team) -> list[str]:
    return [agent.id for agent in team.agents()]


def unit(name: str, agents: int, **manager: str) -> dict[str, Any]:
    return {"name": name, "manager": manager, "workers": [{} for _ in range(agents - 1)]}


def test_the_default_team_is_thirteen_agents_in_four_units() -> None:
    assert {unit.name: [agent.id for agent in unit.agents] for unit in DEFAULT_TEAM.units} == {
        "meta": ["00"],
        "design": ["10", "11", "12", "13"],
        "development": ["20", "21", "22", "23"],
        "business": ["30", "31", "32", "33"],
    }
    assert len(ids(DEFAULT_TEAM)) == 13
    assert [unit.manager.id for unit in DEFAULT_TEAM.units] == ["00", "10", "20", "30"]
    assert all("manager" in unit.manager.role for unit in DEFAULT_TEAM.units)


def test_every_named_team_is_part_of_the_default_one() -> None:
    everyone = set(DEFAULT_TEAM.agents())
    assert {name: ids(team) for name, team in TEAMS.items() if name != "default"} == {
        "dev": ["00", "20", "21", "22", "23"],
        "pair": ["21", "23"],
        "solo": ["00"],
    }
    assert all(set(team.agents()) <= everyone for team in TEAMS.values())


def test_the_error_for_an_unknown_team_lists_the_known_ones() -> None:
    with pytest.raises(BadInput, match="default, dev, pair, solo"):
        team_named("../solo")


@pytest.mark.parametrize("body", [{}, {"units": []}, {"metaManager": None, "units": None}])
def test_no_agents_mean_the_team_asked_for(body: dict[str, Any]) -> None:
    assert parse_team(body, team_named("pair")) == team_named("pair")


def test_a_target_is_an_agent_a_unit_the_managers_or_all() -> None:
    found = {target: [agent.id for agent in DEFAULT_TEAM.targets(target)] for target in ("21", "design", "managers")}
    assert found == {"21": ["21"], "design": ["10", "11", "12", "13"], "managers": ["00", "10", "20", "30"]}
    assert DEFAULT_TEAM.targets("all") == tuple(DEFAULT_TEAM.agents())


@pytest.mark.parametrize("target", ["", "99", "Design", "design ", "*", "../all", "0"])
def test_the_error_for_an_unknown_target_lists_the_groups(target: str) -> None:
    with pytest.raises(NoAgent, match="units: meta design development business managers all"):
        DEFAULT_TEAM.targets(target)


def test_ids_that_were_not_given_are_the_next_of_the_units_tens() -> None:
    team = parsed(unit("red", 3), unit("blue", 2), metaManager={"prompt": "lead"})
    assert ids(team) == ["00", "10", "11", "12", "20", "21"]
    assert [(unit.name, len(unit.agents)) for unit in team.units] == [("meta", 1), ("red", 3), ("blue", 2)]


def test_a_meta_manager_without_wishes_is_still_a_meta_manager() -> None:
    assert ids(parsed(unit("red", 1), metaManager={})) == ["00", "10"]
    assert ids(parse_team({"metaManager": {}}, DEFAULT_TEAM)) == ["00"]


def test_ids_that_were_given_are_kept_and_never_handed_out() -> None:
    assert ids(parsed(unit("red", 2, id="77"), unit("blue", 2))) == ["77", "10", "20", "21"]
    taken_later = {"name": "red", "manager": {}, "workers": [{"id": "10"}, {}]}
    assert ids(parsed(taken_later)) == ["11", "10", "12"]


def test_two_agents_with_one_id_are_refused() -> None:
    with pytest.raises(BadInput, match="Two agents have the id 10"):
        parsed(unit("red", 1, id="10"), unit("blue", 1, id="10"))
    with pytest.raises(BadInput, match="Two agents have the id 00"):
        parsed(unit("red", 1, id="00"), metaManager={"id": "00"})


@pytest.mark.parametrize("sizes", [[99], [9] * 11, [1] * 99, [50, 49]])
def test_ninety_nine_agents_are_a_team(sizes: list[int]) -> None:
    team = parsed(*(unit(f"u{position}", size) for position, size in enumerate(sizes)))
    assert len(set(ids(team))) == MOST_AGENTS == 99


@pytest.mark.parametrize("sizes", [[100], [10] * 10, [101]])
def test_a_hundred_are_too_many(sizes: list[int]) -> None:
    with pytest.raises(BadInput, match="at most 99"):
        parsed(*(unit(f"u{position}", size) for position, size in enumerate(sizes)))


@pytest.mark.parametrize("name", ["10", "all", "managers", "../x", "x" * 300, "", "Design", "a b", "x\n"])
def test_a_unit_that_could_be_taken_for_something_else_is_refused(name: str) -> None:
    with pytest.raises(BadInput):
        parsed(unit(name, 1))


def test_two_units_of_one_name_are_refused() -> None:
    with pytest.raises(BadInput, match="'red' is taken"):
        parsed(unit("red", 1), unit("red", 1))
    with pytest.raises(BadInput, match="'meta' is taken"):
        parsed(unit("meta", 1), metaManager={"id": "00"})


@pytest.mark.parametrize("agent_id", ["0", "100", "../", "1a", "", "10\n", "\u0661\u0660"])
def test_an_agent_id_is_two_digits(agent_id: str) -> None:
    with pytest.raises(BadInput, match="it must be two digits"):
        parsed(unit("red", 1, id=agent_id))


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({"unitz": []}, "Unknown field 'unitz' in agents"),
        ({"units": [{"name": "red", "boss": {}}]}, "Unknown field 'boss' in agents.units[0]"),
        ({"units": [{"name": "red", "manager": {"modle": "x"}}]}, "Unknown field 'modle' in agents.units[0].manager"),
        ({"units": {"name": "red"}}, "units must be a list"),
        ({"units": "red"}, "units must be a list"),
        ({"units": 0}, "units must be a list"),
        ({"units": ["red"]}, "agents.units[0] must be an object"),
        ({"units": [{"name": "red", "workers": {}}]}, "agents.units[0].workers must be a list"),
        ({"units": [{"name": "red", "manager": ""}]}, "agents.units[0].manager must be an object"),
        ({"units": [{"name": "red", "manager": []}]}, "agents.units[0].manager must be an object"),
        ({"units": [{"name": 7}]}, "agents.units[0].name must be a-z first"),
        ({"metaManager": "x"}, "agents.metaManager must be an object"),
        ({"metaManager": []}, "agents.metaManager must be an object"),
        ({"metaManager": {"prompt": "a\0b"}}, "NUL"),
        ({"metaManager": {"command": "\ud800"}}, "command"),
    ],
)
def test_a_body_that_describes_no_team_is_refused_by_what_is_wrong(body: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInput, match=re.escape(complaint)):
        parse_team(body, DEFAULT_TEAM)


def test_units_keep_their_order_also_one_that_is_called_meta() -> None:
    team = parsed(unit("red", 1), unit("meta", 1))
    assert parse_team(write(team_body(team)), DEFAULT_TEAM) == team
