"""Scopes: asked of the user's systemd only where it answers, and harmless where it does not."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from mas.model.isolation import Limits
from mas.runtime.limits.scope import Logout, Scopes, agent_scope, properties, server_scope
from tests.e2e.standin import ASLEEP
from tests.site import Site

SESSION = "0d1f2a3b-0000-4000-8000-000000000000"

Fake = Callable[..., dict[str, str]]


@pytest.fixture
def fake(site: Site) -> Fake:
    """Puts programs of systemd on PATH that print what the test gives them, and record how they were called."""

    def put(run: str = 'while test "$1" != --; do shift; done; shift; exec "$@"', **said: str) -> dict[str, str]:
        directory = os.path.join(site.directory, "bin")
        os.makedirs(directory, exist_ok=True)
        loginctl = f'case "$*" in *Linger*) echo {said.get("linger", "no")};; *) echo {said.get("kills", "no")};; esac'
        for name, script in (("systemd-run", run), ("loginctl", loginctl), ("systemctl", "exit 0")):
            path = os.path.join(directory, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(f'#!/bin/sh\necho "{name} $*" >>{site.directory}/called\n{script}\n')
            os.chmod(path, 0o755)
        path = f"{directory}:{site.env['PATH']}"
        return {**site.env, "PATH": path, "XDG_RUNTIME_DIR": site.directory, "XDG_SESSION_ID": "1"}

    return put


def called(site: Site) -> str:
    try:
        with open(os.path.join(site.directory, "called"), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def test_limits_are_written_as_systemd_properties() -> None:
    limits = Limits(memory=2 << 30, processes=64, cpu=1.5, files=10, disk=1)
    assert list(properties(limits)) == [f"MemoryMax={2 << 30}", "MemorySwapMax=0", "TasksMax=64", "CPUQuota=150%"]
    argv = agent_scope(SESSION, "10", limits)
    assert argv[:5] == ("systemd-run", "--user", "--scope", "--quiet", "--collect")
    assert argv[-1] == "--"
    assert "--slice=mas-0d1f2a3b000040008000000000000000.slice" in argv
    assert "--unit=mas-0d1f2a3b000040008000000000000000-10" in argv
    assert argv[argv.index("TasksMax=64") - 1] == "-p"


def test_without_a_user_bus_nothing_is_asked(site: Site, fake: Fake) -> None:
    env = fake()
    del env["XDG_RUNTIME_DIR"]
    assert not Scopes(env).given()
    assert called(site) == ""


def test_a_systemd_that_refuses_gives_no_scope(fake: Fake) -> None:
    assert not Scopes(fake("exit 1")).given()


@pytest.mark.parametrize(
    ("kills", "linger", "stays"),
    [
        ("no", "no", Logout.STAYS),
        ("yes", "yes", Logout.STAYS_IN_SCOPE),
        ("yes", "no", Logout.ENDS),
    ],
)
def test_logind_says_what_becomes_of_a_tmux_server(fake: Fake, kills: str, linger: str, stays: Logout) -> None:
    assert Scopes(fake(kills=kills, linger=linger)).at_logout() is stays


def test_a_server_that_would_end_at_logout_starts_in_a_scope_of_its_own(site: Site, fake: Fake) -> None:
    session = site.start(*ASLEEP, env=fake(kills="yes", linger="yes"))
    assert " ".join(server_scope(f"mas-{session[:8]}")) in called(site)
    assert site.statuses() == {session: "active"}


@pytest.mark.parametrize("run", ["exit 1", 'test "$5" = -- && exit 0; echo Failed to connect to bus >&2; exit 1'])
def test_a_scope_that_is_not_to_be_had_keeps_nothing_from_starting(site: Site, fake: Fake, run: str) -> None:
    session = site.start(*ASLEEP, env=fake(run, kills="yes", linger="yes"))
    assert site.statuses() == {session: "active"}
    assert len(site.tmux_sessions()) == 1


def test_the_doctor_says_what_becomes_of_sessions_at_logout(site: Site, fake: Fake) -> None:
    checks = {check["name"]: check for check in site.json("doctor", code=None, env=fake(kills="yes"))["checks"]}
    assert checks["logout"]["ok"] is False
    assert "linger" in checks["logout"]["hint"]
    assert "limits" in checks
    assert "logout" not in {check["name"] for check in site.json("doctor")["checks"]}
