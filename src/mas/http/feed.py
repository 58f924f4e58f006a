"""The feed of events: one task follows the store for all listeners and keeps the last events in memory.

A listener is only the id of the last event that it got: while that is in memory, the next ones come from there, and
a listener that fell behind reads the store. So a slow listener loses nothing and uses no memory.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager

from anyio import CapacityLimiter

from mas.http.threads import in_thread
from mas.http.watch import Waker
from mas.model.event import Event, EventPage
from mas.service.mas import Mas

KEEP_ALIVE = 15.0
_AT_HAND = 1000
_PAGE = 200
# The kernel wakes us; this is for file systems where it does not.
_LOOK = 2.0
_READERS = 4

Watching = Callable[[], AbstractContextManager[Waker]]


class EventFeed:
    """Follows what happens, while `run` runs, for all who `listen`."""

    def __init__(self, mas: Mas, watching: Watching, hear: Callable[[Event], None], missed: Callable[[], None]) -> None:
        """`hear` is called with every event, `missed` if events were lost; neither may wait."""
        self._mas = mas
        self._watching = watching
        self._hear = hear
        self._missed = missed
        self._limiter = CapacityLimiter(_READERS)
        self._recent: deque[Event] = deque()
        # The ids just before the first event at hand, and of the last.
        self._before: str | None = None
        self._last: str | None = None
        self._moved = asyncio.Event()
        self._closing = asyncio.Event()

    async def run(self) -> None:
        """Follow until closed. If it fails it can be run again: listeners wait meanwhile, and miss nothing."""
        # Events since the last run of this are found by looking.
        self._missed()
        following = asyncio.create_task(self._follow())
        closing = asyncio.create_task(self._closing.wait())
        try:
            await asyncio.wait({following, closing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (following, closing):
                task.cancel()
            ends = await asyncio.gather(following, closing, return_exceptions=True)
        if isinstance(ends[0], Exception):
            raise ends[0]

    def close(self) -> None:
        """End `run` and all listeners. Closing twice is fine."""
        self._closing.set()
        self._moved.set()

    async def now(self) -> str:
        """The id after which comes what happens from now on."""
        return (await self._read(None)).last

    async def listen(self, after: str) -> AsyncGenerator[EventPage, None]:
        """Pages of what comes after `after`, until closed; an empty page now and then where nothing comes."""
        page = EventPage((), after, False)
        while not self._closing.is_set():
            # Taken before looking: what comes while we look is not slept through.
            moved = self._moved
            recent = self._since(page.last)
            if recent is None:
                page = await self._read(page.last)
            else:
                page = EventPage(recent, recent[-1].id if recent else page.last, False)
            if page.events or page.gap:
                yield page
            if not page.events and not await _within(KEEP_ALIVE, moved):
                yield page._replace(gap=False)

    async def _follow(self) -> None:
        with self._watching() as waker:
            while True:
                waker.clear()
                await self._catch_up()
                await waker.wait(_LOOK)

    async def _catch_up(self) -> None:
        """Bring what is new to hand, and wake the listeners."""
        more = True
        while more:
            page = await self._read(self._last)
            if page.gap or self._last is None:
                self._recent.clear()
                self._before = None if page.gap else page.last
            if page.gap:
                self._missed()
            moved = page.last != self._last
            for event in page.events:
                self._recent.append(event)
                if len(self._recent) > _AT_HAND:
                    self._before = self._recent.popleft().id
            self._last = page.last
            if moved:
                was, self._moved = self._moved, asyncio.Event()
                was.set()
            # Listeners first: if something fails here with an event, they already have it.
            for event in page.events:
                self._hear(event)
            more = bool(page.events)

    def _since(self, last: str) -> tuple[Event, ...] | None:
        """The events at hand after `last`, or None if that is not at hand."""
        if last == self._last:
            return ()
        found: list[Event] = []
        for event in reversed(self._recent):
            if event.id == last:
                break
            found.append(event)
        else:
            if last != self._before:
                return None
        return tuple(found[: -_PAGE - 1 : -1])

    async def _read(self, after: str | None) -> EventPage:
        return await in_thread(self._mas.events, after, _PAGE, limiter=self._limiter)


async def _within(seconds: float, happening: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await happening.wait()
    except TimeoutError:
        return False
