"""Background tasks of the server: what one raises is logged, counted and shown, and the task starts again."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import pairwise
from typing import Any

import psutil
import pytest

from mas.http import supervisor
from mas.http.supervisor import Supervisor
from tests.e2e.standin import received, start_receivers
from tests.http.test_observability import lines, numbers
from tests.served import Served
from tests.site import Site, until

# A server whose tasks fail while there is a file that says so; each pause is short, so that the test is.
FRAGILE = """
import os, sys
from mas.cli.main import main
from mas.http import app
from mas.http import feed
from mas.http import idle
from mas.http import metrics
from mas.http import server
from mas.http import supervisor
from mas.service.messages import courier
from mas.service.isolation import disk
from mas.store.session.logs import Logs

supervisor.FIRST_PAUSE, supervisor.LONGEST_PAUSE, supervisor.WELL_AFTER = 0.05, 0.2, 0.5
app._BETWEEN_ROUNDS = app._BETWEEN_DISK_LOOKS = server._BETWEEN_LOG_CHECKS = metrics._LAG_EVERY = feed._LOOK = 0.05

def make_fragile(place, name, task):
    real = getattr(place, name)

    def fragile(*args, **options):
        if os.path.exists(f"break-{task}"):
            raise ZeroDivisionError(f"{task} fails on purpose")
        return real(*args, **options)

    setattr(place, name, fragile)

make_fragile(feed.EventFeed, "_catch_up", "events")
make_fragile(courier.Courier, "look_around", "courier")
make_fragile(courier.Courier, "look_again", "courier")
make_fragile(disk, "watch", "disk")
make_fragile(idle, "_is_needed", "idle")
make_fragile(Logs, "api", "log")
make_fragile(courier, "deliver", "thread")
sys.argv[1:1] = ["serve"]
main()
"""


@pytest.fixture
def fragile(site: Site) -> Iterator[Served]:
    with closing(Served(site, program=("-c", FRAGILE))) as made:
        yield made


def health(served: Served) -> dict[str, Any]:
    body: dict[str, Any] = served.client("").get("/health").json()
    return {"status": body["status"], "failing": body["failing"]}


def breaking(site: Site, task: str) -> str:
    """Have the task fail until the file whose path this returns is removed."""
    path = site.path(f"break-{task}")
    with open(path, "w", encoding="utf-8"):
        pass
    return path


def failures(served: Served, task: str) -> float:
    return numbers(served)[f'mas_task_failures_total{{task="{task}"}}']


@pytest.mark.parametrize("task", ["events", "courier", "disk"])
def test_a_task_that_fails_is_shown_logged_and_counted_and_starts_again(fragile: Served, task: str) -> None:
    assert health(fragile) == {"status": "ok", "failing": []}
    assert failures(fragile, task) == 0
    cause = breaking(fragile.site, task)
    until(lambda: health(fragile) == {"status": "degraded", "failing": [task]}, "the task is failing")
    until(lambda: failures(fragile, task) >= 2, "it is started again, and fails again")
    traces = [line["trace"] for line in lines(fragile.log) if "trace" in line]
    assert f"ZeroDivisionError: {task} fails on purpose" in traces[0]
    os.unlink(cause)
    until(lambda: health(fragile) == {"status": "ok", "failing": []}, "the task is well again")


def test_a_feed_that_fails_ends_no_stream_and_loses_no_event(fragile: Served) -> None:
    with fragile.client().stream("GET", "/events") as stream:
        heard = stream.iter_lines()
        next(heard)
        cause = breaking(fragile.site, "events")
        until(lambda: health(fragile)["status"] == "degraded", "the feed has failed")
        fragile.site.world().events.add("warning", text="while it was down")
        os.unlink(cause)
        fragile.site.world().events.add("warning", text="the end")
        texts = []
        for line in heard:
            if line.startswith("data: "):
                texts.append(json.loads(line.removeprefix("data: ")).get("text"))
            if texts and texts[-1] == "the end":
                break
        assert texts == ["while it was down", "the end"]


def test_a_thread_that_fails_is_logged_and_counted_and_its_messages_are_not_forgotten(fragile: Served) -> None:
    session = start_receivers(fragile.site)
    cause = breaking(fragile.site, "thread")
    path = f"/sessions/{session}/messages"
    assert fragile.client().post(path, json={"target": "00", "message": "hello"}).status_code == 202
    until(lambda: failures(fragile, "courier") >= 1, "the thread has failed")
    until(
        lambda: any("thread fails on purpose" in line.get("trace", "") for line in lines(fragile.log)), "it is logged"
    )
    os.unlink(cause)
    assert received(fragile.site, session, "00", 1) == b"hello"


def test_a_log_that_fails_is_shown_and_goes_on(fragile: Served) -> None:
    cause = breaking(fragile.site, "log")

    def is_failing() -> bool:
        # A request that it cannot write down.
        fragile.client().get("/sessions")
        return health(fragile) == {"status": "degraded", "failing": ["log"]}

    until(is_failing, "the log is failing")
    os.unlink(cause)
    until(lambda: health(fragile)["status"] == "ok", "it is well again")
    fragile.client().get("/sessions", headers={"X-Request-ID": "after"})
    until(lambda: any(line.get("requestId") == "after" for line in lines(fragile.log)), "it writes again")


def test_a_server_whose_look_for_idleness_failed_still_ends_by_itself(site: Site) -> None:
    # Before there is a server: that might be idle, and exit, before this test goes on.
    cause = breaking(site, "idle")
    with closing(Served(site, "--until-idle", "0.3", program=("-c", FRAGILE))) as served:
        until(lambda: any("idle fails" in line.get("trace", "") for line in lines(served.log)), "it failed")
        os.unlink(cause)
        psutil.Process(served.pid).wait(60)
        assert any("this server is idle" in line.get("text", "") for line in lines(served.log))


def test_the_pause_before_a_task_starts_again_grows_up_to_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(supervisor, "LONGEST_PAUSE", 0.05)
    starts: list[float] = []
    failed: list[str] = []

    async def work() -> None:
        starts.append(time.monotonic())
        if len(starts) <= 4:
            raise ZeroDivisionError

    async def main() -> None:
        watched = Supervisor(lambda _: None, failed.append)
        await watched.start("task", work)
        assert watched.failing == ()

    asyncio.run(main())
    assert failed == ["task"] * 4
    pauses = [after - before for before, after in pairwise(starts)]
    assert all(pause >= least for pause, least in zip(pauses, (0.02, 0.04, 0.05, 0.05), strict=True))


def test_a_task_in_which_something_was_cancelled_starts_again_and_one_that_is_cancelled_ends() -> None:
    starts: list[str] = []

    async def work() -> None:
        starts.append("started")
        if len(starts) == 1:
            raise asyncio.CancelledError
        await asyncio.Event().wait()

    async def main() -> None:
        watched = Supervisor(lambda _: None, lambda _: None)
        task = watched.start("task", work)
        while len(starts) < 2:
            assert not task.done()
            await asyncio.sleep(0.01)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert watched.failing == ()
        await watched.stop()

    asyncio.run(main())
    assert len(starts) == 2
