"""MAS's tools in a program that clears the environment of what it starts, as Codex does, in every tier."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import pytest

from tests.served import Served
from tests.site import AGENTS, Site, until


def start(site: Site, tier: str) -> str:
    """A pair of agents, started as Codex is, that clear the environment of their tools."""
    if tier == "B" and os.getuid() == 0:
        pytest.skip("in tier B, no agent runs as root, and another account does not see the server's address")
    site.mas("providers", "copy", "codex")
    path = site.path("providers", "codex.toml")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    words = json.dumps([sys.executable, os.path.join(AGENTS, "clearing.py")])[1:-1]
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace('["codex", ["-m"', f'[{words}, ["-m"'))
    done = site.mas("start", "--team", "pair", "--provider", "codex", env={"MAS_ISOLATION": tier}, code=None)
    if done.returncode == 7 and tier != "D":
        pytest.skip(f"this machine has no tier {tier}: {done.stderr.strip().splitlines()[0]}")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def call(site: Site, session: str, number: int, name: str, **arguments: str) -> dict[str, Any]:
    """Have agent 21 call a tool; the result."""

    def at(kind: str) -> str:
        return site.session(session, "unit", "21", f"{kind}-{number}")

    with open(at("call.new"), "w", encoding="utf-8") as file:
        json.dump([name, arguments], file)
    os.rename(at("call.new"), at("call"))
    until(lambda: os.path.exists(at("result")), f"the result of {name}")
    with open(at("result"), encoding="utf-8") as file:
        result = json.load(file)
    assert isinstance(result, dict)
    return result


@pytest.mark.parametrize("tier", ["A", "B", "D"])
def test_tools_whose_environment_was_cleared_know_their_agent_and_wait_for_the_server(site: Site, tier: str) -> None:
    session = start(site, tier)
    first = call(site, session, 1, "send_message", target="23", message="without a server")
    if tier == "D":
        # It has the workspace itself.
        assert not first.get("isError"), first
    else:
        assert first["isError"]
        assert "mas serve --detach" in first["content"][0]["text"]
    served = Served(site)
    try:
        second = call(site, session, 2, "send_message", target="23", message="with one")
        assert not second.get("isError"), second
        team = call(site, session, 3, "list_team")["structuredContent"]
    finally:
        served.close()
    assert team["you"] == "21"
    expected = ["without a server", "with one"] if tier == "D" else ["with one"]
    found = site.json("inbox", "--session", session, "23")["messages"]
    assert [(one["from"], one["message"]) for one in found] == [("21", text) for text in expected]
