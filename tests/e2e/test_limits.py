"""Limits: they hold, are reported when they are reached, and affect no other agent or session."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from glob import glob
from typing import Any

import psutil
import pytest

from mas.model.ids import SessionId
from mas.runtime.limits.cgroups import ground, leave
from tests.e2e.standin import ASLEEP, command, living, pane_pids, pids, read, start_body, write
from tests.served import Served
from tests.site import Site, until

MIB = 1 << 20


@pytest.fixture
def limited(site: Site) -> Iterator[Site]:
    """A site whose sessions are all stopped in the end, and that has no control group left then."""
    yield site
    site.mas("stop", "--all")
    left = [group for info in site.json("list")["sessions"] for group in groups(info["sessionId"])]
    assert left == []


def groups(session: str) -> list[str]:
    return glob(f"/sys/fs/cgroup/**/mas/{session}", recursive=True)


def needs_groups() -> None:
    where = ground()
    if where is None:
        pytest.skip("no control groups can be made here")
    leave(where)


def start_hog(site: Site, limits: dict[str, Any], *words: object) -> str:
    program = " ".join([command("hog"), *map(str, words)])
    return start_body(site, {"team": "solo", "limits": limits}, "--command", program)


def agent(site: Site, session: str) -> dict[str, Any]:
    (found,) = site.json("show", session)["agents"]
    return dict(found)


def events(site: Site, session: str) -> list[dict[str, Any]]:
    path = site.session(session, "logs", "agent-00.events.jsonl")
    return [json.loads(line) for line in read(path).splitlines()] if os.path.exists(path) else []


def wait_for_end(site: Site, session: str) -> dict[str, Any]:
    until(lambda: [event for event in events(site, session) if event["event"] == "exit"], "the end of the agent")
    until(lambda: agent(site, session)["exitStatus"] is not None, "its exit status")
    return agent(site, session)


@pytest.mark.parametrize("whose", ["agent", "session"])
def test_an_agent_killed_for_its_memory_says_so_and_another_session_goes_on(limited: Site, whose: str) -> None:
    limit = {"memory": "64MiB"}
    other = start_hog(limited, {"memory": "512MiB"}, "memory", 80 * MIB)
    session = start_hog(limited, {"agent": limit} if whose == "agent" else limit, "slowly", 400 * MIB)
    found = wait_for_end(limited, session)
    assert (found["state"], found["stateText"]) == ("error", "memory limit 64 MiB reached")
    # Without control groups it may have been refused more before it was seen.
    assert found["exitStatus"] in (137, 1)
    assert limited.statuses() == {session: "active", other: "active"}
    assert "memory limit 64 MiB reached" in limited.mas("show", session).stdout
    until(lambda: os.path.exists(limited.session(other, "unit", "00", "up")), "the other")
    assert agent(limited, other)["state"] != "error"
    limited.mas("restart-agent", session, "00")


def test_a_child_that_the_kernel_kills_for_memory_is_reported_and_the_agent_goes_on(limited: Site) -> None:
    needs_groups()
    script = f"sh -c '{command('hog')} slowly {400 * MIB}; echo $? >up; exec sleep 1000'"
    session = start_body(limited, {"team": "solo", "limits": {"memory": "64MiB"}}, "--command", script)
    until(lambda: [event for event in events(limited, session) if event["event"] == "warning"], "the warning")
    assert agent(limited, session)["state"] != "error"
    # The launcher may see it before the shell does.
    up = limited.session(session, "unit", "00", "up")
    assert until(lambda: os.path.exists(up) and read(up).strip(), "what the shell saw") == "137"


def test_forking_stops_at_the_limit_and_that_is_reported(limited: Site) -> None:
    needs_groups()
    session = start_hog(limited, {"agent": {"processes": 30}}, "forks", 100)
    path = limited.session(session, "unit", "00", "forks")
    until(lambda: os.path.exists(path), "the forks")
    assert read(path) == "29"
    said = until(
        lambda: [event["text"] for event in events(limited, session) if event["event"] == "warning"], "the warning"
    )
    assert said == ["processes limit 30 reached"]
    assert agent(limited, session)["exitStatus"] is None


def test_processor_time_is_shared_out_as_the_limit_says(limited: Site) -> None:
    needs_groups()
    session = start_hog(limited, {"cpu": 0.2}, "spin")
    until(lambda: os.path.exists(limited.session(session, "unit", "00", "up")), "the agent")
    (launcher,) = pane_pids(limited, session)
    (hog,) = psutil.Process(launcher).children()
    began, before = time.monotonic(), sum(hog.cpu_times()[:2])
    until(lambda: sum(hog.cpu_times()[:2]) > before + 0.5, "half a second of work")
    assert 0.5 / (time.monotonic() - began) < 0.4


def test_a_cpu_limit_that_cannot_be_enforced_is_reported(site: Site) -> None:
    if where := ground():
        leave(where)
        pytest.skip("it is enforced here")
    done = site.mas("start", "--config", "-", "--command", "sleep 1000", input='{"team":"solo","limits":{"cpu":1}}')
    assert "The cpu limit is not enforced" in done.stderr


def test_a_file_cannot_grow_past_the_limit(limited: Site) -> None:
    session = start_hog(limited, {"fileSize": "8MiB"}, "file", 100 * MIB)
    found = wait_for_end(limited, session)
    assert (found["state"], found["stateText"]) == ("error", "file size limit 8 MiB reached")
    assert os.path.getsize(limited.session(session, "unit", "00", "large")) == 8 * MIB


def test_a_daemon_that_got_away_from_a_killed_launcher_ends_with_its_group(limited: Site) -> None:
    needs_groups()
    body = {"team": "solo", "env": {"CHILDREN": "setsid,daemon"}, "limits": {"processes": 50}}
    session = start_body(limited, body, "--command", command("unruly"))
    until(lambda: os.path.exists(limited.session(session, "unit", "00", "pids.json")), "the agent's children")
    daemon = pids(limited, session)["daemon"]
    try:
        os.kill(pane_pids(limited, session)[0], signal.SIGKILL)
        until(lambda: living([pids(limited, session)["agent"]]) == [], "the end of the agent")
        assert living([daemon]) == [daemon]
        limited.mas("stop", session)
        assert living([daemon]) == []
    finally:
        for pid in living([daemon]):
            os.kill(pid, signal.SIGKILL)


def test_groups_of_a_session_whose_tmux_died_go_with_the_next_command(limited: Site) -> None:
    needs_groups()
    session = start_body(limited, {"team": "solo", "limits": {"processes": 50}}, "--command", "sleep 1000")
    assert groups(session)
    limited.tmux("kill-server")
    until(lambda: limited.statuses() == {session: "stopped"}, "its status")
    assert groups(session) == []
    limited.mas("restore", session)
    assert groups(session)


def test_limits_come_back_with_a_restored_session(limited: Site) -> None:
    session = start_hog(limited, {"fileSize": "8MiB"}, "file", 100 * MIB)
    wait_for_end(limited, session)
    limited.mas("stop", session)
    limited.mas("restore", session)
    until(lambda: len([one for one in events(limited, session) if one["event"] == "exit"]) == 2, "the next end")
    assert events(limited, session)[-1]["reason"] == "file size limit 8 MiB reached"


def fill(site: Site, session: str, size: int) -> None:
    write("x" * size, site.session(session, "unit", "00", "large"))


def disk_limited(site: Site, limit: str) -> str:
    return start_body(site, {"team": "solo", "limits": {"disk": limit}}, *ASLEEP[2:])


def test_a_session_that_takes_all_its_disk_is_stopped_and_can_come_back_once_there_is_room(site: Site) -> None:
    session = disk_limited(site, "8MiB")
    fill(site, session, 7 * MIB)
    (found,) = site.json("stats")["sessions"]
    assert (found["status"], found["diskLimit"]) == ("active", 8 * MIB)
    fill(site, session, 9 * MIB)
    done = site.mas("stats")
    assert f"Session {session} was stopped: disk limit 8 MiB reached" in done.stderr
    assert site.json("show", session)["reason"] == "disk limit 8 MiB reached"
    assert site.four_places(session) == {"stopped"}
    assert site.tmux_sessions() == set()
    assert "UTC: disk limit 8 MiB reached" in site.mas("show", session).stdout
    assert "error: disk limit 8 MiB reached" in read(site.session(session, "logs", "session.log"))
    assert "disk limit 8 MiB reached" in site.mas("restore", session, code=None).stderr
    assert site.statuses() == {session: "stopped"}
    fill(site, session, 1 * MIB)
    assert site.json("restore", session)["reason"] is None


def test_a_session_with_more_in_its_templates_than_it_may_take_does_not_start(site: Site) -> None:
    write("x" * (3 * MIB), site.path("unit", "00", "large"))
    body = json.dumps({"team": "solo", "limits": {"disk": "1MiB"}})
    done = site.mas("start", "--config", "-", *ASLEEP[2:], input=body, code=None)
    assert "disk limit 1 MiB reached" in done.stderr
    assert site.statuses() == {}


def test_a_server_warns_at_four_fifths_and_stops_at_the_whole(served: Served) -> None:
    site = served.site
    session = disk_limited(site, "8MiB")
    fill(site, session, 7 * MIB)
    mas = site.local()

    def told() -> list[str]:
        page = mas.events("0")
        return [str(event.details["text"]) for event in page.events if event.event == "warning"]

    until(lambda: any("of 8 MiB disk" in text for text in told()), "the warning")
    fill(site, session, 9 * MIB)
    until(lambda: mas.show(SessionId(session)).status == "stopped", "its end")
    until(lambda: told()[-1] == f"Session {session} was stopped: disk limit 8 MiB reached", "the word about it")
    assert sum("of 8 MiB disk" in text for text in told()) == 1


def test_limits_hold_behind_walls_too(limited: Site) -> None:
    checks = {check["name"]: check["text"] for check in limited.json("doctor", code=None)["checks"]}
    if checks["tier A namespaces"] != "can be had":
        pytest.skip(f"tier A {checks['tier A namespaces']}")
    program = f"{command('hog')} slowly {400 * MIB}"
    body = {"team": "solo", "limits": {"agent": {"memory": "64MiB"}}}
    session = start_body(limited, body, "--command", program, env={"MAS_ISOLATION": "A"})
    found = wait_for_end(limited, session)
    assert (found["state"], found["stateText"]) == ("error", "memory limit 64 MiB reached")
