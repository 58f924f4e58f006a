"""`mas doctor --view` and `mas show --view`: what agents see, why, and how a missing path would be seen."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from mas.model.ids import SessionId
from mas.model.isolation import Limits, SessionLimits
from mas.model.team import team_named
from mas.service.isolation.account import find_account
from mas.service.isolation.limits import Enforcer
from tests.isolation.test_root import Trial
from tests.isolation.tiers import python_and_account
from tests.site import Site


@pytest.fixture(autouse=True)
def _needs_tier_a(site: Site) -> None:
    done = site.mas("doctor", "--view", env={"MAS_ISOLATION": "A"}, code=None)
    if done.returncode == 7:
        pytest.skip(f"this machine has no tier A: {done.stderr.strip().splitlines()[0]}")


def test_the_view_says_what_agents_see_and_why(site: Site) -> None:
    rows = {row["path"]: row for row in site.json("doctor", "--view", env={"MAS_ISOLATION": "A"})["paths"]}
    assert rows["/usr"] == {"path": "/usr", "access": "read", "why": "the system"}
    assert rows["/etc/passwd"]["access"] == "read"
    assert rows["/tmp"]["access"] == "write"
    assert rows[site.path("templates")]["why"] == "part of the workspace"
    assert not {"/", "/srv", "/etc", "/etc/shadow", site.root} & {
        path for path, row in rows.items() if row["access"] != "hidden"
    }
    text = site.mas("doctor", "--view", env={"MAS_ISOLATION": "A"}).stdout
    assert len(text.splitlines()) == len(rows) + 1


def test_a_path_that_a_program_misses_is_explained_with_the_line_that_would_add_it(site: Site) -> None:
    missed = os.path.join(site.home, "data")
    os.mkdir(missed)
    done = site.mas("doctor", "--view", missed, env={"MAS_ISOLATION": "A"}, code=1)
    assert "hidden" in done.stdout
    assert "isolation.system" in done.stderr
    assert os.path.join(site.home, ".config/mas/config.json") in done.stderr
    seen = site.json("doctor", "--view", "/bin/sh", env={"MAS_ISOLATION": "A"})["paths"]
    assert [row["access"] for row in seen] == ["read"]
    off = site.json("doctor", "--view", missed)
    assert (off["tier"], off["paths"][0]["access"]) == ("D", "write")


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_a_command_finds_the_files_that_a_program_uses_and_agents_would_miss(site: Site) -> None:
    place = os.path.join(site.home, "tool chain\u00e9")
    os.makedirs(os.path.join(place, "lib"))
    for name in ("one", "two"):
        with open(os.path.join(place, "lib", name), "wb"):
            pass
    script = f"cd '{place}'; cat lib/one; cat '{place}/lib/two' /etc/passwd; cat '{place}/lib/none'; echo done"
    done = site.mas("doctor", "--json", "--trace", "sh", "-c", script, env={"MAS_ISOLATION": "A"}, code=1)
    rows = {row["path"]: row["why"] for row in json.loads(done.stdout)["paths"]}
    assert rows == {place: f"not listed: {place}/lib/one and 1 more"}
    assert "done" in done.stderr
    assert "isolation.system" in done.stderr
    # A control: nothing is missed by a program that uses what is listed.
    fine = site.mas("doctor", "--trace", "cat", "/etc/passwd", env={"MAS_ISOLATION": "A"})
    assert "Agents see every file" in fine.stdout


def test_a_program_that_cannot_be_traced_is_named(site: Site) -> None:
    done = site.mas("doctor", "--trace", "no-such-program", env={"MAS_ISOLATION": "A"}, code=None)
    assert done.returncode
    assert "is not installed" in done.stderr
    assert "No command given" in site.mas("doctor", "--trace", code=2).stderr


@pytest.mark.parametrize("tier", ["A", "B"])
def test_what_the_view_of_a_session_says_is_what_its_agents_find(site: Site, tier: str) -> None:
    rows = site.json("doctor", "--view", env={"MAS_ISOLATION": tier})["paths"]
    # Sockets of tmux and the like are nowhere near what is seen.
    seen = [row["path"] for row in rows if row["access"] != "hidden" and not row["path"].startswith("/dev")]
    _, account = python_and_account(site, tier)
    if account:
        # What root's modes close to another account the view cannot open.
        nobody = find_account(account)
        seen = [path for path in seen if nobody and not nobody.closed_at(path if os.path.isdir(path) else "/")]
    verbs = [f"{'list' if os.path.isdir(path) else 'read'}:{path}" for path in seen if not path.startswith("/sys")]
    found = Trial(site, tier).attempts(*verbs)
    assert {one: answer for one, answer in found.items() if answer in ("ENOENT", "EACCES", "EPERM")} == {}


def test_the_view_of_a_session_names_its_own_parts(site: Site) -> None:
    session = site.mas("start", "--team", "solo", "--command", "sleep 1000", env={"MAS_ISOLATION": "A"}).stdout.strip()
    rows = {row["path"]: row["access"] for row in site.json("show", session, "--view")["paths"]}
    assert rows[site.session(session, "unit")] == "write"
    assert rows[site.session(session, ".mas")] == "hidden"


def test_without_control_groups_a_memory_limit_says_what_it_does_not_count() -> None:
    limits = SessionLimits(agent=Limits(memory=1 << 30))
    team = team_named("solo")
    assert team
    words = Enforcer(SessionId("x"), limits).unenforced(team)
    assert len(words) == 1
    assert "memfd" in words[0]
    assert Enforcer(SessionId("x"), limits, by_systemd=True).unenforced(team) == ()
    assert Enforcer(SessionId("x"), SessionLimits()).unenforced(team) == ()
