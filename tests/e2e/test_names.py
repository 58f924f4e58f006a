"""Names: a session's name does wherever its id does, is its own, and can be changed."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from tests.e2e.standin import ASLEEP, read, write
from tests.e2e.test_concurrency import at_once
from tests.site import Site


def name_of(site: Site, session: str) -> set[str | None]:
    """What each place that keeps a session's name says it is."""
    listed = {info["sessionId"]: info["name"] for info in site.json("list")["sessions"]}
    metadata, config = (json.loads(read(site.session(session, file))) for file in ("metadata.json", "config.json"))
    return {listed[session], metadata["name"], config.get("name")}


def test_a_name_does_for_every_command_that_takes_a_session(site: Site) -> None:
    session = site.start(*ASLEEP, "--name", "web shop")
    site.start(*ASLEEP, "--name", "other")
    for args in (["show"], ["logs"], ["env"], ["inbox"], ["stats"], ["stop"], ["restore"], ["output"]):
        more = ["00"] if args == ["output"] else []
        site.mas(*args, "web shop", *more)
    site.mas("send", "--session", "web shop", "--force", "00", "hello")
    site.mas("wait", "--session", "web shop", "--timeout", "0", code=None)
    site.mas("stop", "web shop")
    assert site.mas("archive", "web shop").stdout.strip() == session
    assert "mas unarchive" in site.mas("show", "web shop", code=4).stderr
    assert site.mas("unarchive", "web shop").stdout.strip() == session
    assert site.mas("delete", "--yes", "web shop").stdout.strip() == session
    assert f"mas undelete {session[:8]}" in site.mas("show", "web shop", code=3).stderr
    assert site.mas("undelete", "web shop").stdout.strip() == session
    assert site.mas("show", session.upper()).stdout.startswith(f"session    {session}")


def test_a_second_session_of_a_name_gets_a_number_and_says_so(site: Site) -> None:
    first = site.start(*ASLEEP, "--name", "web")
    done = site.mas("start", *ASLEEP, "--name", "web")
    second = done.stdout.strip()
    assert "Another session is named web: this one is named web-2" in done.stderr
    assert name_of(site, first) == {"web"}
    assert name_of(site, second) == {"web-2"}
    assert site.mas("stop", "web-2").stdout.strip() == second
    clone = site.json("clone", "web-2", "--name", "web")
    assert (clone["name"], len(clone["warnings"])) == ("web-3", 1)
    assert name_of(site, clone["sessionId"]) == {"web-3"}
    assert site.mas("repair", "--dry-run").stdout == ""


def test_an_archived_session_keeps_its_name_and_a_deleted_one_does_not(site: Site) -> None:
    kept, gone = site.start(*ASLEEP, "--name", "kept"), site.start(*ASLEEP, "--name", "gone")
    site.mas("stop", kept, gone)
    site.mas("archive", kept)
    site.mas("delete", "--yes", gone)
    second, third = site.json("start", *ASLEEP, "--name", "kept"), site.json("start", *ASLEEP, "--name", "gone")
    assert (second["name"], third["name"]) == ("kept-2", "gone")
    back = site.mas("undelete", gone)
    assert "named gone-2" in back.stderr
    assert name_of(site, gone) == {"gone-2"}
    # Nobody could have taken it.
    assert "named" not in site.mas("unarchive", kept).stderr
    assert name_of(site, kept) == {"kept"}


def test_an_archive_from_before_names_were_unique_gets_another_when_it_comes_back(site: Site) -> None:
    session = site.start(*ASLEEP, "--name", "old")
    site.mas("stop", session)
    site.mas("archive", session)
    note = site.path("sessions", ".mas", "archive", f"{session}.json")
    write(json.dumps({**json.loads(read(note)), "name": "other"}), note)
    site.start(*ASLEEP, "--name", "old")
    assert "named old-2" in site.mas("unarchive", session).stderr
    assert name_of(site, session) == {"old-2"}


def test_many_starts_at_once_never_get_the_same_name(site: Site) -> None:
    made = at_once(site, [("start", *ASLEEP, "--name", "web")] * 6)
    assert {info["name"] for info in site.json("list")["sessions"]} == {"web", *(f"web-{n}" for n in range(2, 7))}
    for session in made:
        assert len(name_of(site, session)) == 1


def test_two_sessions_of_one_name_from_an_older_version_can_only_be_named_by_id(site: Site) -> None:
    first, second = site.start(*ASLEEP, "--name", "web"), site.start(*ASLEEP, "--name", "web-2")
    for file in ("metadata.json", "config.json"):
        path = site.session(second, file)
        write(read(path).replace('"web-2"', '"web"'), path)
    os.unlink(site.path("sessions", ".sessions.index"))
    refused = site.mas("stop", "web", code=2)
    assert first in refused.stderr
    assert second in refused.stderr
    assert site.statuses() == {first: "active", second: "active"}
    site.mas("rename", second, "shop")
    assert site.mas("stop", "web").stdout.strip() == first


def test_a_name_that_begins_another_sessions_id_reaches_neither(site: Site) -> None:
    other = site.start(*ASLEEP)
    session = site.start(*ASLEEP, "--name", other[:6])
    refused = site.mas("send", "--session", other[:6], "00", "hello", code=2)
    assert session in refused.stderr
    assert other in refused.stderr
    site.mas("stop", other[:8])
    assert site.statuses() == {session: "active", other: "stopped"}


@pytest.mark.parametrize("name", ["mas-550e8400", "550E8400-e29b-41d4-a716-446655440000", "21", "web:21", "a/b", ".."])
def test_a_new_name_that_means_something_else_is_refused_with_the_reason(site: Site, name: str) -> None:
    session = site.start(*ASLEEP, "--name", "web")
    for args in (("start", *ASLEEP, "--name"), ("rename", "web"), ("clone", "web", "--name")):
        assert "Not a session's name" in site.mas(*args, name, code=2).stderr
    assert site.statuses() == {session: "active"}


def test_an_older_sessions_odd_name_stays_readable_and_its_clone_gets_a_plain_one(site: Site) -> None:
    session = site.start(*ASLEEP, "--name", "odd")
    for file in ("metadata.json", "config.json"):
        path = site.session(session, file)
        write(read(path).replace('"odd"', '"a:b/c"'), path)
    os.unlink(site.path("sessions", ".sessions.index"))
    assert name_of(site, session) == {"a:b/c"}
    site.mas("stop", session)
    site.mas("restore", session)
    assert site.json("clone", session)["name"] == "a-b-c"


def test_a_rename_changes_the_name_everywhere_and_nothing_else(site: Site) -> None:
    session = site.start(*ASLEEP, "--name", "web")
    before = site.json("show", session)
    done = site.mas("rename", "web", "shop")
    assert done.stdout.strip() == session
    assert name_of(site, session) == {"shop"}
    after = site.json("show", "shop")
    assert {key for key in after if after[key] != before[key]} - {"lastActivity"} == {"name"}
    site.mas("show", "web", code=3)
    told = {(event.session_id, event.details.get("name")) for event in site.local().events("0").events}
    assert (session, "shop") in told
    assert site.mas("repair", "--dry-run").stdout == ""
    # A registry made again from the directories has it too.
    os.unlink(site.path("sessions", ".sessions.index"))
    assert name_of(site, session) == {"shop"}


def test_a_rename_to_a_name_that_is_taken_is_refused(site: Site) -> None:
    web, shop = site.start(*ASLEEP, "--name", "web"), site.start(*ASLEEP, "--name", "shop")
    assert web in site.mas("rename", "shop", "web", code=4).stderr
    assert name_of(site, shop) == {"shop"}
    site.mas("rename", "shop", "shop")
    site.mas("stop", "web")
    site.mas("archive", "web")
    site.mas("rename", "shop", "web", code=4)
    assert site.mas("repair", "--dry-run").stdout == ""


def test_a_session_dropped_into_the_workspace_keeps_its_name_and_is_named_by_id(site: Site) -> None:
    session = site.start(*ASLEEP, "--name", "web")
    site.mas("stop", session)
    copy = session.replace(session[:8], "cafecafe")
    shutil.copytree(site.session(session), site.session(copy))
    for file in ("metadata.json", ".session"):
        path = site.session(copy, file)
        write(read(path).replace(session, copy).replace(session[:8], copy[:8]), path)
    site.mas("list")
    assert copy in site.mas("restore", "web", code=2).stderr
    site.mas("restore", session)
