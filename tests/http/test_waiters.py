"""Calls that wait: however many one agent makes, everybody else is answered; beyond its share it is refused."""

from __future__ import annotations

import json
import selectors
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from mas.http.limits import ServerLimits
from mas.model.errors import TooMuch
from mas.model.principal import OWNER, Principal
from mas.service.shares import ShareLimits, Shares
from tests.e2e.standin import start_receivers, state_of
from tests.http.raw import Answer, connect, parsed, rest_of
from tests.served import Served
from tests.site import until

SHARE = ServerLimits().waiters.of_agent
# More than there are threads for requests.
MANY = 80
SESSIONS = tuple(f"{number}f0e0d0c-5b7d-4e8f-9a0b-c1d2e3f4a5b6" for number in range(3))


class Call:
    """A call that perhaps has no answer yet."""

    def __init__(self, served: Served, token: str, line: str, body: dict[str, Any] | None) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        head = [f"{line} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {token}", "Connection: close"]
        head += ["Content-Type: application/json", f"Content-Length: {len(data)}", "", ""]
        self.wire = connect(served)
        self.wire.sendall("\r\n".join(head).encode() + data)

    def answer(self) -> Answer:
        return parsed(rest_of(self.wire))


@contextmanager
def calls(served: Served, token: str, line: str, body: dict[str, Any] | None, number: int) -> Iterator[list[Call]]:
    with ExitStack() as undo:
        made = [Call(served, token, line, body) for _ in range(number)]
        for call in made:
            undo.callback(call.wire.close)
        yield made


def answered(waiting: list[Call]) -> list[Call]:
    """Those that have their answer, or the beginning of it."""
    with selectors.DefaultSelector() as selector:
        for call in waiting:
            selector.register(call.wire, selectors.EVENT_READ, call)
        return [key.data for key, _ in selector.select(0)]


def token_of(served: Served, session: str, agent: str) -> str:
    return served.site.mas("token", "--session", session, "--agent", agent).stdout.strip()


def start_busy(served: Served) -> str:
    """A session of one agent that is at work, and so not ready for a message."""
    session = served.site.start()
    served.client().post(f"/sessions/{session}/messages", json={"target": "00", "message": "sleep 1000", "wait": 30})
    until(lambda: state_of(served.site.local(), session, "00") == "working", "it is at work")
    return session


WAYS = {
    "send": ("POST", "messages", {"target": "00", "message": "hello", "wait": 60}),
    "wait": ("GET", "wait?until=blocked&timeout=60", None),
}


@pytest.mark.parametrize("way", WAYS)
def test_an_agent_that_waits_more_often_than_it_may_is_refused_and_others_are_answered(
    served: Served, way: str
) -> None:
    one, other = start_busy(served), start_receivers(served.site)
    owner = served.client()
    method, path, body = WAYS[way]
    token = token_of(served, one, "00")
    with calls(served, token, f"{method} /sessions/{one}/{path}", body, MANY) as made:
        until(lambda: len(answered(made)) == MANY - SHARE, "all but its share are answered")
        refused = [call.answer() for call in answered(made)]
        assert {answer.status for answer in refused} == {429}
        problem = json.loads(refused[0].body)
        assert problem["code"] == "too-much"
        assert problem["detail"] == f"Too many calls are waiting: {SHARE} of agent 00 of {one}, which is the limit"
        assert problem["hint"]
        assert refused[0].headers["content-type"] == "application/problem+json"
        assert refused[0].headers["retry-after"] == "1"
        # Everybody else is answered, also those who wait.
        assert served.client("").get("/health").json()["status"] == "ok"
        assert owner.get(f"/sessions/{other}").status_code == 200
        theirs = served.client(token_of(served, other, "00"))
        sent = theirs.post(f"/sessions/{other}/messages", json={"target": "person", "message": "hi", "wait": 5})
        assert sent.status_code == 202
        assert owner.get(f"/sessions/{one}/wait?until=idle&timeout=0.1").status_code == 200


def test_a_place_is_free_again_when_its_call_has_ended(served: Served) -> None:
    session = start_receivers(served.site)
    token = token_of(served, session, "00")
    line = f"GET /sessions/{session}/wait?until=blocked&timeout=0.2"
    with calls(served, token, line, None, SHARE) as made:
        until(lambda: len(answered(made)) == SHARE, "all are answered")
        assert {call.answer().status for call in made} == {200}
    assert served.client(token).get(line.removeprefix("GET ")).status_code == 200


def test_the_shares_are_of_an_agent_a_session_all_agents_and_everybody() -> None:
    waiters = Shares(ShareLimits(of_agent=2, of_session=3, of_agents=4, of_all=5), "calls are waiting", "wait")

    def refusal(caller: Principal) -> str:
        with pytest.raises(TooMuch) as caught, waiters.place(caller):
            pass
        return caught.value.message

    one, two = Principal(SESSIONS[0], "00"), Principal(SESSIONS[0], "21")
    with ExitStack() as first:
        for _ in range(2):
            first.enter_context(waiters.place(one))
        assert refusal(one) == f"Too many calls are waiting: 2 of agent 00 of {SESSIONS[0]}, which is the limit"
        first.enter_context(waiters.place(two))
        assert refusal(two) == f"Too many calls are waiting: 3 of agents of session {SESSIONS[0]}, which is the limit"
        first.enter_context(waiters.place(Principal(SESSIONS[1], "00")))
        assert refusal(Principal(SESSIONS[2], "00")) == "Too many calls are waiting: 4 of agents, which is the limit"
        first.enter_context(waiters.place(OWNER))
        assert refusal(OWNER) == "Too many calls are waiting: 5 of all callers, which is the limit"
    with ExitStack() as again:
        for _ in range(2):
            again.enter_context(waiters.place(one))
