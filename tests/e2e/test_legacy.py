"""Legacy: a user who asks for the old single mode gets an isolated session and a warning, in four exact lines."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.e2e.standin import ASLEEP, read, start_body, write
from tests.site import Site


def by_mode(site: Site) -> dict[str, Any]:
    return {"env": {"MAS_SESSION_MODE": "legacy"}}


def by_session_name(site: Site) -> dict[str, Any]:
    return {"env": {"SESSION_NAME": "mas-tmux"}}


def by_running_session(site: Site) -> dict[str, Any]:
    os.makedirs(os.path.dirname(site.user_socket), mode=0o700, exist_ok=True)
    site.tmux("new-session", "-d", "-s", "mas-tmux", "sleep", "1000")
    return {}


def by_marker(site: Site) -> dict[str, Any]:
    write("mas-tmux\n", site.path(".mas_session"))
    return {}


def four_lines(session: str) -> list[str]:
    return [
        "Legacy session mode has been deprecated.",
        "Creating new isolated session instead.",
        f"Session ID: {session}",
        f"Workspace: sessions/{session}/",
    ]


def assert_told(site: Site, stdout: str, stderr: str) -> None:
    session = stdout.strip()
    lines = stderr.splitlines()
    start = lines.index("Legacy session mode has been deprecated.")
    assert lines[start : start + 4] == four_lines(session)
    assert site.four_places(session) == {"active"}
    assert "legacy" in read(site.session(session, "logs", "session.log"))
    assert session in read(site.path("logs", "mas.log"))


@pytest.mark.parametrize("asked", [by_mode, by_session_name, by_running_session, by_marker])
def test_asking_for_the_old_mode_starts_an_isolated_session_and_says_so(
    site: Site, asked: Callable[[Site], dict[str, Any]]
) -> None:
    options = asked(site)
    done = site.mas("start", *ASLEEP, **options)
    assert_told(site, done.stdout, done.stderr)


def test_the_old_field_in_a_body_means_what_it_meant_and_nothing_else(site: Site) -> None:
    def start(mode: object, code: int) -> subprocess.CompletedProcess[str]:
        body = json.dumps({"team": "solo", "sessionMode": mode})
        return site.mas("start", "--config", "-", "--command", "sleep 1000", input=body, code=code)

    told = start("legacy", 0)
    assert_told(site, told.stdout, told.stderr)
    assert "Legacy" not in start("isolated", 0).stderr
    others: tuple[object, ...] = ("bogus", 7, {})
    for other in others:
        assert "sessionMode" in start(other, 2).stderr
    assert len(site.statuses()) == 2


def test_the_answer_carries_the_lines_as_warnings(site: Site) -> None:
    answer = site.json("start", *ASLEEP, env={"MAS_SESSION_MODE": "legacy"})
    assert answer["warnings"] == four_lines(answer["sessionId"])


def test_without_the_old_mode_there_is_no_warning(site: Site) -> None:
    site.tmux("new-session", "-d", "-s", "mas-tmux2", "sleep", "1000")
    done = site.mas("start", *ASLEEP, env={"MAS_SESSION_MODE": "isolated", "SESSION_NAME": "mine"})
    assert "Legacy" not in done.stderr
    assert not os.path.exists(site.path("logs", "mas.log"))


def keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)


def test_no_answer_speaks_of_a_mode(site: Site) -> None:
    session = start_body(site, {"team": "solo", "sessionMode": "legacy"}, "--command", "sleep 1000")
    answers = [
        site.json(*args)
        for args in (
            ("list",), ("show", session), ("stats",), ("send", "--force", "--session", session, "00", "x"),
            ("output", session, "00"), ("logs", session), ("stop", session), ("restore", session),
            ("clone", session), ("stop", session), ("archive", session), ("list", "--status", "archived"),
            ("unarchive", session), ("delete", session, "--yes"), ("undelete", session), ("repair",),
            ("prune", "--keep", "9"), ("migrate",),
        )
    ]  # fmt: skip
    assert {"mode", "sessionMode"}.isdisjoint(keys(answers))
    config = json.loads(read(site.session(session, "config.json")))
    assert config.pop("request")["sessionMode"] == "legacy"
    for kept in (config, json.loads(read(site.session(session, "metadata.json")))):
        assert {"mode", "sessionMode"}.isdisjoint(keys(kept))
    assert {"mode", "sessionMode"}.isdisjoint(keys(json.loads(read(site.path("sessions", ".sessions.index")))))
    assert "MODE" not in read(site.session(session, ".session"))
