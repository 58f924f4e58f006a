"""Stop: every process of a session ends, whatever it did to get away; its files stay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.e2e.standin import ASLEEP, living, pane_pids, pids, read, start_unruly, tmux_name, tree, write
from tests.site import Site, until

EVERY_KIND = "plain,setsid,daemon"


def stopped_all(site: Site, session: str) -> None:
    """Stop the session and see that nothing of it is left."""
    running = [*pids(site, session).values(), *pane_pids(site, session)]
    assert living(running) == running
    try:
        site.mas("stop", session)
        assert living(running) == []
    finally:
        for pid in living(running):
            os.kill(pid, signal.SIGKILL)
    assert site.tmux_sessions() == set()
    assert site.four_places(session) == {"stopped"}


def test_children_daemons_and_the_agent_all_end(site: Site) -> None:
    stopped_all(site, start_unruly(site, CHILDREN=EVERY_KIND))


def test_those_that_ignore_every_signal_end_too(site: Site) -> None:
    stopped_all(site, start_unruly(site, CHILDREN=EVERY_KIND, IGNORE_SIGNALS="1"))


def test_what_a_killed_launcher_left_behind_ends(site: Site) -> None:
    session = start_unruly(site, CHILDREN="plain,setsid", IGNORE_SIGNALS="1")
    started = pids(site, session)
    launcher = pane_pids(site, session)[0]
    os.kill(launcher, signal.SIGKILL)
    # The kernel ends the agent with its launcher; a child that left the terminal goes on.
    until(lambda: living([launcher, started["agent"]]) == [], "the end of launcher and agent")
    assert living([started["setsid"]]) == [started["setsid"]]
    site.mas("stop", session)
    assert living(started.values()) == []


def test_the_children_of_an_agent_that_ended_by_itself_end_with_it(site: Site) -> None:
    session = start_unruly(site, CHILDREN=EVERY_KIND, EXIT_STATUS="3")
    started = pids(site, session)
    until(lambda: living(started.values()) == [], "the end of the agent and of all it started")
    events = site.session(session, "logs", "agent-00.events.jsonl")
    until(lambda: '"event":"exit","status":3' in read(events), "the record of its end")
    site.mas("stop", session)
    assert site.four_places(session) == {"stopped"}


def test_a_persons_shell_with_the_sessions_environment_is_left_alone(site: Site) -> None:
    session = site.start(*ASLEEP)
    variables = site.mas("env", session, "--agent", "00").stdout
    shell = subprocess.Popen(
        ["/bin/sh", "-c", f"{variables}\necho $MAS_SESSION_ID\nexec sleep 1000"],
        env=site.env,
        cwd=site.session(session, "unit", "00"),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert shell.stdout
        assert shell.stdout.readline().strip() == session
        site.mas("stop", session)
        assert shell.poll() is None
        site.mas("delete", session, "--yes")
        assert shell.poll() is None
    finally:
        shell.kill()
        shell.communicate()


def test_the_directory_and_all_its_contents_stay(site: Site) -> None:
    session = site.start(*ASLEEP)
    write("work", site.session(session, "unit", "00", "deep", "note.md"))
    write("kept", site.session(session, "workflows", "00_meta_manager.md"))
    before = tree(site.session(session))
    site.mas("stop", session)
    after = tree(site.session(session))
    changed = {path for path in before if before[path] != after.get(path)}
    assert changed <= {
        ".session",
        "metadata.json",
        "logs/session.log",
        "logs/agent-00.log",
        "logs/agent-00.events.jsonl",
    }
    assert after["unit/00/deep/note.md"] == b"work"


def test_stopping_twice_is_fine(site: Site) -> None:
    session = site.start(*ASLEEP)
    for _ in range(2):
        assert site.json("stop", session)["status"] == "stopped"
    assert site.four_places(session) == {"stopped"}
    journal = read(site.path("sessions", ".index"))
    assert journal.count(f"{session}:stopped:") == 1


def test_all_active_sessions_stop_at_once_and_strangers_stay(site: Site) -> None:
    sessions = [site.start(*ASLEEP) for _ in range(3)]
    site.tmux("new-session", "-d", "-s", "mine")
    assert {info["sessionId"] for info in site.json("stop", "--all")["sessions"]} == set(sessions)
    assert set(site.statuses().values()) == {"stopped"}
    assert site.tmux_sessions() == {"mine"}
    assert site.json("stop", "--all")["sessions"] == []


def test_the_only_active_session_need_not_be_named(site: Site) -> None:
    session = site.start(*ASLEEP)
    assert site.mas("stop").stdout.strip() == session
    site.mas("stop", code=2)


def test_one_failure_among_several_is_reported_and_the_rest_is_done(site: Site) -> None:
    broken, whole = site.start(*ASLEEP), site.start(*ASLEEP)
    write("{", site.session(broken, "metadata.json"))
    done = site.mas("stop", broken, whole, code=1)
    assert "damaged" in done.stderr
    assert done.stdout.strip() == whole
    assert site.tmux_sessions() == {tmux_name(broken)}


@pytest.mark.parametrize("reference", ["00000000-0000-4000-8000-000000000000", "abcdef"])
def test_an_unknown_session_is_not_found(site: Site, reference: str) -> None:
    assert f"Session not found: {reference}" in site.mas("stop", reference, code=3).stderr


def test_an_agent_can_stop_its_own_session(site: Site) -> None:
    session = site.start("--team", "pair", "--command", "sh")
    site.mas("send", "--force", "--session", session, "21", f"{sys.executable} -m mas stop")
    until(lambda: site.tmux_sessions() == set(), "the end of the session")
    until(lambda: site.statuses() == {session: "stopped"}, "its status")
    until(lambda: site.four_places(session) == {"stopped"}, "the same everywhere")
