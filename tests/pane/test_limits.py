"""Limits: a launcher without control groups holds its agent to them, and says which one ended it."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

from mas.model.launch import LimitPlan
from mas.pane.limits import LimitWatch, below, proportional, resident
from tests.pane.pane import Pane, pane
from tests.site import AGENTS, Site, until

HOG = (sys.executable, os.path.join(AGENTS, "hog.py"))
MEMORY = LimitPlan(most_memory=60 << 20, words={"memory": "memory limit 60 MiB reached"})


def ended(one: Pane) -> dict[str, Any]:
    """How the agent ended, once it has."""
    one.wait()
    return one.event("exit")


def test_an_agent_that_uses_too_much_memory_is_ended_and_that_is_reported(bare: Site) -> None:
    with pane(bare, *HOG, "slowly", str(400 << 20), plan={"limits": MEMORY}) as one:
        event = ended(one)
        assert (event["status"], event["reason"], event["limit"]) == (-9, "memory limit 60 MiB reached", 1)
        assert b"agent 00 exited: memory limit 60 MiB reached" in one.output


def test_an_agent_that_grows_between_two_looks_is_refused_memory_and_that_is_reported(bare: Site) -> None:
    with pane(bare, *HOG, "slowly", str(400 << 20), plan={"limits": MEMORY.but(data=90 << 20)}) as one:
        # On a busy machine it grows more slowly, and is seen before.
        assert ended(one)["reason"] == "memory limit 60 MiB reached"


def test_an_agent_that_fails_for_other_reasons_is_not_reported_as_over_its_limit(bare: Site) -> None:
    with pane(bare, "sh", "-c", "exit 3", plan={"limits": MEMORY}) as one:
        one.wait()
        assert "reason" not in one.event("exit")


def test_memory_that_many_processes_share_counts_once(bare: Site) -> None:
    with pane(bare, *HOG, "memory", str(20 << 20), "4", plan={"limits": MEMORY}) as one:
        until(lambda: os.path.exists(one.path("up")), "the agent and its children")
        everything = below(one.process.pid)
        assert resident(everything) > 60 << 20 > proportional(everything)
        watch = LimitWatch(MEMORY, (), 0.0, lambda text: None)
        watch.look(0.0)
        assert watch.ended(0) == ""
        assert one.process.poll() is None


def test_an_agent_with_too_many_processes_is_ended_with_all_of_them(bare: Site) -> None:
    limits = LimitPlan(most_processes=20, words={"processes": "processes limit 20 reached"})
    with pane(bare, *HOG, "forks", "60", plan={"limits": limits}) as one:
        event = ended(one)
        assert event["reason"] == "processes limit 20 reached"
        assert event["undying"] == []


def test_a_file_that_grows_too_large_ends_the_agent_and_stays_as_large_as_it_may_be(bare: Site) -> None:
    limit = 8 << 20
    limits = LimitPlan(file_size=limit, words={"file_size": "file size limit 8 MiB reached"})
    with pane(bare, *HOG, "file", str(100 << 20), plan={"limits": limits}) as one:
        assert ended(one)["reason"] == "file size limit 8 MiB reached"
        assert os.path.getsize(one.path("large")) == limit


def test_limits_of_files_and_the_oom_score_are_set_for_all_it_starts(bare: Site) -> None:
    script = "ulimit -n; ulimit -Hn; cat /proc/self/oom_score_adj"
    with pane(bare, "sh", "-c", script, plan={"limits": LimitPlan(files=100)}) as one:
        one.wait()
        assert one.log().split()[:3] == [b"100", b"100", b"500"]


def test_without_limits_nothing_is_watched_and_nothing_is_set(bare: Site) -> None:
    with pane(bare, "sh", "-c", "cat /proc/self/oom_score_adj") as one:
        one.wait()
        with open("/proc/self/oom_score_adj", "rb") as file:
            assert one.log().split()[:1] == file.read().split()


def test_an_agent_that_a_limit_ended_has_failed(bare: Site) -> None:
    plan = {"restart": "on-failure", "restart_limit": 1, "limits": MEMORY}
    with pane(bare, *HOG, "slowly", str(400 << 20), plan=plan) as one:
        one.wait()
        reasons = [event["reason"] for event in one.events() if event["event"] == "exit"]
        assert reasons == [
            "memory limit 60 MiB reached; starts again in 0.5 s",
            "memory limit 60 MiB reached; not started again: its restart limit is reached",
        ]


def test_a_group_that_cannot_be_entered_keeps_the_agent_from_starting(bare: Site) -> None:
    limits = LimitPlan(groups=(os.path.join(bare.directory, "no-such-group"),))
    with pane(bare, "touch", "ran", plan={"limits": limits}) as one:
        assert one.wait() == 127
        assert not os.path.exists(one.path("ran"))


@pytest.mark.parametrize(("code", "said"), [(-9, "enough"), (137, "enough"), (1, "")])
def test_what_the_kernel_counts_explains_an_end_only_if_it_killed(bare: Site, code: int, said: str) -> None:
    path = os.path.join(bare.directory, "memory.events")
    count_to(path, 1)
    warnings: list[str] = []
    limits = LimitPlan(counts={"memory": (path, "oom_kill")}, words={"memory": "enough"})
    watch = LimitWatch(limits, (), 0.0, warnings.append)
    count_to(path, 2)
    assert watch.ended(code) == said
    assert warnings == ([] if said else ["enough"])


def test_a_limit_that_was_reached_is_reported_once_each_time(bare: Site) -> None:
    path = os.path.join(bare.directory, "pids.events")
    count_to(path, 0)
    warnings: list[str] = []
    limits = LimitPlan(counts={"processes": (path, "oom_kill")}, words={"processes": "full"})
    watch = LimitWatch(limits, (), 0.0, warnings.append)
    for count in (0, 3, 3, 9):
        count_to(path, count)
        watch.look(0.0)
    assert warnings == ["full", "full"]


def count_to(path: str, count: int) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(f"low 7\noom_kill {count}\n")
