"""Clone: a new session with the work and the configuration of another."""

from __future__ import annotations

import json
import os
import socket

from tests.e2e.standin import ASLEEP, read, start_body, tmux_name, tree, write
from tests.site import Site


def test_a_clone_is_a_stopped_session_with_the_same_work_and_team(site: Site) -> None:
    body = {"name": "first", "env": {"A": "1"}, "agents": {"units": [{"name": "ops", "manager": {"id": "47"}}]}}
    source = start_body(site, body, "--command", "sleep 1000")
    write("work", site.session(source, "unit", "47", "note.md"))
    os.symlink("note.md", site.session(source, "unit", "47", "link"))
    clone = site.json("clone", source)
    copy = clone["sessionId"]
    assert copy != source
    assert (clone["status"], clone["name"]) == ("stopped", "first-2")
    assert source in clone["origin"]
    assert site.four_places(copy) == {"stopped"}
    assert site.statuses() == {source: "active", copy: "stopped"}
    for part in ("unit", "workflows"):
        assert tree(site.session(copy, part)) == tree(site.session(source, part))
    kept, copied = (json.loads(read(site.session(one, "config.json"))) for one in (source, copy))
    assert copied == {**kept, "name": "first-2"}
    site.mas("restore", copy)
    assert site.tmux_sessions() == {tmux_name(source), tmux_name(copy)}


def test_a_clone_shares_nothing_a_write_could_reach(site: Site) -> None:
    source = site.start(*ASLEEP)
    note = write("one", site.session(source, "unit", "00", "note.md"))
    copy = site.json("clone", source)["sessionId"]
    write("two", site.session(copy, "unit", "00", "note.md"))
    write("three", site.session(copy, "workflows", "00_meta_manager.md"))
    assert read(note) == "one"
    assert read(site.session(source, "workflows", "00_meta_manager.md")) == read(
        site.path("workflows", "00_meta_manager.md")
    )


def test_a_clone_can_be_named_and_started_at_once(site: Site) -> None:
    source = site.start(*ASLEEP)
    site.mas("stop", source)
    clone = site.json("clone", source, "--name", "second", "--start")
    assert (clone["status"], clone["name"]) == ("active", "second")
    assert site.tmux_sessions() == {clone["tmuxSession"]}
    assert json.loads(read(site.session(clone["sessionId"], "config.json")))["name"] == "second"
    assert site.four_places(clone["sessionId"]) == {"active"}


def test_a_clone_that_cannot_be_started_is_kept_and_named(site: Site) -> None:
    program = os.path.join(site.directory, "agent")
    with open(program, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nexec sleep 1000\n")
    os.chmod(program, 0o755)
    source = site.start("--team", "solo", "--command", program)
    os.unlink(program)
    said = site.mas("clone", source, "--start", code=None)
    assert said.returncode != 0
    (copy,) = set(site.statuses()) - {source}
    assert site.statuses()[copy] == "stopped"
    assert f"mas restore {copy[:8]}" in said.stderr


def test_what_cannot_be_copied_is_named(site: Site) -> None:
    source = site.start(*ASLEEP)
    with socket.socket(socket.AF_UNIX) as listener:
        # A relative name: the whole path would be too long for a socket.
        here = os.getcwd()
        os.chdir(site.session(source, "unit", "00"))
        try:
            listener.bind("door")
        finally:
            os.chdir(here)
        done = site.mas("clone", source)
    assert "unit/00/door" in done.stderr
    assert done.stdout.strip() in site.statuses()


def test_a_bad_name_or_an_unknown_session_makes_nothing(site: Site) -> None:
    source = site.start(*ASLEEP)
    site.mas("clone", source, "--name", "a\tb", code=2)
    site.mas("clone", "00000000-0000-4000-8000-000000000000", code=3)
    assert set(site.statuses()) == {source}
    assert [name for name in os.listdir(site.path("sessions")) if not name.startswith(".")] == [source]
