"""Up: the newcomer's one command."""

from __future__ import annotations

import os
import sys

import httpx
import pytest

from tests.e2e.standin import tmux_name
from tests.page_key import PageKey
from tests.site import Site, until


def test_up_makes_a_workspace_starts_a_team_and_serves_it_and_all_of_that_only_once(bare: Site) -> None:
    env = {"MAS_WORKSPACE_ROOT": ""}
    first = bare.json("up", bare.root, "--port", "0", env=env)
    assert len(first["session"]["agents"]) == 13
    assert {agent["provider"] for agent in first["session"]["agents"]} == {"demo"}
    assert os.path.isfile(bare.path(".masrc"))
    again = bare.mas("up", bare.root, env=env)
    assert "already running" in again.stderr
    assert again.stdout.startswith(f"{first['server']['url']}/login#code=")
    assert bare.tmux_sessions() == {tmux_name(first["session"]["sessionId"])}


def test_up_restores_the_team_that_was_stopped_last_and_starts_another_only_when_asked(bare: Site) -> None:
    bare.mas("init", bare.root)
    older = bare.mas("start", "--team", "solo").stdout.strip()
    newer = bare.mas("start", "--team", "solo").stdout.strip()
    bare.mas("stop", newer)
    bare.mas("stop", older)
    again = bare.mas("up", "--port", "0")
    assert f"Restored {tmux_name(older)}: 1 agent" in again.stderr
    assert "mas up --new" in again.stderr
    assert bare.tmux_sessions() == {tmux_name(older)}
    new = bare.json("up", "--new")["session"]["sessionId"]
    assert bare.tmux_sessions() == {tmux_name(older), tmux_name(new)}


def test_up_restores_a_team_whose_tmux_server_was_killed(bare: Site) -> None:
    bare.mas("init", bare.root)
    session = bare.mas("start", "--team", "solo").stdout.strip()
    bare.tmux("kill-server")
    assert bare.json("up", "--port", "0")["session"]["sessionId"] == session


@pytest.mark.parametrize("on_path", [True, False], ids=["mas on PATH", "mas not on PATH"])
def test_what_up_says_to_type_next_works_as_printed(bare: Site, on_path: bool) -> None:
    # A directory that a shell would take for three words.
    place = os.path.join(bare.home, "a b'c")
    os.mkdir(place)
    beside = os.path.dirname(sys.executable)
    others = [part for part in bare.env["PATH"].split(":") if not os.path.exists(os.path.join(part, "mas"))]
    path = ":".join([beside, *others] if on_path else others)
    env = {"MAS_WORKSPACE_ROOT": "", "PATH": path}
    said = bare.run([os.path.join(beside, "mas"), "up", "demo", "--port", "0"], cwd=place, env=env).stderr.splitlines()
    (first,) = (line.removeprefix("first: ") for line in said if line.startswith("first: "))
    (after,) = (line.removeprefix("next:") for line in said if line.startswith("next:"))
    stop, end = after.split("  ·  ")[1:]
    assert ("PATH" in first) is not on_path
    typed = bare.run(["bash", "-c", f"{first}\nmas list\n{stop}\n{end}"], cwd=place, env=env)
    assert "active" in typed.stdout
    assert "Stopped mas-" in typed.stderr
    assert "Stopped the server" in typed.stderr


def test_without_tmux_up_makes_nothing(bare: Site) -> None:
    empty = os.path.join(bare.home, "bin")
    os.mkdir(empty)
    refused = bare.mas("up", "shop", code=7, cwd=bare.home, env={"MAS_WORKSPACE_ROOT": "", "PATH": empty})
    assert "tmux is not installed" in refused.stderr
    assert "install tmux" in refused.stderr
    assert not os.path.exists(os.path.join(bare.home, "shop"))


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
    where, _, code = address.partition("/login#code=")
    with httpx.Client(base_url=where, trust_env=False) as browser:
        assert browser.get("/login").status_code == 200
        bearer = {"Authorization": f"Bearer {PageKey(browser, code).sign_in()}"}
        assert browser.get("/sessions", headers=bearer).json()["total"] == 1
        again = PageKey(browser, code)
        assert again.prove(again.hello()).status_code == 401
