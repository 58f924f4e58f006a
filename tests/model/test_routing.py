"""Routing: which agent may write to which."""

from __future__ import annotations

import pytest

from mas.model.errors import Forbidden, NoAgent
from mas.model.team import DEFAULT_TEAM, TEAMS, Routing, Team, may_write
from mas.service.messages.routing import recipients

OPEN = DEFAULT_TEAM._replace(routing=Routing("open"))
TABLE = DEFAULT_TEAM._replace(routing=Routing("table", (("00", ("managers", "23")), ("11", ("development",)))))


def reached(team: Team, sender: str) -> str:
    """Everybody but itself that an agent may write to."""
    return " ".join(
        agent.id for agent in team.agents() if agent.id != sender and may_write(team, sender, agent.id) is None
    )


@pytest.mark.parametrize(
    ("sender", "targets"),
    [("00", "10 20 30"), ("10", "00 11 12 13"), ("11", "10 12 13"), ("20", "00 21 22 23"), ("33", "30 31 32")],
)
def test_in_a_hierarchy_one_writes_to_the_own_unit_and_managers_to_the_meta_manager(sender: str, targets: str) -> None:
    assert reached(DEFAULT_TEAM, sender) == targets
    assert DEFAULT_TEAM.routing == Routing()


def test_a_team_without_a_meta_manager_is_a_hierarchy_of_units() -> None:
    assert reached(TEAMS["pair"], "21") == "23"
    two = Team("two", (DEFAULT_TEAM.units[1], DEFAULT_TEAM.units[2]))
    assert reached(two, "10") == "11 12 13"


def test_in_an_open_team_everybody_writes_to_everybody() -> None:
    assert reached(OPEN, "11") == "00 10 12 13 20 21 22 23 30 31 32 33"


def test_a_table_says_which_agents_each_may_write_to() -> None:
    assert reached(TABLE, "00") == "10 20 23 30"
    assert reached(TABLE, "11") == "20 21 22 23"
    assert reached(TABLE, "10") == ""
    assert may_write(TABLE, "10", "00") == "the team's table lets 10 write to: nobody"
    assert may_write(TABLE, "11", "00") == "the team's table lets 11 write to: development"


def test_a_refused_message_names_the_rule() -> None:
    with pytest.raises(Forbidden, match=r"Agent 11 may not write to 20 \(hierarchy: to the own manager and unit"):
        recipients(DEFAULT_TEAM, "11", "20")
    with pytest.raises(Forbidden, match="Agent 10 may not write to 20"):
        recipients(DEFAULT_TEAM, "10", "managers")
    with pytest.raises(Forbidden, match="Agent 00 may not write to 11"):
        recipients(DEFAULT_TEAM, "00", "all")


def test_people_write_to_anyone() -> None:
    assert len(recipients(DEFAULT_TEAM, None, "all")) == 13
    assert [agent.id for agent in recipients(DEFAULT_TEAM, None, "23")] == ["23"]


@pytest.mark.parametrize("nobody", ["ann", "99", ""])
def test_no_message_can_be_sent_in_the_name_of_an_unknown_agent(nobody: str) -> None:
    with pytest.raises(NoAgent, match="it has: 00 10"):
        recipients(DEFAULT_TEAM, nobody, "23")


def test_an_agent_does_not_get_its_own_message_to_a_group() -> None:
    assert [agent.id for agent in recipients(DEFAULT_TEAM, "00", "managers")] == ["10", "20", "30"]
    assert [agent.id for agent in recipients(DEFAULT_TEAM, "11", "design")] == ["10", "12", "13"]
    assert [agent.id for agent in recipients(DEFAULT_TEAM, "11", "11")] == ["11"]
    with pytest.raises(NoAgent, match="There is no agent in all except the sender 00"):
        recipients(TEAMS["solo"], "00", "all")
