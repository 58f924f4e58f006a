"""Together: one process is held at every step of its work while another sets about the same session."""

from __future__ import annotations

import os
from typing import Any
from uuid import uuid4

import pytest

from mas.model.errors import Busy, Corrupt
from mas.model.ids import SessionId
from mas.service.upkeep.prune import PrunePolicy
from tests.faults.driver import Blocked, Cut, Driver, Ended, Fault, Reached
from tests.faults.field import RUN, Field, bring, steps

pytestmark = pytest.mark.timeout(300)
# Who is held, who comes along, and what the session is before.
PAIRS = [
    ("stop", "delete", "active"),
    ("delete", "stop", "active"),
    ("archive", "delete", "stopped"),
    ("delete", "archive", "stopped"),
    ("restore", "restore", "stopped"),
    ("restore", "delete", "stopped"),
    ("delete", "restore", "stopped"),
    ("clone", "delete", "stopped"),
    ("undelete", "undelete", "deleted"),
    ("unarchive", "unarchive", "archived"),
    ("start", "list", "stopped"),
    ("archive", "list", "stopped"),
    ("delete", "list", "stopped"),
]
ONE_IN = 4
REFUSALS = {"Conflict", "NotFound"}
EVERYTHING_DELETED = PrunePolicy(keep=0, statuses=("deleted",))


def arguments(verb: str, session_id: SessionId) -> tuple[Any, ...]:
    return {"start": (RUN,), "list": (), "clone": (session_id, None, False)}.get(verb, (session_id,))


def meet(held: Driver, other: Driver, verb: str, *args: Any, ids: tuple[str, ...] = ()) -> tuple[Ended, Ended]:
    """Run a verb while another process is held at a step; then let that go on. How the two ended."""
    other.begin(verb, *args, ids=ids)
    news = other.next()
    held.resume()
    first = held.next(waiting_is_news=False)
    # Whoever had to wait for the other one's lock goes on by itself.
    second = other.next(waiting_is_news=False) if isinstance(news, Blocked) else news
    assert isinstance(first, Ended)
    assert isinstance(second, Ended)
    return first, second


def was_done_or_refused(ended: Ended) -> None:
    assert ended.error is None or REFUSALS & set(ended.kinds), ended.trace


@pytest.mark.parametrize(("first", "second", "status"), PAIRS)
def test_two_processes_on_one_session_each_succeed_or_get_an_error(
    field: Field, driver: Driver, other: Driver, first: str, second: str, status: str
) -> None:
    session_id = field.stopped()
    for step in steps(ONE_IN):
        bring(field, status, session_id)
        driver.begin(first, *arguments(first, session_id), fault=Fault(Cut.PAUSE, step))
        reached = driver.next(waiting_is_news=False)
        if isinstance(reached, Ended):
            assert reached.error is None
            assert step > 1
            break
        assert isinstance(reached, Reached)
        try:
            ends = meet(driver, other, second, *arguments(second, session_id))
            for ended in ends:
                was_done_or_refused(ended)
            world = field.settled()
            if first == "clone" and ends[0].error is None:
                assert world.marker(ends[0].answer.session_id) == field.kept[session_id], "an empty clone"
        except AssertionError as error:
            raise AssertionError(f"step {step} ({reached.what}): {error}") from error


def test_what_another_process_makes_or_moves_is_busy_and_not_damaged(field: Field) -> None:
    session_id = field.stopped()
    config = field.site.session(session_id, "config.json")
    os.rename(config, f"{config}.away")
    with field.site.world().intents.begin(session_id, "unarchive") as operation:
        with pytest.raises(Busy):
            field.mas.restore(session_id)
        operation.done()
    with pytest.raises(Corrupt):
        field.mas.restore(session_id)
    os.rename(f"{config}.away", config)
    field.mas.restore(session_id)
    field.settled()


@pytest.mark.parametrize("alike", [36, 8], ids=["the same id", "the same first eight characters"])
def test_two_starts_that_draw_alike_get_a_session_each_or_an_error(
    field: Field, driver: Driver, other: Driver, alike: int
) -> None:
    # None that another run of this test has at the same time: processes are known by the id of their session.
    one, two = str(uuid4()), str(uuid4())
    two = one[:alike] + two[alike:]
    for info in field.mas.list("deleted").sessions:
        del field.kept[info.session_id]
    for step in steps(ONE_IN):
        spare = [str(uuid4()) for _ in range(2)]
        driver.begin("start", RUN, fault=Fault(Cut.PAUSE, step), ids=(one, spare[0]))
        reached = driver.next(waiting_is_news=False)
        if isinstance(reached, Ended):
            break
        assert isinstance(reached, Reached)
        try:
            ends = meet(driver, other, "start", RUN, ids=(two, spare[1]))
            for ended in ends:
                was_done_or_refused(ended)
            world = field.settled()
            made = {ended.answer.session_id for ended in ends if ended.error is None}
            assert made <= world.directories
            assert made, "nobody got a session"
        except AssertionError as error:
            raise AssertionError(f"step {step} ({reached.what}): {error}") from error
        for session_id in made:
            field.mas.delete(session_id)
        # The next round draws the same ids, which must be free again.
        field.mas.prune(EVERYTHING_DELETED, dry_run=False)
