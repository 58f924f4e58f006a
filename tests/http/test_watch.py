"""A watch wakes when a file grows, whatever becomes of the file's place, and without the kernel's help too."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator

import pytest

from mas.http.watch import Watch
from tests.site import short_directory

# Only a wake can end it: what these tests wait for is not time.
_FOR_EVER = 3600.0


@pytest.fixture
def place() -> Iterator[str]:
    with short_directory() as directory:
        yield directory


def grow(*path: str) -> None:
    with open(os.path.join(*path), "ab") as file:
        file.write(b"x")


def wakes(path: str, *acts: Callable[[], object]) -> None:
    """See that each act wakes who watches `path`."""

    async def watching() -> None:
        async with Watch(path) as watch:
            for act in acts:
                # What came of the last act is not to wake for this one.
                for _ in range(5):
                    await watch.changed(0.01)
                waiting = asyncio.create_task(watch.changed(_FOR_EVER))
                await asyncio.sleep(0)
                act()
                async with asyncio.timeout(60):
                    await waiting

    asyncio.run(watching())


def test_a_file_of_a_directory_that_grows_or_comes_wakes(place: str) -> None:
    grow(place, "old")
    wakes(place, lambda: grow(place, "old"), lambda: grow(place, "new"), lambda: grow(place, "new"))


def test_a_file_that_grows_wakes(place: str) -> None:
    grow(place, "file")
    wakes(os.path.join(place, "file"), *[lambda: grow(place, "file")] * 3)


def test_what_changed_before_one_waits_counts(place: str) -> None:
    async def watching() -> None:
        async with Watch(place) as watch, asyncio.timeout(60):
            grow(place, "file")
            await watch.changed(_FOR_EVER)

    asyncio.run(watching())


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


def test_where_the_kernel_does_not_tell_one_looks_again_and_again(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncinotify", None)
    wakes(place, lambda: grow(place, "file"), lambda: grow(place, "file"))


def test_a_watch_leaves_no_descriptor_open(place: str) -> None:
    def opened() -> int:
        return len(os.listdir("/proc/self/fd" if sys.platform == "linux" else "/dev/fd"))

    wakes(place, lambda: grow(place, "file"))
    before = opened()
    for _ in range(3):
        wakes(place, lambda: grow(place, "file"))
        wakes(os.path.join(place, "absent"), lambda: None)
    assert opened() == before


def test_nothing_happening_ends_by_the_time(place: str) -> None:
    async def watching() -> None:
        async with Watch(place) as watch:
            await watch.changed(0.01)

    asyncio.run(watching())
