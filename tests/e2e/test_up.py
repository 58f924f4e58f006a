"""Up: the newcomer's one command."""

from __future__ import annotations

import os

import httpx

from tests.e2e.standin import tmux_name
from tests.site import Site, until


def test_up_makes_a_workspace_starts_a_team_and_serves_it_and_all_of_that_only_once(bare: Site) -> None:
    env = {"MAS_WORKSPACE_ROOT": ""}
    first = bare.json("up", bare.root, "--port", "0", env=env)
    assert len(first["session"]["agents"]) == 13
    assert {agent["provider"] for agent in first["session"]["agents"]} == {"demo"}
    assert os.path.isfile(bare.path(".masrc"))
    again = bare.mas("up", bare.root, env=env)
    assert "already running" in again.stderr
    assert again.stdout.startswith(f"{first['server']['url']}/login?code=")
    assert bare.tmux_sessions() == {tmux_name(first["session"]["sessionId"])}


def test_the_demo_team_of_up_is_at_work(bare: Site) -> None:
    session = bare.json("up", bare.root, "--port", "0", env={"MAS_WORKSPACE_ROOT": ""})["session"]["sessionId"]

    def passed_on() -> bool:
        return any(message["from"] == "00" for message in bare.json("inbox", session)["messages"])

    until(passed_on, "the first task to be passed on")


def test_up_gives_nothing_to_do_to_agents_that_may_cost_something(bare: Site) -> None:
    bare.mas("init", bare.root, "--provider", "shell")
    session = bare.json("up", bare.root, "--port", "0")["session"]["sessionId"]
    assert bare.json("inbox", session)["messages"] == []


def test_the_address_that_up_prints_signs_a_browser_in_once(bare: Site) -> None:
    address = bare.mas("up", bare.root, "--port", "0", env={"MAS_WORKSPACE_ROOT": ""}).stdout.strip()
    with httpx.Client(follow_redirects=True) as browser:
        page = browser.get(address)
        assert page.status_code == 200
        assert "code=" not in str(page.url)
        assert browser.get(page.url.join("/sessions")).json()["total"] == 1
    with httpx.Client() as other:
        assert other.get(address).status_code == 401
