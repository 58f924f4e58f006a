"""Those who wait for a file are woken when it grows, and only then, with the kernel's help or without."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from collections.abc import Awaitable, Callable, Iterator

import asyncinotify
import pytest

from mas.http import supervisor, watch
from mas.http.supervisor import Supervisor
from mas.http.viewer import Hall
from mas.http.watch import Waker, Watches
from tests.site import short_directory

LONG = 30.0


@pytest.fixture
def place() -> Iterator[str]:
    with short_directory() as directory:
        yield directory


@pytest.fixture
def no_inotify(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left() -> None:
        raise OSError(24, "too many")

    monkeypatch.setattr(watch, "Inotify", none_left)


def run(work: Callable[[Watches], Awaitable[None]]) -> None:
    async def main() -> None:
        await work(Watches(Supervisor(lambda _: None, lambda _: None)))

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


def grow(*path: str) -> None:
    with open(os.path.join(*path), "ab") as file:
        file.write(b"x")


def wakes(directory: str, *acts: Callable[[], object]) -> None:
    """See that each act wakes who watches the directory."""

    async def work(watches: Watches) -> None:
        with watches.watching(directory) as waker:
            for act in acts:
                # What came of the last act is not to wake for this one.
                for _ in range(5):
                    waker.clear()
                    await waker.wait(0.01)
                waiting = asyncio.create_task(waker.wait(LONG))
                await asyncio.sleep(0)
                act()
                async with asyncio.timeout(LONG / 2):
                    await waiting

    run(work)


def opened() -> int:
    return len(os.listdir("/proc/self/fd" if sys.platform == "linux" else "/dev/fd"))


def test_a_file_of_a_directory_that_grows_or_comes_wakes(place: str) -> None:
    grow(place, "old")
    wakes(place, lambda: grow(place, "old"), lambda: grow(place, "new"), lambda: grow(place, "new"))


def test_what_changed_before_one_waits_counts(place: str) -> None:
    async def work(watches: Watches) -> None:
        with watches.watching(place) as waker:
            grow(place, "file")
            assert await woken(waker)

    run(work)


def test_a_directory_that_comes_later_or_comes_again_is_watched(place: str) -> None:
    path = os.path.join(place, "later")
    wakes(
        path,
        lambda: os.mkdir(path),
        lambda: grow(path, "file"),
        lambda: os.rename(path, f"{path}.away"),
        lambda: os.mkdir(path),
        lambda: grow(path, "file"),
    )


def test_a_directory_that_took_the_place_of_another_is_watched_by_the_kernel(place: str) -> None:
    async def work(watches: Watches) -> None:
        path = os.path.join(place, "one")
        os.mkdir(path)
        with watches.watching(path) as waker:
            for take_away in (shutil.rmtree, lambda old: os.rename(old, f"{old}.away")):
                take_away(path)
                while not is_blind(waker):
                    waker.clear()
                    assert await woken(waker)
                os.mkdir(path)
                while is_blind(waker):
                    waker.clear()
                    await waker.wait(LONG)
                assert await stays_asleep(waker)
                grow(path, "file")
                assert await woken(waker)

    run(work)


@pytest.mark.usefixtures("no_inotify")
def test_if_the_kernel_reports_no_changes_the_file_is_looked_at_again_and_again(place: str) -> None:
    wakes(place, lambda: grow(place, "file"), lambda: grow(place, "file"))


def test_nothing_happening_ends_by_the_time(place: str) -> None:
    async def work(watches: Watches) -> None:
        with watches.watching(place) as waker:
            await waker.wait(0.01)

    run(work)


def test_each_viewer_is_woken_by_its_own_log_only(place: str) -> None:
    async def work(watches: Watches) -> None:
        hall = Hall(watches)
        first, second = os.path.join(place, "agent-00.log"), os.path.join(place, "agent-01.log")
        with hall.watching(first) as one, hall.watching(first) as same, hall.watching(second) as other:
            assert not one.blind
            grow(first)
            assert await woken(one)
            assert await woken(same)
            assert not one.happened
            assert await stays_asleep(other)
            grow(place, "agent-01.events.jsonl")
            assert await woken(other)
            assert other.happened
            for name in ("agent-00.log", "agent-00.events.jsonl"):
                assert await stays_asleep(one)
                grow(place, name)
                assert await woken(one)

    run(work)


def test_a_log_that_starts_again_wakes(place: str) -> None:
    async def work(watches: Watches) -> None:
        log = os.path.join(place, "agent-00.log")
        grow(log)
        with Hall(watches).watching(log) as waker:
            os.replace(log, f"{log}.1")
            assert await stays_asleep(waker)
            grow(log)
            assert await woken(waker)

    run(work)


def test_without_watchers_nothing_is_kept_open(place: str) -> None:
    async def work(watches: Watches) -> None:
        before = opened()
        for _ in range(3):
            with watches.watching(place), watches.watching(os.path.join(place, "absent")):
                assert opened() > before
            # The listener closes it when it is next run.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert opened() == before

    run(work)


def test_waiters_look_by_themselves_while_the_listener_is_down_and_are_woken_again_after(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "FIRST_PAUSE", 0.05)
    hear, broken = Watches._hear, [True]

    def fails_once(watches: Watches, event: asyncinotify.Event) -> None:
        if broken and broken.pop():
            raise ZeroDivisionError("on purpose")
        hear(watches, event)

    monkeypatch.setattr(Watches, "_hear", fails_once)

    async def work(watches: Watches) -> None:
        with watches.watching(place) as waker:
            assert not is_blind(waker)
            grow(place, "file")
            assert await woken(waker)
            assert is_blind(waker)
            while is_blind(waker):
                waker.clear()
                await waker.wait(LONG)
            assert await stays_asleep(waker)
            grow(place, "file")
            assert await woken(waker)

    run(work)
