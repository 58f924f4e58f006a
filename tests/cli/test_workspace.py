"""Which workspace a command works on."""

from __future__ import annotations

import os

from tests.site import Site

NOWHERE = {"MAS_WORKSPACE_ROOT": ""}


def test_up_below_a_workspace_means_that_workspace(site: Site) -> None:
    below = site.path("unit", "00")
    before = os.listdir(below)
    up = site.json("up", "--port", "0", env=NOWHERE, cwd=below)
    assert site.statuses() == {up["session"]["sessionId"]: "active"}
    assert os.listdir(below) == before
    again = site.mas("up", env=NOWHERE, cwd=below)
    assert again.stdout.startswith(up["server"]["url"])
    assert "is already running" in again.stderr


def test_up_outside_a_workspace_makes_one_here(bare: Site) -> None:
    there = os.path.join(bare.directory, "fresh")
    os.mkdir(there)
    env = {"MAS_WORKSPACE_ROOT": "", "MAS_PROVIDER": "shell"}
    session = bare.json("up", "--port", "0", env=env, cwd=there)["session"]["sessionId"]
    assert os.path.isdir(os.path.join(there, "sessions", session))


def test_init_makes_the_workspace_the_flag_names(bare: Site) -> None:
    for args in (["init", "--workspace", "flagged"], ["--workspace", "before", "init"], ["init", "named"]):
        assert bare.mas(*args, cwd=bare.home).stdout.strip() == os.path.join(
            bare.home, args[-1].replace("init", "before")
        )
    assert sorted(os.listdir(bare.home)) == ["before", "flagged", "named"]
