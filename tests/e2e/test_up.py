"""Up: the newcomer's one command."""

from __future__ import annotations

import os

from tests.e2e.standin import tmux_name
from tests.site import Site


def test_up_makes_a_workspace_and_starts_a_team_and_only_once(bare: Site) -> None:
    env = {"MAS_WORKSPACE_ROOT": ""}
    first = bare.json("up", bare.root, env=env)
    assert len(first["agents"]) == 13
    assert {agent["provider"] for agent in first["agents"]} == {"demo"}
    assert os.path.isfile(bare.path(".masrc"))
    again = bare.mas("up", bare.root, env=env)
    assert again.stdout.strip() == first["sessionId"]
    assert "already running" in again.stderr
    assert bare.tmux_sessions() == {tmux_name(first["sessionId"])}
