"""Logs: what MAS did to a session, and what its agents printed."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys

from tests.e2e.standin import ASLEEP, read, write
from tests.site import Site, until


def printing(site: Site) -> str:
    script = write(
        "printf '\\033]2;title\\007\\033[1mbold\\033[0m\\nlast\\n'; exec sleep 1000", site.directory, "print.sh"
    )
    session = site.start("--team", "solo", "--command", f"sh {script}")
    until(lambda: "last" in site.mas("logs", session, "00").stdout, "what the agent prints")
    return session


def test_the_session_log_records_the_life_of_the_session(site: Site) -> None:
    session = site.start(*ASLEEP)
    site.mas("send", "--force", "--session", session, "00", "hello")
    site.mas("stop", session)
    site.mas("restore", session)
    lines = site.mas("logs", session).stdout.splitlines()
    told = [line.split(" ", 1)[1].split()[0] for line in lines]
    assert [word for word in told if word in ("start", "send", "stopped", "restore")] == [
        "start", "send", "stopped", "restore",
    ]  # fmt: skip
    assert all(line[:4].isdigit() and line.split(" ", 1)[0].endswith("Z") for line in lines)
    assert site.mas("logs", session, "-n", "1").stdout.splitlines() == lines[-1:]
    assert site.mas("logs").stdout.splitlines() == lines


def test_an_agents_log_keeps_every_byte_and_is_shown_as_text(site: Site) -> None:
    session = printing(site)
    assert site.json("logs", session, "00") == {"agent": "00", "text": "bold\nlast"}
    path = site.session(session, "logs", "agent-00.log")
    with open(path, "rb") as file:
        assert file.read() == b"\x1b]2;title\x07\x1b[1mbold\x1b[0m\r\nlast\r\n"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    site.mas("stop", session)
    assert "last" in site.mas("logs", session, "00").stdout
    site.mas("restore", session)
    until(lambda: site.mas("logs", session, "00").stdout.count("last") == 2, "the second run in the same log")


def test_the_events_of_an_agent_are_lines_of_json(site: Site) -> None:
    session = printing(site)
    site.mas("stop", session)
    events = [json.loads(line) for line in read(site.session(session, "logs", "agent-00.events.jsonl")).splitlines()]
    assert [event["event"] for event in events] == ["start", "exit"]
    assert events[1]["left"] == []


def test_following_a_log_shows_what_is_added(site: Site) -> None:
    session = site.start(*ASLEEP)
    argv = [sys.executable, "-m", "mas", "logs", session, "--follow"]
    with subprocess.Popen(argv, env=site.env, stdout=subprocess.PIPE, text=True) as follower:
        assert follower.stdout
        try:
            assert "start" in follower.stdout.readline()
            site.mas("send", "--force", "--session", session, "00", "hello")
            assert "send" in follower.stdout.readline()
        finally:
            follower.terminate()


def test_a_missing_log_is_reported(site: Site) -> None:
    session = site.start(*ASLEEP)
    assert "77" in site.mas("logs", session, "77", code=3).stderr
    site.mas("logs", session, "-n", "-1", code=2)
    site.mas("logs", session, "00", "21", code=2)
    os.unlink(site.session(session, "logs", "session.log"))
    assert site.mas("logs", session).stdout.strip() == ""
    site.mas("stop", session)
    assert "stopped" in site.mas("logs", session).stdout
