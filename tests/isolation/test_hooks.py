"""Hooks of isolated agents come through their launcher, and so do the answers."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import sys

import pytest

from tests.e2e.standin import write
from tests.isolation.tiers import python_and_account
from tests.site import AGENTS, Site, until

STATUS = 'sources = ["hooks"]\nhook_map = { PermissionRequest = "blocked", Stop = "idle" }'


def start(site: Site, tier: str, account: str | None = None) -> str:
    """A session of one isolated agent that asks by a hook."""
    if not account:
        _, account = python_and_account(site, tier, sys.executable)
    argv = json.dumps([sys.executable, os.path.join(AGENTS, "hook_asker.py"), "rm x"])
    approve = 'method = "hook:PermissionRequest", hook_timeout = 60'
    write(
        f'provider = {{ id = "hooked" }}\napprove = {{ {approve} }}\n[launch]\nargv = {argv}\n[status]\n{STATUS}\n',
        site.path("providers", "hooked.toml"),
    )
    body = {"team": "solo", "provider": "hooked"} | ({"isolation": {"runAs": account}} if account else {})
    words = ("start", "--config", "-")
    done = site.mas(*words, input=json.dumps(body), env={"MAS_ISOLATION": tier}, code=None)
    if done.returncode == 7:
        pytest.skip(f"this machine has no tier {tier}: {done.stderr.strip().splitlines()[0]}")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def answered(site: Site, session: str) -> str:
    def asked() -> list[str]:
        return [one["text"] for one in site.json("approvals")["approvals"]]

    assert until(asked, "the question") == ["approve Bash: rm x"]
    site.mas("deny", session, "00")
    path = site.session(session, "unit", "00", "decision")
    until(lambda: os.path.exists(path), "the answer")
    with open(path, encoding="utf-8") as file:
        return file.read()


@pytest.mark.parametrize("tier", ["A", "B"])
def test_a_question_of_an_isolated_agent_is_answered(site: Site, tier: str) -> None:
    session = start(site, tier)
    said = answered(site, session)
    assert said.startswith("0 ")
    assert json.loads(said[2:])["hookSpecificOutput"]["decision"] == {"behavior": "deny"}
    spool = site.session(session, ".mas", "agents", "00", "hooks")
    until(lambda: os.listdir(spool) == ["bell"], "an empty spool")


def test_an_agent_that_runs_under_an_account_of_its_own_is_answered_too(site: Site) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can run agents under another account")
    if not shutil.which("setpriv"):
        pytest.skip("setpriv, which tells whether the account can run Python, is not installed")
    as_nobody = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]
    if site.run([*as_nobody, sys.executable, "-c", "import mas"], cwd="/").returncode:
        pytest.skip("the account nobody cannot run this Python")
    os.chmod(site.directory, 0o755)
    session = start(site, "A", "nobody")
    assert answered(site, session).startswith("0 {")
    assert os.stat(site.session(session, "unit", "00", "decision")).st_uid == pwd.getpwnam("nobody").pw_uid
