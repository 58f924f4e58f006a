"""Restarts: a launcher runs its agent again as the policy says, in the same pane, and no oftener."""

from __future__ import annotations

import signal

import pytest

from mas.pane.restarts import Restarts
from tests.pane.pane import Pane, pane
from tests.pane.test_end import is_gone
from tests.site import Site, until

ALWAYS = {"restart": "always", "restart_limit": 1}


def kinds(one: Pane) -> list[str]:
    return [event["event"] for event in one.events()]


@pytest.mark.parametrize(
    ("policy", "script", "runs"),
    [
        ("on-failure", "exit 0", 1),
        ("on-failure", "exit 1", 2),
        ("on-failure", "kill -9 $$", 2),
        ("always", "exit 0", 2),
    ],
)
def test_a_policy_covers_some_ends(bare: Site, policy: str, script: str, runs: int) -> None:
    plan = {"restart": policy, "restart_limit": 1}
    with pane(bare, "sh", "-c", f"echo x >>runs; {script}", plan=plan) as one:
        one.wait()
        with open(one.path("runs"), encoding="utf-8") as file:
            assert file.read() == "x\n" * runs
        assert kinds(one) == ["start", "exit"] * runs
        assert (b"not started again: its restart limit is reached" in one.output) == (runs == 2)


def test_what_is_typed_between_two_runs_reaches_no_program(bare: Site) -> None:
    # The third pause is long enough for a busy machine to type in it.
    script = "test -e runs3 && { echo up; cat >typed; }; touch runs$(ls | grep -c runs); exit 1"
    with pane(bare, "sh", "-c", script, plan=ALWAYS | {"restart_limit": 4}) as one:
        one.expect(b"starts again in 4 s")
        one.send(b"rm everything\r")
        one.expect(b"up")
        one.send(b"hello\r\x04")
        one.wait()
        with open(one.path("typed"), encoding="utf-8") as file:
            assert file.read() == "hello\n"


def test_what_an_agent_left_has_ended_before_the_next_run(bare: Site) -> None:
    child = "echo $$ >>children; touch up; exec sleep 1000"
    script = f"setsid sh -c '{child}' & while ! test -e up; do sleep 0.01; done; rm up; exit 1"
    with pane(bare, "sh", "-c", script, plan=ALWAYS) as one:
        until(lambda: kinds(one).count("start") == 2, "the next run")
        assert len(one.events()[1]["left"]) == 1
        with open(one.path("children"), encoding="utf-8") as file:
            first = file.readline().strip()
        assert is_gone(int(first))
        one.wait()


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
def test_a_launcher_that_is_asked_to_end_starts_nothing_more(bare: Site, number: signal.Signals) -> None:
    plan = {"restart": "always", "restart_limit": 9}
    with pane(bare, "sh", "-c", "exit 3", plan=plan) as one:
        one.expect(b"starts again in 4 s")
        one.process.send_signal(number)
        assert one.wait() == 3
        assert b"not started again: it was asked to stop" in one.output
        assert kinds(one).count("start") == 4


def test_an_agent_that_exits_because_its_launcher_must_end_is_not_started_again(bare: Site) -> None:
    script = "trap 'exit 3' HUP TERM; echo up; while :; do sleep 0.05; done"
    with pane(bare, "sh", "-c", script, plan=ALWAYS) as one:
        one.expect(b"up")
        one.process.send_signal(signal.SIGTERM)
        assert one.wait() == 3
        assert kinds(one) == ["start", "exit"]
        assert "reason" not in one.event("exit")


def test_a_next_run_goes_on_where_there_is_something_to_go_on_with(bare: Site) -> None:
    plan = {"restart": "always", "restart_limit": 2, "resume_if": "*.log"}
    plan["resume"] = ("sh", "-c", "echo going on; exit 4")
    with pane(bare, "sh", "-c", "exit 1", plan=plan) as one:
        one.expect(b"starts again in 1 s")
        assert b"going on" not in one.output
        with open(one.path("a.log"), "w", encoding="utf-8"):
            pass
        assert one.wait() == 4
        assert one.output.count(b"going on") == 1


def test_only_the_last_ten_minutes_count_and_pauses_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("mas.pane.restarts.time.monotonic", lambda: now[0])
    policy = Restarts("always", 8)
    assert [policy.pause() for _ in range(9)] == [0.5, 1, 2, 4, 8, 16, 30, 30, None]
    now[0] = 599.0
    assert policy.pause() is None
    now[0] = 601.0
    assert (policy.pause(), policy.count) == (0.5, 9)
