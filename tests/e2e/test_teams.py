"""mas teams, and sessions of teams that a workspace describes itself."""

from __future__ import annotations

import json
import os

from tests.site import Site

TEAM = """
description = "two who talk"
[routing]
00 = ["70"]
70 = []
[[units]]
name = "meta"
agents = [{ id = "00", role = "Chief", command = "cat" }]
[[units]]
name = "sales"
agents = [{ id = "70", role = "Seller", provider = "shell" }, { id = "71", prompt = "Sell." }]
"""


def own_team(site: Site, text: str = TEAM) -> None:
    os.makedirs(site.path("templates", "teams"), exist_ok=True)
    with open(site.path("templates", "teams", "shop.toml"), "w", encoding="utf-8") as file:
        file.write(text)


def test_teams_are_listed_and_printed_as_files(site: Site) -> None:
    own_team(site)
    assert [(team["name"], team["origin"]) for team in site.json("teams")["teams"]] == [
        ("default", "shipped"),
        ("dev", "shipped"),
        ("pair", "shipped"),
        ("solo", "shipped"),
        ("shop", "workspace"),
    ]
    assert "two who talk" in site.mas("teams").stdout
    printed = site.mas("teams", "shop").stdout
    own_team(site, printed)
    assert site.mas("teams", "shop").stdout == printed
    assert site.json("teams", "shop")["units"][1]["agents"][0]["role"] == "Seller"
    assert "there are: default, dev, pair, solo, shop" in site.mas("teams", "nobody", code=2).stderr


def test_a_session_of_an_own_team_has_its_agents_roles_and_routing_for_good(site: Site) -> None:
    own_team(site)
    session = site.start("--team", "shop")
    agents = [(agent["id"], agent["unit"], agent["role"], agent["provider"]) for agent in site.json("show")["agents"]]
    assert agents == [
        ("00", "meta", "Chief", "generic"),
        ("70", "sales", "Seller", "shell"),
        ("71", "sales", "Agent", "shell"),
    ]
    os.remove(site.path("templates", "teams", "shop.toml"))
    refused = site.mas("send", "--from", "70", "00", "hello", code=8)
    assert "Agent 70 may not write to 00 (the team's table lets 70 write to: nobody)" in refused.stderr
    assert json.loads(site.mas("send", "--from", "70", "00", "hello", "--json", code=8).stderr)["code"] == "forbidden"
    site.mas("stop", session)
    site.mas("restore", session)
    assert [(a["id"], a["unit"], a["role"], a["provider"]) for a in site.json("show")["agents"]] == agents
    site.mas("teams", "shop", code=2)


def test_a_refused_message_is_not_kept_and_people_are_never_refused(site: Site) -> None:
    own_team(site)
    site.start("--team", "shop")
    site.mas("send", "--from", "71", "00", "no", code=8)
    before = site.json("inbox")["total"]
    site.mas("send", "--force", "00", "yes")
    site.mas("send", "--from", "ann", "00", "no", code=2)
    texts = [message["message"] for message in site.json("inbox")["messages"]]
    assert "no" not in texts
    assert texts[before:] == ["yes"]


def test_a_broken_team_file_is_reported_and_disturbs_no_other_team(site: Site) -> None:
    own_team(site, "units = 7")
    assert "shop.toml: units must be a list" in site.mas("teams").stdout
    assert "units must be a list" in site.mas("start", "--team", "shop", code=2).stderr
    site.start("--team", "solo")
