"""Model: one word for all agents that name none, given to those whose program takes it."""

from __future__ import annotations

import json
import os

from tests.site import Site, until

# It prints which model it was given, and stays.
PROVIDER = """
provider = { id = "teller", description = "says its model" }

[launch]
argv = ["sh", "-c", 'echo "model=$2"; exec cat', "sh", ["--model", "{model}"]]
"""
TEAM = {
    "metaManager": {"id": "00", "provider": "teller"},
    "units": [{"name": "more", "manager": {"id": "20", "provider": "teller", "model": "own"}}],
}


def teller(site: Site) -> None:
    os.makedirs(site.path("providers"), exist_ok=True)
    with open(site.path("providers", "teller.toml"), "w", encoding="utf-8") as file:
        file.write(PROVIDER)


def shows(site: Site, agent: str, text: str) -> bool:
    return text in site.mas("output", agent).stdout


def test_a_model_is_for_the_agents_that_name_none(site: Site) -> None:
    teller(site)
    session = site.start("--config", "-", "--model", "large", input=json.dumps({"agents": TEAM}))
    until(lambda: shows(site, "00", "model=large") and shows(site, "20", "model=own"), "both models")
    assert {agent["id"]: agent["model"] for agent in site.json("show", session)["agents"]} == {
        "00": "large",
        "20": "own",
    }
    # A session that comes back is the same.
    site.mas("stop", session)
    site.mas("restore", session)
    until(lambda: shows(site, "00", "model=large"), "the model after a restore")


def test_a_model_can_be_a_field_of_a_run(site: Site) -> None:
    teller(site)
    site.start("--config", "-", input=json.dumps({"team": "solo", "provider": "teller", "model": "small"}))
    until(lambda: shows(site, "00", "model=small"), "the model")


def test_a_model_that_no_agent_takes_is_refused(site: Site) -> None:
    assert "shell does not take a model" in site.mas("start", "--model", "large", code=2).stderr
    done = site.mas("start", "--team", "solo", "--command", "cat", "--model", "large", code=2)
    assert "generic does not take a model" in done.stderr
    assert site.statuses() == {}


def test_agents_that_take_no_model_are_named(site: Site) -> None:
    teller(site)
    team = {**TEAM, "units": [{"name": "more", "manager": {"id": "20", "command": "cat"}}]}
    done = site.mas("start", "--config", "-", "--model", "large", input=json.dumps({"agents": team}))
    assert "Started without model large, because generic takes none: 20" in done.stderr
