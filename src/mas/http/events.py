"""Events as they happen, to any number of listeners, each of whom can come back for what it missed.

One task follows the store for all of them and keeps the last events at hand. A listener is no more than the id of
what it heard last: while that is among those at hand it is served from memory, and one that fell behind reads the
store. So a slow one loses nothing and holds nothing.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, suppress
from typing import Annotated

from anyio import CapacityLimiter
from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from mas.http.dependencies import OnlySession, Product
from mas.http.threads import in_thread
from mas.http.watch import Watch
from mas.http.wire import EventFieldsPage, answer, refused
from mas.model.errors import MasError
from mas.model.event import Event, EventKind, EventPage, event_fields
from mas.service.mas import Mas

KEEP_ALIVE = 15.0
_AT_HAND = 1000
_PAGE = 200
# The kernel wakes us; this is for file systems where it does not.
_LOOK = 2.0
_READERS = 4
# Milliseconds after which a listener whose stream ended should come back.
_RETRY = 1000

router = APIRouter()


class EventFeed:
    """Follows what happens, while `run` runs, for all who `listen`."""

    def __init__(self, mas: Mas, directory: str, hear: Callable[[Event], None], missed: Callable[[], None]) -> None:
        """`hear` is told every event, `missed` that there were some that nobody can tell any more; neither may wait."""
        self._mas = mas
        self._directory = directory
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
        # What was not heard when this ended the last time is found by looking.
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
        """End `run` and everybody's listening. Closing twice is fine."""
        self._closing.set()
        self._moved.set()

    async def listen(self, after: str | None) -> AsyncGenerator[EventPage, None]:
        """Pages of what comes after `after`, until closed; an empty page now and then where nothing comes.

        The first page comes at once, so that a listener knows where it is.
        """
        page = await self._read(after) if after is None else EventPage((), after, False)
        if after is None:
            yield page
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
        async with Watch(self._directory) as watch:
            while True:
                await self._catch_up()
                await watch.changed(_LOOK)

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
            # Listeners first: whatever goes wrong with an event here, they have heard it.
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


@router.get(
    "/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}, **refused(404, 410)},
)
async def events(
    request: Request,
    session_id: OnlySession,
    after: Annotated[
        str | None, Query(max_length=64, description="The id to go on from; `0` is before the oldest kept")
    ] = None,
    event: Annotated[list[EventKind] | None, Query(description="Only events of these kinds")] = None,
    last_event_id: Annotated[str | None, Header(max_length=64)] = None,
) -> StreamingResponse:
    """What happens, as it happens (server-sent events); from now on, or from where a listener left off.

    An event called `gap` says that some were missed for good: whoever keeps a picture of things should look again.
    """
    feed: EventFeed = request.app.state.feed

    def wanted(found: Event) -> bool:
        return (session_id is None or found.session_id == session_id) and (event is None or found.event in event)

    # A browser that comes back asks with the address it began with, and tells by the header how far it came.
    blocks = _blocks(feed, last_event_id or after, wanted)
    return StreamingResponse(blocks, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


@router.get("/events/page", summary="Read events", responses={200: {"model": EventFieldsPage}, **refused()})
def event_page(
    mas: Product,
    after: Annotated[str | None, Query(max_length=64, description="As with the stream")] = None,
    most: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> Response:
    """What happened after `after`, for whoever would rather ask than listen; `last` is where to go on from."""
    page = mas.events(after, most)
    return answer({"events": list(map(event_fields, page.events)), "last": page.last, "gap": page.gap})


async def _blocks(feed: EventFeed, after: str | None, wanted: Callable[[Event], bool]) -> AsyncIterator[str]:
    """The stream for one listener. It ends where the store cannot be read: the listener will ask again."""
    told = time.monotonic()
    yield f"retry: {_RETRY}\n\n"
    with suppress(MasError, OSError):
        async with aclosing(feed.listen(after)) as pages:
            async for page in pages:
                text = _block("gap", {"after": after}) if page.gap else ""
                text += "".join(map(_event_block, filter(wanted, page.events)))
                if not text and (not page.events or time.monotonic() - told >= KEEP_ALIVE):
                    # Where nothing wanted comes, a listener still learns how far it is.
                    text = f": keep-alive\nid: {page.last}\n\n"
                if text:
                    told = time.monotonic()
                    yield text


def _event_block(event: Event) -> str:
    return f"id: {event.id}\n" + _block(event.event, event_fields(event))


def _block(name: str, body: dict[str, object]) -> str:
    return f"event: {name}\ndata: {json.dumps(body, separators=(',', ':'))}\n\n"
