"""Streams events to any number of listeners; each can come back later for the events that it missed."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from typing import Annotated

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse

from mas.http.dependencies import OnlySession, Product, Server
from mas.http.feed import KEEP_ALIVE, EventFeed
from mas.http.wire import EventFieldsPage, answer, refused
from mas.model.errors import MasError
from mas.model.event import Event, EventKind, event_fields

# Milliseconds after which a listener whose stream ended should come back.
_RETRY = 1000

router = APIRouter()


@router.get(
    "/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}, **refused(404, 410)},
)
async def events(
    server: Server,
    session_id: OnlySession,
    after: Annotated[
        str | None, Query(max_length=64, description="Start after this event id; `0` starts with the oldest kept")
    ] = None,
    event: Annotated[list[EventKind] | None, Query(description="Only events of these kinds")] = None,
    last_event_id: Annotated[str | None, Header(max_length=64)] = None,
) -> StreamingResponse:
    """A stream of events as they happen (server-sent events), from now on or after a given event.

    An event `gap` means that some events are lost: read the current state again.
    """

    def wanted(found: Event) -> bool:
        return (session_id is None or found.session_id == session_id) and (event is None or found.event in event)

    # A browser that reconnects uses its first address, and its last event id is in the header.
    after = last_event_id or after
    # Before the response begins: a listener that has its headers misses nothing from then on.
    begin = await server.feed.now() if after is None else after
    blocks = _blocks(server.feed, begin, wanted, is_new=after is None)
    return StreamingResponse(blocks, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


@router.get("/events/page", summary="Read events", responses={200: {"model": EventFieldsPage}, **refused()})
def event_page(
    mas: Product,
    after: Annotated[str | None, Query(max_length=64, description="Start after this event id")] = None,
    most: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> Response:
    """The events after `after`, without a stream. Continue after `last`."""
    page = mas.events(after, most)
    return answer({"events": list(map(event_fields, page.events)), "last": page.last, "gap": page.gap})


async def _blocks(feed: EventFeed, after: str, wanted: Callable[[Event], bool], is_new: bool) -> AsyncIterator[str]:
    """The stream for one listener. It ends where the store cannot be read: the listener will ask again."""
    sent_at = time.monotonic()
    yield f"retry: {_RETRY}\n\n"
    if is_new:
        # It learns where it is.
        yield _keep_alive(after)
    with suppress(MasError, OSError):
        async with aclosing(feed.listen(after)) as pages:
            async for page in pages:
                text = _block("gap", {"after": after}) if page.gap else ""
                text += "".join(map(_event_block, filter(wanted, page.events)))
                if not text and (not page.events or time.monotonic() - sent_at >= KEEP_ALIVE):
                    # Where nothing wanted comes, a listener still learns how far it is.
                    text = _keep_alive(page.last)
                if text:
                    sent_at = time.monotonic()
                    yield text


def _keep_alive(last: str) -> str:
    return f": keep-alive\nid: {last}\n\n"


def _event_block(event: Event) -> str:
    return f"id: {event.id}\n" + _block(event.event, event_fields(event))


def _block(name: str, body: dict[str, object]) -> str:
    return f"event: {name}\ndata: {json.dumps(body, separators=(',', ':'))}\n\n"
