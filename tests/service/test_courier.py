"""The courier: it knows what is under way, and what no thread could be started for is delivered at the next look."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

import pytest

from mas.model.event import Event as Happening
from mas.service.messages import courier
from mas.service.messages.courier import Courier
from mas.service.messages.deliver import Waiting
from tests.site import Site
from tests.store.samples import NOW, new_id


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads that take turns as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def test_a_delivery_that_begins_as_another_ends_is_known_until_it_is_over(
    bare: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second begins just when the first has let go of the agent, and before its thread has ended."""
    ours, session = Courier(bare.world()), new_id()
    let_go, typing, over = Event(), Event(), Event()
    is_done = ours._is_done

    def lingering(key: tuple[str, str], waiting: Waiting | None) -> bool:
        done = is_done(key, waiting)
        if not let_go.is_set():
            let_go.set()
            assert typing.wait(60)
        return done

    def deliver(*_: object) -> None:
        if let_go.is_set():
            typing.set()
            assert over.wait(60)

    monkeypatch.setattr(courier, "deliver", deliver)
    monkeypatch.setattr(ours, "_is_done", lingering)
    ours.start(session, ["00"])
    (first,) = (thread for thread in ours._running.values() if thread)
    assert let_go.wait(60)
    ours.start(session, ["00"])
    first.join(60)
    assert typing.is_set()
    assert not first.is_alive()
    assert ours.is_under_way(session, "00")
    closing = Thread(target=ours.close)
    closing.start()
    closing.join(0.05)
    assert closing.is_alive(), "nobody is cut off while typing"
    over.set()
    closing.join(60)
    assert not ours.is_under_way(session, "00")


def test_a_delivery_that_fails_is_under_way_no_more(bare: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(courier, "deliver", fail)
    ours, session = Courier(bare.world(), here=True), new_id()
    with pytest.raises(ZeroDivisionError):
        ours.start(session, ["00"])
    assert not ours.is_under_way(session, "00")


def test_many_may_look_at_once_for_what_no_thread_could_be_had_for(
    bare: Site, restless: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courier, "started", lambda thread: False)
    ours = Courier(bare.world())
    with ThreadPoolExecutor(8) as pool:
        for _ in range(60):
            for _ in range(200):
                ours.hear(Happening("1", NOW, "message", new_id(), None, {"state": "queued"}))
            for looking in [pool.submit(ours.look_again) for _ in range(8)]:
                looking.result()
