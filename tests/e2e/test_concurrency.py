"""Concurrency: many processes start, stop and delete at once, and nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence

from tests.e2e.standin import ASLEEP, read, tmux_name
from tests.site import Site, until

MANY = 24


def at_once(site: Site, commands: Sequence[Sequence[str]]) -> list[str]:
    """Run all commands at the same time; all must succeed. Answers what each printed."""
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "mas", *args],
            env=site.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for args in commands
    ]
    done = [(process.communicate(), process.returncode) for process in running]
    assert [(err, code) for (_, err), code in done if code] == []
    return [out.strip() for (out, _), _ in done]


def assert_agree(site: Site, wanted: dict[str, str]) -> None:
    """Registry, journal, directories and tmux say the same."""
    assert site.statuses() == wanted
    assert {name for name in os.listdir(site.path("sessions")) if not name.startswith(".")} == set(wanted)
    assert site.tmux_sessions() == {tmux_name(session) for session, status in wanted.items() if status == "active"}
    for session, status in wanted.items():
        assert site.four_places(session) == {status}
    last = {}
    for line in read(site.path("sessions", ".index")).splitlines():
        session, status, _ = line.split(":", 2)
        last[session] = status
    assert {session: status for session, status in last.items() if status != "deleted"} == wanted
    assert site.mas("repair", "--dry-run").stdout == ""


def test_starts_stops_and_deletes_at_once_lose_nothing(site: Site) -> None:
    old = at_once(site, [("start", *ASLEEP)] * (MANY // 2))
    assert len(set(old)) == MANY // 2
    assert_agree(site, dict.fromkeys(old, "active"))
    third = len(old) // 3
    stopping, deleting, resting = old[:third], old[third : 2 * third], old[2 * third :]
    made = at_once(
        site,
        [
            *(("stop", session) for session in stopping),
            *(("delete", session, "--yes") for session in deleting),
            *(("start", *ASLEEP),) * (MANY // 3),
            *(("list",),) * (MANY // 6),
        ],
    )
    new = made[2 * third : 2 * third + MANY // 3]
    assert_agree(site, dict.fromkeys((*resting, *new), "active") | dict.fromkeys(stopping, "stopped"))
    assert {info["sessionId"] for info in site.json("list", "--status", "deleted")["sessions"]} == set(deleting)


def test_one_session_asked_for_many_things_at_once_ends_in_one_state(site: Site) -> None:
    session = site.start(*ASLEEP)
    commands = [("stop", session), ("restore", session), ("delete", session, "--yes"), ("archive", session)] * 2
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "mas", *args],
            env=site.env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for args in commands
    ]
    for process in running:
        _, err = process.communicate()
        assert process.returncode in (0, 3, 4), err
        assert "Traceback" not in err
    places = [
        session in site.statuses(),
        *(site.json("list", "--status", status)["total"] == 1 for status in ("archived", "deleted")),
    ]
    assert places.count(True) == 1
    assert site.mas("repair", "--dry-run").stdout == ""


def test_a_start_killed_at_any_moment_leaves_nothing_half_made(site: Site) -> None:
    whole: set[str] = set()
    for moment in range(12):
        process = subprocess.Popen(
            [sys.executable, "-m", "mas", "start", *ASLEEP],
            env=site.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            process.wait(timeout=0.03 * (moment + 1))
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        statuses = site.statuses()
        assert set(statuses) >= whole
        whole = set(statuses)
        assert set(statuses.values()) <= {"active"}
        assert {name for name in os.listdir(site.path("sessions")) if not name.startswith(".")} == whole
        until(lambda: site.tmux_sessions() == {tmux_name(session) for session in whole}, "tmux to agree")  # noqa: B023
        assert os.listdir(site.path("sessions", ".mas", "intents")) == []
    assert_agree(site, dict.fromkeys(whole, "active"))
