"""Migrate: old workspaces and old sessions become isolated ones; the originals stay as they were."""

from __future__ import annotations

import json
import os

from tests.e2e.standin import read, tree, write
from tests.site import Site

OLD_ID = "3b241101-e2bb-4255-8caf-4136c566a962"


def old_workspace(site: Site, *names: str) -> str:
    """A shared workspace as older versions left it."""
    root = os.path.join(site.directory, *(names or ("old",)))
    write("role", root, "unit", "00", "ROLE.md")
    write("work", root, "unit", "21", "src", "main.py")
    write("flow", root, "workflows", "00_meta_manager.md")
    write("mas-tmux\n", root, ".mas_session")
    os.symlink("main.py", os.path.join(root, "unit", "21", "src", "link"))
    return root


def old_home(site: Site) -> str:
    """Global sessions under `~/.mas`, one with an id and a configuration, one with neither."""
    sessions = os.path.join(site.home, ".mas", "sessions")
    write("one", sessions, OLD_ID, "unit", "00", "note.md")
    write(
        json.dumps({"sessionMode": "isolated", "agents": {"units": [{"name": "ops", "manager": {"id": "47"}}]}}),
        sessions, OLD_ID, "config.json",
    )  # fmt: skip
    write("two", sessions, "legacy run", "unit", "21", "note.md")
    write("flow", sessions, "legacy run", "workflows", "21_frontend_developer.md")
    write("not a session", sessions, "notes", "readme.txt")
    return os.path.dirname(sessions)


def test_an_old_workspace_becomes_a_stopped_session_and_stays_as_it_was(site: Site) -> None:
    old = old_workspace(site)
    before = tree(old)
    migrated = site.json("migrate", old)["migrated"]
    assert [item["source"] for item in migrated] == [old]
    session = migrated[0]["sessionId"]
    assert site.four_places(session) == {"stopped"}
    assert {path: tree(site.session(session, "unit"))[path] for path in tree(os.path.join(old, "unit"))} == tree(
        os.path.join(old, "unit")
    )
    assert read(site.session(session, "workflows", "00_meta_manager.md")) == "flow"
    assert tree(old) == before
    assert len(site.json("show", session)["agents"]) == 13
    site.mas("restore", session)
    assert site.four_places(session) == {"active"}
    assert tree(old) == before


def test_a_second_run_does_not_duplicate(site: Site) -> None:
    old = old_workspace(site)
    first = site.json("migrate", old)["migrated"][0]["sessionId"]
    again = site.json("migrate", old)["migrated"][0]
    assert again["sessionId"] == first
    assert "already migrated" in again["note"]
    assert set(site.statuses()) == {first}


def test_a_dry_run_names_what_it_would_copy_and_copies_nothing(site: Site) -> None:
    old = old_workspace(site)
    site.mas("list")
    before = tree(site.directory)
    item = site.json("migrate", old, "--dry-run")["migrated"][0]
    assert (item["source"], item["sessionId"]) == (old, None)
    assert tree(site.directory) == before


def test_global_sessions_of_the_home_directory_are_found_by_themselves(site: Site) -> None:
    before = tree(old_home(site))
    migrated = {os.path.basename(item["source"]): item["sessionId"] for item in site.json("migrate")["migrated"]}
    assert set(migrated) == {OLD_ID, "legacy run"}
    assert migrated[OLD_ID] == OLD_ID
    assert [agent["id"] for agent in site.json("show", OLD_ID)["agents"]] == ["47"]
    assert site.json("show", migrated["legacy run"])["name"] == "legacy run"
    assert read(site.session(OLD_ID, "unit", "00", "note.md")) == "one"
    assert read(site.session(migrated["legacy run"], "unit", "21", "note.md")) == "two"
    assert tree(os.path.join(site.home, ".mas")) == before
    assert set(os.listdir(site.home)) == {".mas"}
    assert {item["sessionId"] for item in site.json("migrate")["migrated"]} == set(migrated.values())
    assert set(site.statuses()) == set(migrated.values())


def test_an_old_workspace_can_be_made_new_in_place(site: Site) -> None:
    write("mas-tmux\n", site.path(".mas_session"))
    write("mine", site.path("unit", "21", "note.md"))
    before = tree(site.path("unit"))
    migrated = site.json("migrate")["migrated"]
    assert [item["source"] for item in migrated] == [site.root]
    assert read(site.session(migrated[0]["sessionId"], "unit", "21", "note.md")) == "mine"
    assert tree(site.path("unit")) == before
    assert os.path.exists(site.path(".mas_session"))
    site.mas("migrate")
    assert len(site.statuses()) == 1


def test_a_running_old_session_is_warned_about_and_left_running(site: Site) -> None:
    old = old_workspace(site)
    os.makedirs(os.path.dirname(site.user_socket), mode=0o700, exist_ok=True)
    site.tmux("new-session", "-d", "-s", "mas-tmux", "sleep", "1000")
    done = site.mas("migrate", old, "--json")
    assert "mas-tmux" in done.stderr
    assert "mas-tmux" in json.loads(done.stdout)["warnings"][0]
    assert site.tmux_sessions() == {"mas-tmux"}


def test_what_is_not_old_is_refused(site: Site) -> None:
    empty = os.path.join(site.directory, "empty")
    os.makedirs(empty)
    site.mas("migrate", empty, code=3)
    site.mas("migrate", os.path.join(site.directory, "nowhere"), code=3)
    site.mas("migrate", site.root, code=2)
    assert "Nothing to migrate" in site.mas("migrate").stderr
    assert site.statuses() == {}


def test_links_in_old_sessions_are_copied_as_links(site: Site) -> None:
    secret = write("secret", site.directory, "elsewhere", "file")
    old = old_workspace(site)
    os.symlink(secret, os.path.join(old, "unit", "00", "way-out"))
    os.symlink(os.path.dirname(secret), os.path.join(old, "unit", "30"))
    session = site.json("migrate", old)["migrated"][0]["sessionId"]
    assert os.readlink(site.session(session, "unit", "00", "way-out")) == secret
    write("changed", site.session(session, "unit", "21", "src", "main.py"))
    assert read(os.path.join(old, "unit", "21", "src", "main.py")) == "work"
    assert tree(os.path.dirname(secret)) == {"file": b"secret"}
