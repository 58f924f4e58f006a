"""Archive and unarchive: a stopped session as one verified file, and back."""

from __future__ import annotations

import os
import stat

import pytest

from tests.e2e.standin import ASLEEP, read, tree, write
from tests.site import Site


def directories(site: Site) -> list[str]:
    return [name for name in os.listdir(site.path("sessions")) if not name.startswith(".")]


def archive_file(site: Site, session: str) -> str:
    found = [
        os.path.join(directory, name)
        for directory, _, names in os.walk(site.path("sessions"))
        for name in names
        if session in name and name.endswith(".tar.zst")
    ]
    assert len(found) == 1
    return found[0]


def archived(site: Site) -> str:
    """A session with one file that does not compress, packed away."""
    session = site.start(*ASLEEP, "--name", "kept")
    with open(site.session(session, "unit", "00", "noise"), "wb") as file:
        file.write(os.urandom(300_000))
    site.mas("stop", session)
    site.mas("archive", session)
    return session


def test_a_session_comes_back_from_its_archive_exactly(site: Site) -> None:
    session = site.start(*ASLEEP, "--name", "kept")
    unit = site.session(session, "unit", "00")
    write("work", unit, "deep", "日本語 \n name.md")
    os.symlink("/etc/passwd", os.path.join(unit, "outside"))
    os.link(os.path.join(unit, "ROLE.md"), os.path.join(unit, "second-name"))
    os.mkdir(os.path.join(unit, "empty"), 0o700)
    os.chmod(write("#!/bin/sh", unit, "run"), 0o755)
    site.mas("stop", session)
    before = {part: tree(site.session(session, part)) for part in ("unit", "workflows")}
    config = read(site.session(session, "config.json"))
    info = site.json("archive", session)
    assert (info["sessionId"], info["status"], info["name"]) == (session, "archived", "kept")
    assert directories(site) == []
    assert site.statuses() == {}
    assert read(site.path("sessions", ".index")).splitlines()[-1].startswith(f"{session}:archived:")
    assert stat.S_IMODE(os.stat(archive_file(site, session)).st_mode) == 0o600
    assert site.json("unarchive", session[:8])["status"] == "stopped"
    assert {part: tree(site.session(session, part)) for part in before} == before
    assert read(site.session(session, "config.json")) == config
    assert stat.S_IMODE(os.stat(os.path.join(unit, "run")).st_mode) == 0o755
    assert stat.S_IMODE(os.stat(os.path.join(unit, "empty")).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(site.session(session)).st_mode) == 0o700
    assert site.four_places(session) == {"stopped"}
    assert site.json("list", "--status", "archived")["total"] == 0
    site.mas("restore", session)
    assert site.four_places(session) == {"active"}


def test_an_active_session_is_refused_with_the_next_command(site: Site) -> None:
    session = site.start(*ASLEEP)
    assert f"mas stop {session[:8]}" in site.mas("archive", session, code=4).stderr
    assert site.four_places(session) == {"active"}
    assert site.json("list", "--status", "archived")["total"] == 0


def test_every_verb_says_that_an_archived_session_is_archived(site: Site) -> None:
    session = archived(site)
    for verb in ("show", "stop", "restore", "archive", "clone", "attach", "logs", "env", "delete"):
        args = (verb, session, *(("--yes",) if verb == "delete" else ()))
        done = site.mas(*args, code=4)
        assert f"mas unarchive {session[:8]}" in done.stderr, verb
    assert f"mas unarchive {session[:8]}" in site.mas("send", "--session", session, "00", "hello", code=4).stderr
    assert site.json("list", "--status", "archived")["sessions"][0]["name"] == "kept"


@pytest.mark.parametrize("damage", ["cut short", "one byte", "empty", "garbage"])
def test_a_damaged_archive_is_reported_kept_and_leaves_nothing_half_made(site: Site, damage: str) -> None:
    session = archived(site)
    path = archive_file(site, session)
    with open(path, "rb") as file:
        data = bytearray(file.read())
    data[len(data) // 2] ^= 0xFF
    damaged = {
        "cut short": bytes(data[: len(data) // 3]),
        "one byte": bytes(data),
        "empty": b"",
        "garbage": b"\0garbage" * 1000,
    }[damage]
    with open(path, "wb") as file:
        file.write(damaged)
    done = site.mas("unarchive", session, code=5)
    assert "damaged" in done.stderr
    assert "Traceback" not in done.stderr
    assert directories(site) == []
    assert site.statuses() == {}
    with open(archive_file(site, session), "rb") as file:
        assert file.read() == damaged
    assert site.mas("repair", "--dry-run").stdout == ""


def test_all_stopped_sessions_are_archived_and_active_ones_stay(site: Site) -> None:
    stopped, active = [site.start(*ASLEEP) for _ in range(2)], site.start(*ASLEEP)
    site.mas("stop", *stopped)
    assert {info["sessionId"] for info in site.json("archive", "--all")["sessions"]} == set(stopped)
    assert site.statuses() == {active: "active"}
    assert {info["sessionId"] for info in site.json("list", "--status", "archived")["sessions"]} == set(stopped)


def test_unarchive_knows_only_archived_sessions(site: Site) -> None:
    session = site.start(*ASLEEP)
    assert "mas list --status archived" in site.mas("unarchive", session, code=3).stderr
    site.mas("unarchive", "../x", code=2)


def test_a_directory_in_the_way_is_never_overwritten(site: Site) -> None:
    session = archived(site)
    write("mine", site.session(session, "file"))
    site.mas("unarchive", session, code=4)
    found = tree(site.session(session))
    assert found.pop("file") == b"mine"
    assert set(found) <= {".session.lock"}
    assert archive_file(site, session)


def test_the_agents_of_a_damaged_session_end_when_it_is_archived(site: Site) -> None:
    session = site.start(*ASLEEP)
    write("{", site.session(session, ".session"))
    assert site.statuses() == {session: "error"}
    assert site.tmux_sessions()
    site.mas("archive", session)
    assert site.tmux_sessions() == set()
