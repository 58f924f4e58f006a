"""A machine whose process table is full: the server says so, and is itself again as soon as there is room."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import pytest

from tests.e2e.standin import start_receivers
from tests.served import Served
from tests.site import until
from tests.torture.faults import Squeeze, group, table_of

ENOUGH = 24


@pytest.fixture
def table(served: Served) -> Iterator[Squeeze]:
    """A process table for the server alone, to be filled."""
    with ExitStack() as undo:
        found = table_of(served.site, undo.enter_context(group()))
        if found is None:
            pytest.skip("nothing limits the processes of root here: no control group can be made")
        found.take_in(served.pid)
        # What it has started has left before the group can go.
        undo.callback(served.close)
        undo.callback(found.let_go)
        yield found


def test_without_room_for_a_thread_requests_are_refused_and_the_next_ones_are_not(
    served: Served, table: Squeeze
) -> None:
    session = start_receivers(served.site)
    path = f"/sessions/{session}/messages"
    client = served.client()

    def ask(number: int) -> httpx.Response:
        return client.get("/sessions") if number % 2 else client.post(path, json={"target": "00", "message": "hello"})

    table.tighten()
    answers: list[httpx.Response] = []

    def refused() -> list[httpx.Response]:
        # The threads that the server already has may be enough for one round of requests.
        answers.extend(pool.map(ask, range(ENOUGH)))
        return [answer for answer in answers if answer.status_code == 503]

    with ThreadPoolExecutor(ENOUGH) as pool:
        codes = {answer.json()["code"] for answer in until(refused, "a request that is refused")}
    table.let_go()
    assert codes == {"unavailable"}
    assert {answer.status_code for answer in answers} <= {200, 202, 503}
    # What was kept meanwhile is delivered, and what happens is reported, by the same server.
    last = client.post(path, json={"target": "00", "message": "the last"})
    assert last.status_code == 202

    def settled() -> bool:
        kept = client.get(path).json()["messages"]
        return kept[-1]["id"] == last.json()["id"] and all(
            message["deliveries"][0]["state"] == "acknowledged" for message in kept
        )

    until(settled, "every message at the agent")
    assert {info["status"] for info in client.get("/sessions").json()["sessions"]} == {"active"}
