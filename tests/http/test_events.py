"""Events over HTTP: every listener gets everything once and in order, however often it or the server goes away."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from mas.http import events as http_events
from mas.http import feed as http_feed
from mas.http import watch
from mas.http.events import router
from mas.http.feed import EventFeed
from mas.http.supervisor import Supervisor
from mas.model.event import KINDS, Event, EventPage
from mas.service.local import LocalMas
from mas.store.workspace import eventlog
from mas.store.workspace.events import Events
from tests.site import Site, until

ONE, TWO = "0f0e0d0c-5b7d-4e8f-9a0b-c1d2e3f4a5b6", "1f0e0d0c-5b7d-4e8f-9a0b-c1d2e3f4a5b6"


class Served(uvicorn.Server):
    """A server of nothing but the events, in a thread of this process."""

    def __init__(self, mas: LocalMas, directory: str) -> None:
        self.app = FastAPI(lifespan=self._lifespan)
        self.app.include_router(router)
        watching = partial(watch.Watches(Supervisor(lambda _: None, lambda _: None)).watching, directory)
        self.feed = EventFeed(mas, watching, lambda _: None, lambda: None)
        self.app.state.server = SimpleNamespace(mas=mas, feed=self.feed)
        super().__init__(uvicorn.Config(self.app, log_level="critical", lifespan="on"))
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}/events"
        self.thread = threading.Thread(target=self.run, kwargs={"sockets": [self.socket]})

    @asynccontextmanager
    async def _lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        running = asyncio.create_task(self.feed.run())
        yield
        self.feed.close()
        await running

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.feed.close()
        await super().shutdown(sockets)

    def __enter__(self) -> Served:
        self.thread.start()
        until(lambda: self.started, "the server")
        return self

    def __exit__(self, *_: object) -> None:
        self.should_exit = True
        self.thread.join(60)
        assert not self.thread.is_alive(), "the server does not end"


class Block(NamedTuple):
    """What the stream says between two empty lines."""

    id: str | None
    event: str | None
    data: Any


class Listener:
    """Reads the blocks of one stream."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.iter_lines()
        assert next(self._lines) == "retry: 1000"
        assert next(self._lines) == ""

    def next(self) -> Block:
        """The next block; StopIteration at the stream's end."""
        found: dict[str, str] = {}
        while line := next(self._lines):
            name, _, value = line.partition(": ")
            found[name] = value
        data = json.loads(found["data"]) if "data" in found else None
        return Block(found.get("id"), found.get("event"), data)

    def numbers(self, count: int) -> list[int]:
        """The numbers of this many events."""
        found: list[int] = []
        while len(found) < count:
            if (block := self.next()).data is not None:
                assert block.id == block.data["id"]
                found.append(block.data["number"])
        return found

    def ends(self) -> bool:
        with suppress(StopIteration, httpx.RemoteProtocolError):
            while True:
                self.next()
        return True


@contextmanager
def listening(served: Served, last: str | None = None, **query: Any) -> Iterator[Listener]:
    headers = {"Last-Event-ID": last} if last is not None else {}
    with httpx.stream("GET", served.url, params=query, headers=headers, timeout=60) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        yield Listener(response)


@pytest.fixture
def store(site: Site) -> Events:
    site.local().list()
    return site.world().events


@pytest.fixture
def served(site: Site, store: Events) -> Iterator[Served]:
    with serving(site) as made:
        yield made


def serving(site: Site) -> Served:
    return Served(site.local(), site.world().layout.events)


def add(store: Events, *numbers: int, **details: Any) -> None:
    for number in numbers:
        store.add("message", number=number, **details)


def test_without_an_id_a_listener_gets_what_happens_from_now_on(served: Served, store: Events) -> None:
    add(store, 1)
    with listening(served) as listener:
        # Where it is: a listener that is cut off before anything happened can go on from there.
        here = listener.next()
        assert (here.event, here.data) == (None, None)
        store.add("agent", ONE, "00", state="exited", exit_status=0)
        block = listener.next()
    assert block.event == "agent"
    assert block.data == {
        "id": block.id,
        "at": block.data["at"],
        "event": "agent",
        "sessionId": ONE,
        "agent": "00",
        "state": "exited",
        "exitStatus": 0,
    }
    add(store, 2)
    with listening(served, here.id) as listener:
        assert listener.next() == block
        assert listener.numbers(1) == [2]


def test_a_listener_misses_nothing_from_the_response_on(
    served: Served, store: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, happened = LocalMas.events, threading.Event()

    def late(mas: LocalMas, after: str | None, most: int) -> EventPage:
        # As on a busy machine, where much can happen before the server comes to look which event is the newest.
        if after is None:
            happened.wait(0.5)
        return read(mas, after, most)

    monkeypatch.setattr(LocalMas, "events", late)
    with httpx.stream("GET", served.url, timeout=60) as response:
        add(store, 1)
        happened.set()
        listener = Listener(response)
        # Where it is.
        assert listener.next().data is None
        add(store, 2)
        assert listener.numbers(1) == [1]


def test_from_the_oldest_kept_on(served: Served, store: Events) -> None:
    add(store, *range(1500))
    with listening(served, after="0") as listener:
        assert listener.numbers(1500) == list(range(1500))
        add(store, 1500)
        assert listener.numbers(1) == [1500]


def test_a_listener_that_was_away_longer_than_the_buffer_misses_nothing(served: Served, store: Events) -> None:
    add(store, 0)
    with listening(served, "0") as listener:
        here = listener.next().id
    with listening(served, here) as listener:
        add(store, *range(1, 1500))
        assert listener.numbers(1499) == list(range(1, 1500))
    with listening(served, here) as listener:
        assert listener.numbers(1499) == list(range(1, 1500))


def test_a_listener_with_an_id_from_before_the_server_started_misses_nothing(site: Site, store: Events) -> None:
    add(store, 0)
    here = store.read(None, 1).last
    with serving(site) as served:
        with listening(served, here) as listener:
            add(store, *range(1, 1500))
            assert listener.numbers(1499) == list(range(1, 1500))
        with listening(served, here) as listener:
            assert listener.numbers(1499) == list(range(1, 1500))


def test_the_header_counts_and_not_the_address_one_began_with(served: Served, store: Events) -> None:
    add(store, *range(5))
    with listening(served, after="0") as listener:
        ids = [listener.next().id for _ in range(5)]
    with listening(served, ids[3], after="0") as listener:
        assert listener.numbers(1) == [4]
    with listening(served, "", after=ids[2]) as listener:
        assert listener.numbers(2) == [3, 4]


def test_a_listener_goes_on_after_the_server_was_away(site: Site, store: Events) -> None:
    last: str | None = "0"
    heard: list[int] = []
    for round_ in range(3):
        with serving(site) as served, listening(served, last) as listener:
            add(store, round_ * 10)
            for _ in range(2 if round_ else 1):
                block = listener.next()
                heard.append(block.data["number"])
                last = block.id
        add(store, round_ * 10 + 1)
    assert heard == [0, 1, 10, 11, 20]


def test_filters_let_through_what_was_asked_for(served: Served, store: Events) -> None:
    with ExitStack() as stack:
        of_one = stack.enter_context(listening(served, "0", sessionId=ONE))
        stops = stack.enter_context(listening(served, "0", sessionId=TWO, event="session"))
        both = stack.enter_context(listening(served, "0", event=["session", "warning"]))
        for session in (ONE, TWO, None):
            for kind in ("session", "agent", "message", "warning"):
                store.add(kind, session, number=1)
        assert [of_one.next().event for _ in range(4)] == ["session", "agent", "message", "warning"]
        assert stops.next()[1:2] == ("session",)
        assert [both.next().event for _ in range(6)] == ["session", "warning"] * 3
        store.add("session", TWO, number=2)
        assert stops.numbers(1) == [2]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_event_can_be_asked_for(served: Served, store: Events, kind: str) -> None:
    with listening(served, "0", event=kind) as listener:
        store.add(kind, ONE, number=1)
        assert listener.next().event == kind


@pytest.mark.parametrize("query", [{"event": "x"}, {"after": "1" * 100}])
def test_a_question_that_makes_no_sense_is_refused(served: Served, query: dict[str, str]) -> None:
    assert httpx.get(served.url, params=query).status_code == 422


def test_a_listener_that_missed_dropped_events_learns_that_first(
    served: Served, store: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eventlog, "SEGMENT_SIZE", 300)
    monkeypatch.setattr(eventlog, "KEPT", 2)
    add(store, 0)
    with listening(served, "0") as listener:
        first = listener.next().id
    add(store, *range(1, 40))
    with listening(served, first) as listener:
        assert listener.next() == Block(None, "gap", {"after": first})
        kept = listener.numbers(1)
        kept += listener.numbers(39 - kept[0])
        assert kept == list(range(kept[0], 40))
    with listening(served, "nonsense") as listener:
        assert listener.next().event == "gap"


def test_many_listeners_get_all_events_of_many_writers(served: Served, store: Events) -> None:
    heard: dict[int, list[int]] = {}

    def listen(name: int, listener: Listener) -> None:
        heard[name] = listener.numbers(400)

    def write(first: int) -> None:
        add(store, *range(first, first + 100))

    with ExitStack() as stack:
        listeners = [stack.enter_context(listening(served, "0")) for _ in range(12)]
        threads = [threading.Thread(target=listen, args=item) for item in enumerate(listeners)]
        threads += [threading.Thread(target=write, args=(number * 100,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert sorted(heard[0]) == list(range(400))
    assert list(heard.values()) == [heard[0]] * 12


def test_slow_listeners_hold_nothing_and_lose_nothing(served: Served, store: Events) -> None:
    count, listeners = 6000, 5
    with ExitStack() as stack:
        slow = [stack.enter_context(listening(served, "0")) for _ in range(listeners)]
        quick = stack.enter_context(listening(served, "0"))
        add(store, *range(count), text="x" * 2000)
        assert quick.numbers(count) == list(range(count))
        gc.collect()
        # What the feed has at hand, and a page for each.
        held = sum(isinstance(thing, Event) for thing in gc.get_objects())
        assert held <= http_feed._AT_HAND + (listeners + 2) * http_feed._PAGE
        for listener in slow:
            assert listener.numbers(count) == list(range(count))


def test_a_slow_listener_learns_when_the_store_went_on_without_it(
    served: Served, store: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(store, 0)
    with listening(served, "0") as slow:
        assert slow.numbers(1) == [0]
        monkeypatch.setattr(eventlog, "SEGMENT_SIZE", 1 << 20)
        monkeypatch.setattr(eventlog, "KEPT", 2)
        add(store, *range(1, 10_000), text="x" * 2000)
        expected, gaps, just_told = 1, 0, False
        while expected < 10_000:
            block = slow.next()
            if block.event == "gap":
                gaps, just_told = gaps + 1, True
            elif block.data is not None:
                assert block.data["number"] == expected or (block.data["number"] > expected and just_told)
                expected, just_told = block.data["number"] + 1, False
        assert gaps >= 1


def test_keep_alives_come_even_to_a_listener_that_wants_few_events(
    served: Served, store: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (http_feed, http_events):
        monkeypatch.setattr(module, "KEEP_ALIVE", 0.05)
    with listening(served) as listener, listening(served, event="warning") as choosy:
        first = [listener.next() for _ in range(3)]
        assert [block[1:] for block in first] == [(None, None)] * 3
        add(store, 1)
        assert listener.numbers(1) == [1]
        # It learns how far it is, though it did not ask for what happened.
        until(lambda: choosy.next().id != first[0].id, "another place")


def test_the_end_of_the_server_ends_all_streams(site: Site, store: Events, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (http_feed, http_events):
        monkeypatch.setattr(module, "KEEP_ALIVE", 3600)
    with ExitStack() as stack:
        with serving(site) as served:
            listeners = [stack.enter_context(listening(served)) for _ in range(5)]
            for listener in listeners:
                listener.next()
        assert all(listener.ends() for listener in listeners)


def test_a_listener_that_leaves_is_forgotten_at_once(served: Served) -> None:
    with listening(served) as listener:
        listener.next()
        assert served.server_state.tasks
    until(lambda: not served.server_state.tasks, "the end of the stream")


def test_a_server_started_before_the_first_event_gets_it(served: Served, store: Events) -> None:
    with listening(served) as listener:
        assert listener.next().id == "0"
        add(store, 1)
        assert listener.numbers(1) == [1]


def test_a_log_that_is_removed_meanwhile_is_a_gap_and_then_goes_on(
    site: Site, served: Served, store: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(store, 1)
    with listening(served, "0") as listener:
        assert listener.numbers(1) == [1]
        directory = site.world().layout.events
        (segment,) = eventlog.segments(directory)
        os.unlink(eventlog.segment_path(directory, segment))
        monkeypatch.setattr("mas.store.workspace.eventlog.time.time", lambda: segment + 100)
        add(store, 2)
        assert listener.next().event == "gap"
        assert listener.numbers(1) == [2]


def none_left() -> None:
    raise OSError(24, "too many")


def test_events_come_if_the_kernel_reports_no_changes(
    site: Site, store: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "Inotify", none_left)
    with serving(site) as served, listening(served) as listener:
        listener.next()
        for number in range(3):
            add(store, number)
            assert listener.numbers(1) == [number]
