"""Retention: the workspace's policy moves stopped sessions, and nothing else, wherever it is carried out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from mas.model.errors import BadTransition
from mas.model.ids import SessionId
from mas.service.upkeep.prune import carry_out
from mas.service.upkeep.retention import retain
from mas.settings import load_settings
from tests.e2e.standin import ASLEEP, read, tmux_name
from tests.e2e.test_prune import age, stopped
from tests.served import Served
from tests.site import Site, until


def policy(site: Site, **fields: Any) -> None:
    """Give the workspace a retention policy."""
    path = site.path("config.json")
    config = json.loads(read(path)) | {"retention": fields}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(config, file)


def moved(site: Site, *args: str) -> dict[str, tuple[str, str]]:
    """What a run of the policy did or would do to which session, and the limit that is named as the reason."""
    items = site.json("prune", "--policy", *(args or ("--yes",)))["items"]
    return {item["sessionId"]: (item["what"], item["reason"].rpartition("(")[2].strip(")")) for item in items}


def where(site: Site, status: str) -> set[str]:
    return {info["sessionId"] for info in site.json("list", "--status", status)["sessions"]}


@pytest.mark.parametrize(("to", "status"), [("archive", "archived"), ("trash", "deleted")])
def test_what_is_older_than_its_limit_is_moved_and_can_come_back(site: Site, to: str, status: str) -> None:
    old, young = stopped(site, 2)
    active = site.start(*ASLEEP)
    for session in (old, active):
        age(site, session, 30)
    policy(site, maxAge="7d", moveTo=to)
    assert moved(site, "--dry-run") == {old: (to, "maxAge")}
    assert site.statuses() == {old: "stopped", young: "stopped", active: "active"}
    assert moved(site) == {old: (to, "maxAge")}
    assert site.statuses() == {young: "stopped", active: "active"}
    assert where(site, status) == {old}
    assert f"not used for more than 1w (maxAge): {old}" in read(site.path("logs", "mas.log"))
    assert moved(site) == {}
    site.mas("unarchive" if to == "archive" else "undelete", old)
    assert "retention: " in read(site.session(old, "logs", "session.log"))


def test_by_count_and_by_disk_the_newest_stay(site: Site) -> None:
    sessions = stopped(site, 3)
    for years, session in enumerate(sessions):
        age(site, session, 365 * (years + 1))
    policy(site, maxCount=2)
    assert moved(site, "--dry-run") == {sessions[2]: ("archive", "maxCount")}
    with open(site.session(sessions[1], "unit", "large"), "wb") as file:
        file.write(os.urandom(4 << 20))
    policy(site, maxDisk="3MiB")
    assert moved(site) == {sessions[1]: ("archive", "maxDisk"), sessions[2]: ("archive", "maxDisk")}
    assert set(site.statuses()) == {sessions[0]}


def test_a_session_stopped_a_moment_ago_is_left_alone(site: Site) -> None:
    (session,) = stopped(site, 1)
    policy(site, maxCount=0, maxDisk=1)
    assert moved(site) == {}
    assert set(site.statuses()) == {session}


def test_a_session_that_was_lost_is_moved_only_if_that_is_asked_for(site: Site) -> None:
    session = site.start(*ASLEEP)
    site.tmux("kill-session", "-t", tmux_name(session))
    assert site.statuses() == {session: "stopped"}
    age(site, session, 30)
    policy(site, maxAge="7d")
    assert moved(site) == {}
    policy(site, maxAge="7d", lost=True)
    assert moved(site) == {session: ("archive", "maxAge")}


def test_what_was_moved_goes_for_good_at_its_own_age(site: Site) -> None:
    archived, deleted = stopped(site, 2)
    site.mas("archive", archived)
    site.mas("delete", deleted, "--yes")
    policy(site, archiveAge="1h", trashAge="1h")
    assert moved(site) == {}
    policy(site, archiveAge="0s", trashAge="0s")
    until(lambda: len(moved(site, "--dry-run")) == 2, "a second has passed")
    assert moved(site) == {archived: ("remove", "archiveAge"), deleted: ("remove", "trashAge")}
    assert where(site, "archived") | where(site, "deleted") == set()


def test_a_damaged_session_is_never_moved(site: Site) -> None:
    (session,) = stopped(site, 1)
    age(site, session, 30)
    with open(site.session(session, "metadata.json"), "w", encoding="utf-8") as file:
        file.write("{")
    policy(site, maxAge="1d", maxCount=0)
    assert moved(site) == {}
    assert site.statuses() == {session: "error"}


def test_a_missing_or_invalid_policy_is_reported(site: Site) -> None:
    assert "has no retention policy" in site.mas("prune", "--policy", code=2).stderr
    policy(site, maxAge="1d")
    assert "cannot be combined with other limits" in site.mas("prune", "--policy", "--keep", "3", code=2).stderr
    policy(site, maxAge="a week")
    assert "retention.maxAge is 'a week'" in site.mas("list", code=2).stderr


def test_two_processes_at_once_move_each_session_once(site: Site) -> None:
    sessions = stopped(site, 4)
    for session in sessions:
        age(site, session, 30)
    policy(site, maxAge="7d")
    argv = [sys.executable, "-m", "mas", "prune", "--policy", "--yes", "--json"]
    running = [
        subprocess.Popen(
            argv, env=site.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    done = [(*process.communicate(), process.returncode) for process in running]
    assert [(err, code) for _, err, code in done if code] == []
    told = [item["sessionId"] for out, *_ in done for item in json.loads(out)["items"]]
    assert sorted(told) == sorted(sessions)
    assert where(site, "archived") == set(sessions)
    assert os.listdir(site.path("sessions", ".mas", "intents")) == []


@pytest.mark.parametrize("to", ["archive", "trash"])
def test_a_session_that_was_restored_since_it_was_looked_at_goes_on(site: Site, to: str) -> None:
    (session,) = stopped(site, 1)
    age(site, session, 30)
    policy(site, maxAge="7d", moveTo=to)
    world = site.world(retention=load_settings(site.root).retention)
    (item,) = retain(world, dry_run=True).items
    site.mas("restore", session)
    with pytest.raises(BadTransition):
        carry_out(world, item)
    assert site.statuses() == {session: "active"}
    assert site.json("show", SessionId(session))["agents"][0]["state"] != "exited"
    site.mas("stop", session)
    with pytest.raises(BadTransition):
        carry_out(world, item)
    assert site.statuses() == {session: "stopped"}


def test_the_age_of_an_archive_is_that_of_its_file_if_nothing_else_shows_it(site: Site) -> None:
    (session,) = stopped(site, 1)
    site.mas("archive", session)
    os.unlink(site.path("sessions", ".mas", "archive", f"{session}.json"))
    policy(site, archiveAge="1h")
    assert moved(site) == {}
    os.utime(site.path("sessions", ".mas", "archive", f"{session}.tar.zst"), (1, 1))
    assert moved(site) == {session: ("remove", "archiveAge")}


def test_an_archive_that_was_made_since_it_was_looked_at_stays(site: Site) -> None:
    (session,) = stopped(site, 1)
    site.mas("archive", session)
    policy(site, archiveAge="0s")
    world = site.world(retention=load_settings(site.root).retention)
    until(lambda: bool(retain(world, dry_run=True).items), "a second has passed")
    (item,) = retain(world, dry_run=True).items
    site.mas("unarchive", session)
    site.mas("archive", session)
    carry_out(world, item)
    assert where(site, "archived") == {session}


@pytest.fixture
def kept(site: Site) -> Iterator[Served]:
    """A server of a workspace in which a session is older than the policy allows."""
    (session,) = stopped(site, 1)
    age(site, session, 30)
    policy(site, maxAge="7d", moveTo="trash")
    with closing(Served(site)) as served:
        yield served


def test_the_server_holds_the_policy_and_says_what_it_did(kept: Served) -> None:
    (session,) = until(lambda: where(kept.site, "deleted"), "the session is in the trash")

    def told() -> list[tuple[str, str]]:
        # The beginning of all events.
        page = kept.client().get("/events/page", params={"after": "0000000000.0"}).json()
        return [(event["sessionId"], event["action"]) for event in page["events"] if event["event"] == "retention"]

    # It says so once it is done.
    assert until(told, "the event") == [(session, "trash")]
    log = kept.site.path("logs", "mas.log")
    until(lambda: os.path.exists(log) and read(log), "a line in the log")
    assert f"moved to the trash: not used for more than 1w (maxAge): {session}" in read(log)
    assert kept.client().post("/prune", json={"policy": True}).json() == {"items": [], "done": False}
    assert kept.mas("prune", "--policy", "--dry-run").stderr == "Nothing to prune\n"
