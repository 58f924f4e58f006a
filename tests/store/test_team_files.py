"""Team files: what a workspace's own teams may say, and the errors for those that are wrong."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator

import pytest

from mas.model.catalog import TeamView
from mas.model.errors import BadInput
from mas.model.team import TEAMS, Agent, Routing
from mas.model.teamfile import parse_team_file, shipped_teams, team_file, team_in, view_in
from mas.store.layout import Layout
from mas.store.workspace.team_files import Teams
from tests.site import short_directory

OWN = """
name = "review"
description = "writes and checks"
routing = "open"

[[units]]
name = "meta"
agents = [{ id = "00", role = "Chief" }]

[[units]]
name = "code"
agents = [
    { role = "Author", provider = "claude", model = "opus", prompt = "Write «it».\\nShort." },
    { id = "77", command = "sh -i" },
]
"""


@pytest.fixture
def layout() -> Iterator[Layout]:
    with short_directory() as directory:
        os.makedirs(os.path.join(directory, "templates", "teams"))
        yield Layout(directory)


def offered(layout: Layout, **files: str) -> dict[str, TeamView]:
    for name, text in files.items():
        with open(layout.at("templates", "teams", f"{name}.toml"), "w", encoding="utf-8") as file:
            file.write(text)
    return {team.name: team for team in Teams(layout).all()}


def test_a_workspace_without_teams_of_its_own_has_the_shipped_ones(layout: Layout) -> None:
    assert list(offered(layout)) == ["default", "dev", "pair", "solo"]
    os.rmdir(layout.at("templates", "teams"))
    for team in Teams(layout).all():
        assert team.origin == "shipped"
        assert team.description
        assert team_in(Teams(layout).all(), team.name) == TEAMS[team.name]


def test_a_team_of_the_workspace_is_read_whole(layout: Layout) -> None:
    view = offered(layout, review=OWN)["review"]
    assert (view.description, view.agent_count, view.origin, view.problem) == ("writes and checks", 3, "workspace", "")
    team = team_in([view], "review")
    assert team.routing == Routing("open")
    assert list(team.agents()) == [
        Agent("00", "Chief"),
        Agent("10", "Author", "claude", "opus", None, "Write «it».\nShort."),
        Agent("77", "Agent", command="sh -i"),
    ]


def test_a_team_of_the_workspace_wins_over_a_shipped_one(layout: Layout) -> None:
    teams = offered(layout, solo=OWN.replace('"review"', '"solo"'))
    assert list(teams) == ["default", "dev", "pair", "solo"]
    assert teams["solo"].agent_count == 3


def test_a_routing_table_is_kept(layout: Layout) -> None:
    table = OWN.replace('routing = "open"', "") + "[routing]\n00 = ['code', '77']\n77 = []\n"
    view = offered(layout, review=table)["review"]
    assert (view.routing, view.routes) == ("table", {"00": ("code", "77"), "77": ()})
    assert team_in([view], "review").routing == Routing("table", (("00", ("code", "77")), ("77", ())))


@pytest.mark.parametrize("name", [*TEAMS, "review"])
def test_what_is_printed_of_a_team_is_a_file_of_the_same(layout: Layout, name: str) -> None:
    table = OWN.replace('routing = "open"', "") + "[routing]\n00 = ['code', '77']\n"
    view = offered(layout, review=table)[name]
    again = parse_team_file(tomllib.loads(team_file(view)), name)
    assert again == view._replace(origin="workspace")


def test_one_to_ninety_nine_agents_are_a_team(layout: Layout) -> None:
    agents = ", ".join(["{}"] * 99)
    assert offered(layout, big=f"[[units]]\nname = 'a'\nagents = [{agents}]")["big"].agent_count == 99
    assert offered(layout, one="[[units]]\nname = 'a'\nagents = [{}]")["one"].agent_count == 1


UNIT = "[[units]]\nname = 'a'\nagents = [{}]\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("not toml", "is not TOML: "),
        ("", "A team has at least one unit"),
        ("units = []", "A team has at least one unit"),
        ("units = 7", "units must be a list"),
        ("units = [7]", "units[0] must be a table"),
        ("[[units]]\nname = 'a'", "units[0].agents is empty: the unit a needs at least one agent"),
        ("[[units]]\nagents = [{}]", "units[0].name is missing"),
        ("[[units]]\nname = 'all'\nagents = [{}]", "The unit name 'all' is taken"),
        (UNIT + UNIT, "The unit name 'a' is taken"),
        (UNIT.replace("[{}]", "[{ id = '1' }]"), "units[0].agents[0].id is '1'; it must be two digits"),
        (UNIT.replace("[{}]", "[{ id = '10' }, { id = '10' }]"), "Two agents have the id 10"),
        (UNIT.replace("[{}]", "[{ rolle = 'x' }]"), "Unknown field 'rolle' in units[0].agents[0]"),
        (UNIT.replace("[{}]", f"[{', '.join(['{}'] * 100)}]"), "A team has at most 99 agents"),
        ("name = 'other'\n" + UNIT, "name is 'other'; it must be 'mine', as the file is called"),
        ("team = 'x'\n" + UNIT, "Unknown field 'team' in a team"),
        ("routing = 'chaos'\n" + UNIT, "routing is 'chaos'; it must be hierarchy, open or a table"),
        (UNIT + "[routing]\n99 = []", "routing names '99', which is no agent of this team"),
    ],
)
def test_a_file_that_describes_no_team_is_named_with_what_is_wrong(layout: Layout, text: str, complaint: str) -> None:
    teams = offered(layout, mine=text)
    assert layout.at("templates", "teams", "mine.toml") in teams["mine"].problem
    assert complaint in teams["mine"].problem
    # The others can be used all the same.
    assert team_in(teams.values(), "solo") == TEAMS["solo"]
    with pytest.raises(BadInput, match=r"mine\.toml"):
        view_in(teams.values(), "mine")


@pytest.mark.parametrize("name", ["custom", "Mine", "a b"])
def test_a_file_whose_name_cannot_be_a_teams_is_reported(layout: Layout, name: str) -> None:
    assert name in offered(layout, **{name: UNIT})[name].problem


def test_the_error_for_an_unknown_team_lists_the_known_ones() -> None:
    with pytest.raises(BadInput, match=r"No team 'x' \(there are: default, dev, pair, solo\)"):
        team_in(shipped_teams(), "x")
