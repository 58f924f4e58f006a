"""The courier where threads are short: what nobody could be sent for is seen to by whoever looks next."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from mas.model.event import Event
from mas.service import courier
from mas.service.courier import Courier
from tests.site import Site
from tests.store.samples import NOW, new_id


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads that take turns as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def test_many_may_look_at_once_for_what_no_thread_could_be_had_for(
    bare: Site, restless: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(courier, "started", lambda thread: False)
    ours = Courier(bare.world())
    with ThreadPoolExecutor(8) as pool:
        for _ in range(60):
            for _ in range(200):
                ours.hear(Event("1", NOW, "message", new_id(), None, {"state": "queued"}))
            for looking in [pool.submit(ours.look_again) for _ in range(8)]:
                looking.result()
