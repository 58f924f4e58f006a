"""What an agent leaves for MAS, for its next start, or for another workspace: none of it opens a wall."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from tests.e2e.standin import write
from tests.isolation.test_root import NOT_THERE, Trial, workspace
from tests.isolation.tiers import for_all, python_and_account
from tests.site import AGENTS, Site, until


@pytest.fixture(params=["A", "B"])
def tier(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_no_program_that_an_agent_put_into_its_directory_runs_outside_whatever_path_says(site: Site, tier: str) -> None:
    """The launcher asks tmux for the screen, and its directory is the agent's."""
    python, account = python_and_account(site, tier)
    planter = os.path.join(AGENTS, "planter.py")
    argv = json.dumps([python, for_all(site, planter) if account else planter, ".", "bin"])
    screen = "sources = ['screen']\nscreen_map = { idle = 'PLANTED' }\nquiet = 0.1\n"
    write(
        f'provider = {{ id = "planter" }}\n[launch]\nargv = {argv}\n[status]\n{screen}',
        site.path("providers", "planter.toml"),
    )
    body = {"team": "solo", "provider": "planter"} | ({"isolation": {"runAs": account}} if account else {})
    path = f":bin:./bin:.:{site.env['PATH']}"
    words = ("start", "--config", "-")
    done = site.mas(*words, input=json.dumps(body), env={"MAS_ISOLATION": tier, "PATH": path}, code=None)
    if done.returncode == 7:
        pytest.skip(f"this machine has no tier {tier}: {done.stderr.strip().splitlines()[0]}")
    assert done.returncode == 0, done.stderr
    session = done.stdout.strip()
    # Then tmux was asked.
    until(lambda: site.json("show", session)["agents"][0]["state"] == "idle", "a screen that was read")
    assert os.path.exists(site.session(session, "unit", "00", "bin", "tmux"))
    assert not os.path.exists(site.session(session, "unit", "00", "ran"))


def test_of_another_workspace_in_what_a_policy_shows_no_session_is_seen_and_nothing_can_be_changed(
    site: Site, tier: str
) -> None:
    shown = os.path.join(site.directory, "projects")
    # One is near; one deeper than anybody looks, but known, since MAS was used there.
    near, far = os.path.join(shown, "near"), os.path.join(shown, "a/b/c/d/e/f/g/far")
    tries = [*workspace(site, near), *workspace(site, far)]
    site.mas("start", "--team", "solo", "--command", "true", env={"MAS_WORKSPACE_ROOT": far})
    for root in (near, far):
        write("a file of the project's", root, "file")
    subprocess.run(["chmod", "-R", "a+rwX", shown], check=True)
    secrets = [one for one in tries if "/sessions" in one]
    trial = Trial(site, tier)
    assert not {one for one, answer in trial.outside(*secrets).items() if answer in NOT_THERE["B"]}
    files = [f"read:{root}/file" for root in (near, far)]
    seen = trial.attempts(*secrets, *files, read=[shown])
    assert {one: seen.pop(one) for one in files} == dict.fromkeys(files, "a file of the project's")
    assert {one: answer for one, answer in seen.items() if answer not in NOT_THERE[tier]} == {}
    parts = [f"write:{root}/{part}" for root in (near, far) for part in ("config.json", ".masrc", "providers/x.toml")]
    moves = [f"rename:{root}/sessions {root}/s" for root in (near, far)] + [f"rename:{far} {shown}/x"]
    kept = trial.attempts(*secrets, *parts, *moves, f"write:{near}/file", write=[shown])
    assert kept.pop(f"write:{near}/file") == "ok"
    allowed = {*NOT_THERE["B"], "EROFS", "EBUSY", "EXDEV"}
    assert {one: answer for one, answer in kept.items() if answer != [] and answer not in allowed} == {}


@pytest.mark.parametrize("key", ["read", "write"])
def test_no_policy_can_show_the_sessions_of_a_workspace(site: Site, key: str) -> None:
    other = os.path.join(site.directory, "other")
    workspace(site, other)
    for place in (os.path.join(other, "sessions"), os.path.join(other, "sessions", ".mas", "server")):
        body = {"team": "solo", "isolation": {key: [place]}}
        done = site.mas("start", "--config", "-", input=json.dumps(body), env={"MAS_ISOLATION": "A"}, code=2)
        assert "is in the sessions of a workspace" in done.stderr


def test_a_program_in_the_session_of_a_workspace_is_no_reason_to_show_it(site: Site, tier: str) -> None:
    """Neither a directory on PATH nor a link in one leads into the work of other agents."""
    other = os.path.join(site.directory, "other")
    secret = workspace(site, other)[0]
    unit = os.path.dirname(secret.removeprefix("read:"))
    tool = write("#!/bin/sh\n", unit, "bin", "tool")
    os.chmod(tool, 0o755)
    os.makedirs(os.path.join(site.directory, "links"))
    os.symlink(tool, os.path.join(site.directory, "links", "tool"))
    path = f"{site.env['PATH']}:{os.path.dirname(tool)}:{site.directory}/links"
    trial = Trial(site, tier)
    found = trial.attempts(secret, f"list:{unit}", f"read:{tool}", env={"PATH": path})
    assert {one: answer for one, answer in found.items() if answer not in NOT_THERE[tier]} == {}
