"""Prune: old sessions to the trash, old trash for good, active sessions never."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from tests.cli.test_streams import terminal
from tests.e2e.standin import ASLEEP, read, tree, write
from tests.site import Site


def age(site: Site, session: str, days: int) -> None:
    """Make a stopped session look as if it had rested for some days."""
    stamp = f"20{20 - days // 365:02d}-01-01T00:00:00.000Z"
    for path in (site.session(session, "metadata.json"), site.path("sessions", ".sessions.index")):
        lines = read(path).split("\n")
        mine = [
            re.sub(r'("(?:lastActivity|stoppedAt)": ?)"[^"]*"', rf'\1"{stamp}"', line)
            if session in line or path.endswith("metadata.json")
            else line
            for line in lines
        ]
        write("\n".join(mine), path)


def stopped(site: Site, count: int) -> list[str]:
    sessions = [site.start(*ASLEEP) for _ in range(count)]
    site.mas("stop", *sessions)
    return sessions


def pruned(site: Site, *args: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = site.json("prune", *args)["items"]
    return items


def test_only_what_has_rested_long_enough_is_pruned(site: Site) -> None:
    old, young = stopped(site, 2)
    active = site.start(*ASLEEP)
    age(site, old, 30)
    plan = pruned(site, "--older-than", "7d", "--dry-run")
    assert [(item["sessionId"], item["status"], item["what"]) for item in plan] == [(old, "stopped", "trash")]
    assert plan[0]["disk"] > 0
    site.mas("prune", "--older-than", "7d", "--yes")
    assert site.statuses() == {young: "stopped", active: "active"}
    assert site.json("list", "--status", "deleted")["sessions"][0]["sessionId"] == old


def test_a_dry_run_changes_nothing_and_no_terminal_means_no(site: Site) -> None:
    stopped(site, 2)
    before = tree(site.root)
    assert site.json("prune", "--keep", "0", "--dry-run")["done"] is False
    site.mas("prune", "--keep", "0", "--json", code=2)
    with terminal(site, "prune", "--keep", "0", "--json") as shown:
        assert "--yes" in shown.end()
        assert shown.code == 2
    assert "--yes" in site.mas("prune", "--keep", "0", input="y\n", code=2).stderr
    assert tree(site.root) == before


def test_the_newest_are_kept(site: Site) -> None:
    first, second, third = stopped(site, 3)
    age(site, second, 400)
    age(site, first, 800)
    site.mas("prune", "--keep", "1", "--yes")
    assert set(site.statuses()) == {third}
    assert {info["sessionId"] for info in site.json("list", "--status", "deleted")["sessions"]} == {first, second}


def test_age_and_number_together_mean_both(site: Site) -> None:
    first, second, third = stopped(site, 3)
    age(site, first, 800)
    age(site, second, 400)
    assert [item["sessionId"] for item in pruned(site, "--older-than", "7d", "--keep", "2", "--dry-run")] == [first]
    assert pruned(site, "--older-than", "7d", "--keep", "3", "--dry-run") == []
    assert third in site.statuses()


def test_trash_and_archives_go_for_good(site: Site) -> None:
    trashed, archived, kept = stopped(site, 3)
    site.mas("delete", trashed, "--yes")
    site.mas("archive", archived)
    only_trash = pruned(site, "--keep", "0", "--status", "deleted", "--yes")
    assert [(item["sessionId"], item["what"]) for item in only_trash] == [(trashed, "remove")]
    assert site.json("list", "--status", "deleted")["total"] == 0
    site.mas("undelete", trashed, code=3)
    assert pruned(site, "--keep", "0", "--status", "archived", "--yes")[0]["sessionId"] == archived
    assert site.json("list", "--status", "archived")["total"] == 0
    assert site.statuses() == {kept: "stopped"}
    left = [path for path in tree(site.path("sessions")) if trashed in path or archived in path]
    assert left == []


def test_an_active_session_is_never_touched(site: Site) -> None:
    session = site.start(*ASLEEP)
    before = read(site.session(session, "metadata.json"))
    site.mas("prune", "--older-than", "0s", "--keep", "0", "--yes")
    assert site.four_places(session) == {"active"}
    assert read(site.session(session, "metadata.json")) == before
    site.mas("prune", "--keep", "0", "--status", "active", "--yes", code=2)


def test_a_session_kept_in_use_is_not_old(site: Site) -> None:
    session = site.start(*ASLEEP)
    site.mas("stop", session)
    age(site, session, 400)
    site.mas("restore", session)
    site.mas("stop", session)
    assert pruned(site, "--older-than", "1d", "--dry-run") == []


def test_damaged_sessions_can_be_pruned_by_themselves(site: Site) -> None:
    whole, broken = stopped(site, 2)
    write("{", site.session(broken, "metadata.json"))
    both = pruned(site, "--keep", "0", "--status", "stopped,error", "--dry-run")
    assert {item["sessionId"] for item in both} == {whole, broken}
    refused = site.mas("prune", "--keep", "0", "--status", "stopped,active", code=2).stderr
    assert "invalid choice: 'active' (choose from stopped, error, archived, deleted)" in refused
    assert [item["sessionId"] for item in pruned(site, "--keep", "0", "--status", "error", "--yes")] == [broken]
    assert site.statuses() == {whole: "stopped"}


def test_nonsense_is_refused(site: Site) -> None:
    for args in ((), ("--older-than", "7"), ("--older-than", "-7d"), ("--older-than", "7y"), ("--keep", "-1")):
        site.mas("prune", *args, "--yes", code=2)
    assert json.loads(site.mas("prune", "--keep", "0", "--json").stdout)["items"] == []
    assert "Nothing to prune" in site.mas("prune", "--keep", "0").stderr
    assert not os.path.exists(site.path("7d"))
