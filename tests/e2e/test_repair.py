"""Repair: whatever file is damaged, however, no session is lost and the damaged file is kept."""

from __future__ import annotations

import glob
import json
import os
import re

import pytest

from mas.service.upkeep.reconcile import correct
from tests.e2e.standin import ASLEEP, read, start_body, tmux_name, tree, write
from tests.site import Site, until

REGISTRY = (".sessions.index", ".index")
OWN = ("metadata.json", ".session", "config.json")
DAMAGES = ("missing", "empty", "torn", "garbage")


def damage(path: str, how: str) -> bytes | None:
    """Damage a file; answers what it holds then, None if nothing is left of it."""
    if how == "missing":
        os.unlink(path)
        return None
    with open(path, "rb") as file:
        whole = file.read()
    data = {"empty": b"", "torn": whole[: len(whole) // 2], "garbage": b"\0\xff garbage \x1b[31m" * 20}[how]
    with open(path, "wb") as file:
        file.write(data)
    return data


def kept_aside(path: str) -> list[bytes]:
    found = []
    for aside in glob.glob(f"{glob.escape(path)}.corrupt-*"):
        with open(aside, "rb") as file:
            found.append(file.read())
    return found


def two_sessions(site: Site) -> tuple[str, str]:
    active, stopped = site.start(*ASLEEP, "--name", "running"), site.start(*ASLEEP, "--name", "resting")
    site.mas("stop", stopped)
    # From here on no agent writes anything of its own.
    until(lambda: os.path.exists(site.session(active, "logs", "agent-00.events.jsonl")), "the agent's start")
    return active, stopped


def assert_whole(site: Site, active: str, stopped: str) -> None:
    """Both sessions are as they were, and both can still be stopped and restored."""
    assert site.statuses() == {active: "active", stopped: "stopped"}
    assert site.four_places(active) == {"active"}
    assert site.four_places(stopped) == {"stopped"}
    assert site.mas("repair", "--dry-run").stdout == ""
    assert {info["name"] for info in site.json("list")["sessions"]} == {"running", "resting"}
    site.mas("stop", active)
    site.mas("restore", "--all", "--stopped")
    assert site.tmux_sessions() == {tmux_name(active), tmux_name(stopped)}


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("name", REGISTRY)
def test_a_damaged_registry_is_rebuilt_by_the_next_command(site: Site, name: str, how: str) -> None:
    active, stopped = two_sessions(site)
    data = damage(site.path("sessions", name), how)
    before = tree(site.root)
    assert site.mas("repair", "--dry-run", code=1).stdout
    assert tree(site.root) == before
    assert site.statuses() == {active: "active", stopped: "stopped"}
    if data:
        assert kept_aside(site.path("sessions", name)) == [data]
    site.mas("repair")
    assert_whole(site, active, stopped)


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("name", OWN)
def test_a_damaged_file_of_a_session_is_kept_and_written_again(site: Site, name: str, how: str) -> None:
    active, stopped = two_sessions(site)
    data = {session: damage(site.session(session, name), how) for session in (active, stopped)}
    before = tree(site.root)
    found = site.mas("repair", "--dry-run", code=1).stdout
    assert active in found
    assert stopped in found
    assert tree(site.root) == before
    site.mas("list")
    assert set(site.statuses()) == {active, stopped}
    assert site.tmux_sessions() == {tmux_name(active)}
    site.mas("repair")
    for session, lost in data.items():
        if lost is not None:
            assert kept_aside(site.session(session, name)) == [lost]
    assert_whole(site, active, stopped)


def called(site: Site, session: str) -> str:
    """What `.session` calls the session's status."""
    return dict(line.split("=", 1) for line in read(site.session(session, ".session")).splitlines())["STATUS"]


@pytest.mark.parametrize("files", [("metadata.json",), (".session",), ("metadata.json", ".session")])
@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_session_is_called_so_in_its_own_file_and_repaired_it_says_the_truth_again(
    site: Site, files: tuple[str, ...], how: str
) -> None:
    active, stopped = two_sessions(site)
    left = [damage(site.session(session, name), how) for session in (active, stopped) for name in files]
    assert site.statuses() == {active: "error", stopped: "error"}
    assert (called(site, active), called(site, stopped)) == ("error", "error")
    journal = read(site.path("sessions", ".index"))
    site.mas("list")
    assert read(site.path("sessions", ".index")) == journal, "what is known to be damaged is not marked again"
    site.mas("repair")
    assert (called(site, active), called(site, stopped)) == ("active", "stopped")
    aside = [
        kept for session in (active, stopped) for name in files for kept in kept_aside(site.session(session, name))
    ]
    assert {data for data in left if data is not None} <= set(aside)
    assert_whole(site, active, stopped)


def test_a_damaged_session_that_a_rebuilt_registry_found_is_called_so_too(site: Site) -> None:
    session = site.start(*ASLEEP)
    site.mas("stop", session)
    damage(site.session(session, "metadata.json"), "torn")
    damage(site.path("sessions", ".sessions.index"), "missing")
    assert site.statuses() == {session: "error"}
    assert called(site, session) == "error"
    site.mas("repair")
    assert site.four_places(session) == {"stopped"}


def test_a_damaged_session_whose_own_file_cannot_be_written_is_listed_as_damaged(site: Site) -> None:
    session = site.start(*ASLEEP)
    site.mas("stop", session)
    damage(site.session(session, "metadata.json"), "garbage")
    own = site.session(session, ".session")
    os.unlink(own)
    # Nothing can be renamed over a directory that holds something, nor this one aside.
    os.makedirs(os.path.join(own, "in-the-way"))
    for _ in range(2):
        assert site.statuses() == {session: "error"}
    assert os.listdir(site.path("sessions", ".mas", "intents")) == []


@pytest.mark.parametrize("how", ["missing", "torn"])
def test_all_files_at_once(site: Site, how: str) -> None:
    active, stopped = two_sessions(site)
    for name in REGISTRY:
        damage(site.path("sessions", name), how)
    for session in (active, stopped):
        write("work", site.session(session, "unit", "00", "note.md"))
        for name in OWN:
            damage(site.session(session, name), how)
    site.mas("list")
    assert set(site.statuses()) == {active, stopped}
    site.mas("repair")
    assert set(site.statuses()) == {active, stopped}
    assert site.mas("repair", "--dry-run").stdout == ""
    site.mas("stop", "--all")
    site.mas("restore", stopped)
    assert site.four_places(stopped) == {"active"}
    for session in (active, stopped):
        assert read(site.session(session, "unit", "00", "note.md")) == "work"


def test_a_lost_configuration_is_rebuilt_with_every_agent_the_session_had(site: Site) -> None:
    body = {"agents": {"units": [{"name": "ops", "manager": {"id": "47"}, "workers": [{"id": "48", "model": "m"}]}]}}
    session = start_body(site, body)
    before = site.json("show", session)["agents"]
    site.mas("stop", session)
    os.unlink(site.session(session, "config.json"))
    site.mas("repair")
    site.mas("restore", session)
    after = site.json("show", session)["agents"]
    kept = ("id", "unit", "role", "provider", "model")
    assert [[agent[key] for key in kept] for agent in after] == [[agent[key] for key in kept] for agent in before]


def test_a_lost_configuration_is_rebuilt_with_the_command_the_agent_ran(site: Site) -> None:
    session = site.start("--team", "solo", "--command", "sleep '1000.0'")
    site.mas("stop", session)
    os.unlink(site.session(session, "config.json"))
    site.mas("repair")
    site.mas("restore", session)
    until(lambda: [words for words in site.commands() if words[-1:] == ["1000.0"]], "the same command")


def test_a_journal_with_one_bad_line_keeps_all_the_others(site: Site) -> None:
    active, stopped = two_sessions(site)
    path = site.path("sessions", ".index")
    lines = read(path).splitlines(keepends=True)
    write("".join([lines[0], "not a line\n", *lines[1:]]), path)
    site.mas("repair", "--dry-run", code=1)
    site.mas("repair")
    assert read(path).splitlines(keepends=True)[: len(lines)] == lines
    assert_whole(site, active, stopped)


def test_a_registry_that_disagrees_is_set_right(site: Site) -> None:
    active, stopped = two_sessions(site)
    path = site.path("sessions", ".sessions.index")
    index = json.loads(read(path))
    index["sessions"] = [{**entry, "status": "error"} for entry in index["sessions"] if entry["sessionId"] == stopped]
    write(json.dumps(index, indent=4), path)
    site.mas("repair", "--dry-run", code=1)
    site.mas("repair")
    assert_whole(site, active, stopped)


def test_what_was_repaired_since_a_listing_found_it_damaged_stays_so(site: Site) -> None:
    session, world = site.start(*ASLEEP), site.world()
    (entry,) = world.registry.read()
    assert correct(world, {session: entry}, [])[0] == {session: entry}
    assert site.four_places(session) == {"active"}


@pytest.mark.parametrize(("name", "status"), [("metadata.json", "error"), ("config.json", "stopped")])
def test_what_a_newer_version_wrote_is_left_as_it_is(site: Site, name: str, status: str) -> None:
    session = site.start(*ASLEEP)
    site.mas("stop", session)
    path = site.session(session, name)
    whole = read(path)
    newer = re.sub(r'"version": \d', '"version": 3', whole, count=1)
    write(newer, path)
    assert site.statuses() == {session: status}
    assert "a newer MAS wrote it" in site.mas("restore", session, code=5).stderr
    (found,) = site.json("repair")["findings"]
    assert found["action"] == "left as it is"
    assert read(path) == newer
    write(whole, path)
    site.mas("repair")
    assert site.four_places(session) == {"stopped"}


def test_a_whole_workspace_has_nothing_to_repair(site: Site) -> None:
    assert site.json("repair", "--dry-run")["findings"] == []
    two_sessions(site)
    before = tree(site.path("sessions"))
    assert site.json("repair") == {"findings": [], "done": True}
    after = tree(site.path("sessions"))
    assert {path for path in before if not path.endswith((".log", ".jsonl"))} <= set(after)
    assert "Nothing is wrong" in site.mas("repair", "--dry-run").stderr


def test_a_damaged_workspace_configuration_is_an_error_not_a_default(site: Site) -> None:
    path = site.path("config.json")
    write('{"provider": ', path)
    done = site.mas("start", code=5)
    assert path in done.stderr
    assert read(path) == '{"provider": '
    assert site.tmux_sessions() == set()


def test_what_is_known_of_the_isolation_of_a_running_session_is_kept(site: Site) -> None:
    session, other = site.start(*ASLEEP), site.start(*ASLEEP)
    tier = site.json("show", session)["tier"]
    assert tier
    write(read(site.session(other, "metadata.json")), site.session(session, "metadata.json"))
    site.mas("repair")
    assert (site.json("show", session)["tier"], site.statuses()[session]) == (tier, "active")
    # As a version that knows nothing of isolation leaves it.
    metadata = json.loads(read(site.session(session, "metadata.json")))
    write(json.dumps({**metadata, "isolation": None}), site.session(session, "metadata.json"))
    assert "has no record of how its agents are isolated" in site.mas("repair").stdout
    assert site.json("show", session)["tier"] == tier
    assert site.json("repair")["findings"] == []


def test_a_missing_file_is_not_reported_as_kept(site: Site) -> None:
    session = site.start(*ASLEEP)
    os.unlink(site.session(session, ".session"))
    (finding,) = site.json("repair")["findings"]
    assert finding["what"].endswith(".session is damaged: it is missing")
    assert finding["action"] == "written again"
