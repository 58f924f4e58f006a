"""Those who wait for a log are woken when it grows, and only then, with the kernel's help or without."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import asyncinotify
import pytest

from mas.http import supervisor
from mas.http.supervisor import Supervisor
from mas.http.tail import Tails, Waker

LONG = 30.0


def run(work: Callable[[Tails], Awaitable[None]]) -> None:
    async def main() -> None:
        await work(Tails(Supervisor(lambda _: None, lambda _: None)))

    asyncio.run(main())


async def woken(waker: Waker) -> bool:
    """Whether it was woken, rather than tired of waiting."""
    began = time.monotonic()
    await waker.wait(LONG)
    return time.monotonic() - began < LONG


async def stays_asleep(waker: Waker) -> bool:
    waker.clear()
    waiting = asyncio.create_task(waker.wait(LONG))
    await asyncio.sleep(0.1)
    asleep = not waiting.done()
    waiting.cancel()
    return asleep


def is_blind(waker: Waker) -> bool:
    return waker.blind


def grow(path: Path, data: str = "x") -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(data)


def test_each_viewer_is_woken_by_its_own_log_only(tmp_path: Path) -> None:
    async def work(tails: Tails) -> None:
        first, second = tmp_path / "agent-00.log", tmp_path / "agent-01.log"
        with (
            tails.watching(str(first)) as one,
            tails.watching(str(first)) as same,
            tails.watching(str(second)) as other,
        ):
            assert not one.blind
            grow(first)
            assert await woken(one)
            assert await woken(same)
            assert not one.happened
            assert await stays_asleep(other)
            grow(tmp_path / "agent-01.events.jsonl")
            assert await woken(other)
            assert other.happened
            for path in (first, tmp_path / "agent-00.events.jsonl"):
                one.clear()
                assert await stays_asleep(one)
                grow(path)
                assert await woken(one)

    run(work)


def test_a_log_that_starts_anew_wakes(tmp_path: Path) -> None:
    async def work(tails: Tails) -> None:
        log = tmp_path / "agent-00.log"
        grow(log)
        with tails.watching(str(log)) as waker:
            os.replace(log, tmp_path / "agent-00.log.1")
            assert await stays_asleep(waker)
            log.touch()
            assert await woken(waker)

    run(work)


def test_where_there_is_no_directory_it_is_looked_again_and_again(tmp_path: Path) -> None:
    async def work(tails: Tails) -> None:
        with tails.watching(str(tmp_path / "none" / "agent-00.log")) as waker:
            assert waker.blind
            assert await woken(waker)

    run(work)


def test_a_directory_that_goes_is_looked_for_from_then_on(tmp_path: Path) -> None:
    async def work(tails: Tails) -> None:
        logs = tmp_path / "logs"
        logs.mkdir()
        with tails.watching(str(logs / "agent-00.log")) as waker:
            shutil.rmtree(logs)
            assert await woken(waker)
            assert waker.blind
            assert await woken(waker)

    run(work)


def test_without_inotify_it_is_looked_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left() -> None:
        raise OSError(24, "too many")

    monkeypatch.setattr(asyncinotify, "Inotify", none_left)

    async def work(tails: Tails) -> None:
        with tails.watching(str(tmp_path / "agent-00.log")) as waker:
            assert waker.blind
            assert await woken(waker)

    run(work)


def test_when_nobody_watches_nothing_is_kept_open(tmp_path: Path) -> None:
    async def work(tails: Tails) -> None:
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(3):
            with tails.watching(str(tmp_path / "agent-00.log")), tails.watching(str(tmp_path / "agent-01.log")):
                assert len(os.listdir("/proc/self/fd")) > before
            # The listener closes it when it is next run.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert len(os.listdir("/proc/self/fd")) == before

    run(work)


def test_viewers_look_by_themselves_while_the_listener_is_down_and_are_woken_again_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "FIRST_PAUSE", 0.05)
    hear, broken = Tails._hear, [True]

    def fails_once(tails: Tails, event: asyncinotify.Event) -> None:
        if broken and broken.pop():
            raise ZeroDivisionError("on purpose")
        hear(tails, event)

    monkeypatch.setattr(Tails, "_hear", fails_once)

    async def work(tails: Tails) -> None:
        log = tmp_path / "agent-00.log"
        with tails.watching(str(log)) as waker:
            assert not is_blind(waker)
            grow(log)
            assert await woken(waker)
            assert is_blind(waker)
            while is_blind(waker):
                await asyncio.sleep(0.01)
            waker.clear()
            grow(log)
            assert await woken(waker)

    run(work)
