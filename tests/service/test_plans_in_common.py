"""What the plans of a team's agents have in common: one root for those that see the same, and a filter made once."""

from __future__ import annotations

import json
import os

import pytest

from mas.model.isolation import Isolation, Tier
from mas.providers.provider import Program
from mas.runtime.sandbox.seccomp import packed
from mas.runtime.sandbox.view import split
from mas.service.isolation.enclosure import Enclosure
from mas.store.agent.directory import AgentPlace
from tests.service.test_enclosure import PROGRAM, House
from tests.site import ELSEWHERE, Site, fresh_workspace

ENV = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
def house(site: Site) -> House:
    return House(site, Tier.A)


def walls(house: House, how: str = "namespaces", **programs: Program) -> Enclosure:
    made = Enclosure(house.world, house.session, Isolation(house.tier, how))
    made.furnish({name.removeprefix("agent"): program for name, program in programs.items()})
    return made


def test_agents_that_see_the_same_share_a_root(house: House) -> None:
    enclosure = walls(house, agent00=PROGRAM, agent01=PROGRAM)
    one, two = (enclosure.rules(agent, PROGRAM, ENV, in_team=True) for agent in ("00", "01"))
    assert one.shared_root == two.shared_root
    assert os.path.dirname(one.shared_root) == house.at(".mas", "roots")
    assert one.own == (house.at(".mas", "agents", "00"),)
    assert set(one.own) & set(two.write) == set()


def test_a_file_of_an_agent_s_own_separates_no_agents_but_another_sight_does(house: House) -> None:
    programs = {}
    for agent in ("00", "01"):
        place = AgentPlace(house.world.layout.session(house.session), agent)
        place.make()
        settings = os.path.join(place.path, "settings.json")
        with open(settings, "w", encoding="ascii"):
            programs[agent] = Program((*PROGRAM.argv, settings))
    os.makedirs(os.path.join(house.home, ".secret"))
    signed_in = PROGRAM._replace(credentials=("~/.secret",))
    enclosure = walls(house, agent00=programs["00"], agent01=programs["01"], agent02=signed_in)
    roots = {agent: enclosure.rules(agent, one, ENV, in_team=True).shared_root for agent, one in programs.items()}
    assert roots["00"] == roots["01"]
    assert enclosure.rules("02", signed_in, ENV, in_team=True).shared_root != roots["00"]


@pytest.mark.skipif(ELSEWHERE is None, reason="no place for a workspace but /tmp")
def test_what_is_an_agent_s_own_is_in_no_shared_root() -> None:
    assert ELSEWHERE
    # In /tmp all of a workspace would be below what is the agent's own.
    with fresh_workspace("--provider", "shell", within=ELSEWHERE) as site:
        house = House(site, Tier.A)
        common, own = split(walls(house, agent00=PROGRAM).rules("00", PROGRAM, ENV, in_team=True))
    private, session = house.at(".mas"), house.at()
    assert ("hide", private, private) in own
    assert {path for _, path, _ in own} >= {"/tmp", house.at(".mas", "agents", "00")}
    assert ("read", session.rstrip("/"), session.rstrip("/")) in common
    assert not [path for _, path, source in common if "agents/00" in path + source or ".tmp/00" in source]


def test_who_is_alone_or_has_another_kind_of_view_shares_none(house: House) -> None:
    assert not walls(house, agent00=PROGRAM).rules("00", PROGRAM, ENV).shared_root
    assert not walls(house, "bwrap", agent00=PROGRAM).rules("00", PROGRAM, ENV, in_team=True).shared_root
    own = os.path.join(house.home, ".config", "mas")
    os.makedirs(own)
    with open(os.path.join(own, "config.json"), "w", encoding="ascii") as file:
        json.dump({"isolation": {"root": "all"}}, file)
    assert not walls(house, agent00=PROGRAM).rules("00", PROGRAM, ENV, in_team=True).shared_root


@pytest.mark.parametrize("tier", [Tier.A, Tier.B])
def test_the_filter_is_that_of_the_rules(site: Site, tier: Tier) -> None:
    house = House(site, tier)
    how = "namespaces" if tier == Tier.A else "landlock"
    opener = PROGRAM._replace(system_calls=("userfaultfd",))
    enclosure = walls(house, how, agent00=PROGRAM, agent01=opener)
    one, two = enclosure.rules("00", PROGRAM, ENV), enclosure.rules("01", opener, ENV)
    for rules in (one, two):
        assert rules.filter == packed(rules, own_processes=tier == Tier.A).hex()
    assert one.filter != two.filter
