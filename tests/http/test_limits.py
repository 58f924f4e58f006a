"""Limits: one caller that takes too much, or too long, does not take it from the others."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import httpx
import psutil
import pytest
from websockets.sync.client import connect as connect_websocket

from mas.http.guard.admission import Rates
from mas.http.limits import ServerLimits
from tests.http.raw import ask, connect, parsed, read_answer, request, rest_of
from tests.served import Served
from tests.site import REPOSITORY, Site, fresh_workspace, until

# Both end kept connections soon: some tests count what is open.
SMALL: dict[str, Any] = {"body_size": 200_000, "idle_time": 5}
# Not shorter: a busy machine may halt a test for a while between two of its calls.
SHORT: dict[str, Any] = {"head_time": 1.0, "body_time": 1.5, "unread_time": 1.5, "idle_time": 1}
OTHER = "0b5fb5a5-5b2c-4a5e-9d3c-0123456789ab"


def impatient(site: Site, **limits: Any) -> Served:
    """A server with other limits than usual."""
    return Served(site, json.dumps(limits), program=(os.path.join(REPOSITORY, "tests", "http", "impatient.py"),))


@pytest.fixture(scope="module")
def small() -> Iterator[Served]:
    """A server that takes little at a time, and waits for it as usual."""
    with fresh_workspace("--provider", "shell") as site, closing(impatient(site, **SMALL)) as made:
        yield made


@pytest.fixture(scope="module")
def hasty() -> Iterator[Served]:
    """A server that waits for next to nothing."""
    with fresh_workspace("--provider", "shell") as site, closing(impatient(site, **SHORT)) as made:
        yield made


class TestBodies:
    """A body can be large or slow, and can say that it is not."""

    def test_one_that_says_it_is_too_large_is_refused_unread(self, small: Served) -> None:
        answer = ask(small, request(small, "POST /runs", "Content-Length: 200001", "Expect: 100-continue"))
        assert answer.status == 413
        assert json.loads(answer.body)["code"] == "too-large"
        answer = ask(small, request(small, "POST /runs", "Content-Length: 200001") + b"{")
        assert answer.status == 413
        assert ask(small, request(small, "POST /runs", f"Content-Length: {1 << 62}")).status == 413

    def test_one_that_turns_out_too_large_is_refused_as_soon_as_it_does(self, small: Served) -> None:
        with connect(small) as wire:
            wire.sendall(request(small, "POST /runs", "Transfer-Encoding: chunked"))
            chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
            for _ in range(4):
                wire.sendall(chunk)
            # No end of it: the answer comes all the same.
            assert parsed(rest_of(wire)).status == 413

    def test_one_of_the_largest_size_is_taken(self, small: Served) -> None:
        body = json.dumps({"team": "nobody"}).encode()
        for padded, status in ((200_000, 422), (200_001, 413)):
            answer = small.client().post("/runs", content=body.ljust(padded))
            assert answer.status_code == status

            def chunks(whole: bytes = body.ljust(padded)) -> Iterator[bytes]:
                for start in range(0, len(whole), 1000):
                    yield whole[start : start + 1000]

            answer = small.client().post("/runs", content=chunks())
            assert answer.status_code == status

    def test_one_that_is_shorter_than_it_says_is_given_up(self, hasty: Served) -> None:
        answer = ask(hasty, request(hasty, "POST /runs", "Content-Length: 100") + b'{"team":"pair"}')
        assert answer.status == 408
        assert json.loads(answer.body)["code"] == "too-slow"
        assert hasty.client().get("/sessions").json()["total"] == 0

    def test_one_that_is_longer_than_it_says_is_another_request(self, small: Served) -> None:
        head = request(small, "POST /runs", "Content-Length: 2").replace(b"Connection: close\r\n", b"")
        with connect(small) as wire:
            wire.sendall(head + b"[]" + request(small, "GET /nowhere", token=False))
            received = rest_of(wire)
        assert [part[:3] for part in received.split(b"HTTP/1.1 ")[1:]] == [b"422", b"401"]

    @pytest.mark.parametrize("how", ["Content-Length: 1000", "Transfer-Encoding: chunked"])
    def test_one_that_comes_byte_by_byte_has_a_deadline(self, hasty: Served, how: str) -> None:
        with connect(hasty) as wire:
            wire.sendall(request(hasty, "POST /runs", how))
            assert parsed(_dripped(wire, b"1\r\n \r\n" if "chunked" in how else b" ")).status == 408

    def test_an_unwanted_body_has_a_deadline_too(self, hasty: Served) -> None:
        """Even where the answer needs no body, and no token."""
        head = b"POST /health HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n"
        with connect(hasty) as wire:
            wire.sendall(head)
            assert read_answer(wire).status == 405
            assert _dripped(wire, b" ") == b""

    def test_what_follows_one_is_not_kept(self, shared: Served) -> None:
        memory = psutil.Process(shared.pid).memory_info
        before = memory().rss
        for trailer in (b"a: b\r\n" * 5000, b"a" * 30_000):
            with connect(shared) as wire:
                wire.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")
                _flood(wire, trailer)
        assert memory().rss - before < 20 << 20


class TestHeads:
    """A request's first lines can be long or slow."""

    @pytest.mark.parametrize("begun", [b"", b"\r\n", b"GET /", b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "])
    def test_one_that_never_ends_is_given_up(self, hasty: Served, begun: bytes) -> None:
        with connect(hasty) as wire:
            wire.sendall(begun)
            assert _dripped(wire, b"a" if begun.strip() else b"\r\n") == b""

    def test_the_next_one_on_a_connection_is_no_exception(self, hasty: Served) -> None:
        for begun in (b"\r\n", b"GET /hea"):
            with connect(hasty) as wire:
                wire.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                read_answer(wire)
                wire.sendall(begun)
                assert rest_of(wire) == b""

    @pytest.mark.parametrize("endless", [b"X: a\r\n" * 1000, b"a" * 10_000, b"\r\n" * 5000])
    def test_one_that_grows_too_long_is_cut_off(self, shared: Served, endless: bytes) -> None:
        memory = psutil.Process(shared.pid).memory_info
        before = memory().rss
        with connect(shared) as wire:
            wire.sendall(b"" if endless.isspace() else b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a\r\n")
            _flood(wire, endless)
        assert memory().rss - before < 20 << 20

    def test_one_of_a_reasonable_length_is_taken(self, small: Served) -> None:
        assert ask(small, request(small, "GET /health", f"X: {'a' * 50_000}")).status == 200
        assert ask(small, request(small, f"GET /health?{'a' * 50_000}")).status == 200


def test_a_connection_that_nothing_comes_from_is_closed(hasty: Served) -> None:
    with connect(hasty) as wire:
        assert rest_of(wire) == b""


def test_a_response_that_is_not_read_is_given_up(hasty: Served) -> None:
    """Asked for more than fits between the two ends, and never listened to."""
    session = hasty.site.start()
    with open(hasty.site.session(session, "unit", "00", "large"), "wb") as file:
        file.truncate(4 << 20)
    line = f"GET /sessions/{session}/file?path=unit/00/large&most={4 << 20}"
    asked = request(hasty, line).replace(b"Connection: close\r\n", b"")
    with socket.socket() as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.connect(("127.0.0.1", int(hasty.url.rpartition(":")[2])))
        wire.sendall(asked * 5)
        # It has been taken: it responds.
        assert wire.recv(1, socket.MSG_PEEK)
        own = wire.getsockname()
        until(lambda: own not in _clients(hasty), "the connection is closed")
    hasty.client().post(f"/sessions/{session}/stop")


def test_a_client_that_asks_far_ahead_of_the_responses_is_cut_off(hasty: Served) -> None:
    memory = psutil.Process(hasty.pid).memory_info
    before = memory().rss
    asked = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 1000
    with connect(hasty) as wire:
        _flood(wire, asked)
    assert memory().rss - before < 20 << 20


def test_a_long_answer_to_a_slow_reader_is_no_reason_to_hang_up(hasty: Served) -> None:
    """Streams are quiet for longer than a head may take."""
    with hasty.client().stream("GET", "/events") as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith("retry")
        time.sleep(3 * SHORT["head_time"])
        site = hasty.site
        site.world().events.add("warning", text="still there")
        until(lambda: "still there" in next(lines), "the event comes")


def test_a_websocket_may_be_quiet_for_longer_than_a_head_may_take(hasty: Served) -> None:
    proof = {"Authorization": f"Bearer {hasty.token}"}
    url = hasty.url.replace("http", "ws")
    with connect_websocket(f"{url}/terminals", additional_headers=proof, proxy=None) as terminals:
        time.sleep(3 * SHORT["head_time"])
        terminals.send('{"type": "unsubscribe", "channel": 1}')
        assert "channel" in str(terminals.recv(timeout=90))


class TestRates:
    """Requests of one caller in a while."""

    def test_a_caller_that_asks_too_often_waits_and_others_do_not(self, site: Site) -> None:
        served = impatient(site, rate=0.001, burst=50)
        try:
            access = site.mas("token", "--agent", "00", "--session", "x", code=None)
            assert access.returncode != 0
            greedy = served.client()
            statuses = [greedy.get("/nowhere").status_code for _ in range(60)]
            assert statuses == [404] * 50 + [429] * 10
            answer = greedy.get("/sessions")
            assert answer.json()["code"] == "too-much"
            assert answer.headers["retry-after"] == "1"
            # The same person in another way, an agent, a stranger: all have their own.
            assert served.on_socket().get("/nowhere").status_code == 404
            agent = served.client(_agent_token(site))
            assert agent.get(f"/sessions/{OTHER}/messages").status_code == 404
            assert served.client("").get("/health").status_code == 200
        finally:
            served.close()

    def test_a_client_that_guesses_tokens_waits_and_one_with_a_token_does_not(self, site: Site) -> None:
        served = impatient(site, failed_rate=0.001, failed_burst=5)
        try:
            guesser = served.client("guess")
            assert [guesser.get("/sessions").status_code for _ in range(8)] == [401] * 5 + [429] * 3
            assert served.client().get("/nowhere").status_code == 404
            assert served.client("").get("/health").status_code == 200
        finally:
            served.close()

    def test_a_bucket_fills_again_and_never_overflows(self) -> None:
        rates = Rates(rate=2.0, burst=3.0)
        assert [rates.allow("a", 0.0) for _ in range(4)] == [True, True, True, False]
        assert rates.allow("b", 0.0)
        assert [rates.allow("a", 0.5), rates.allow("a", 0.5)] == [True, False]
        assert [rates.allow("a", 1000.0) for _ in range(4)] == [True, True, True, False]

    def test_any_number_of_callers_takes_little_room(self) -> None:
        rates = Rates(rate=1.0, burst=1.0)
        for number in range(10_000):
            assert rates.allow(str(number), 0.0)
        assert len(rates._left) <= 4096


class TestConnections:
    """How many there may be at once."""

    def test_hundreds_that_do_nothing_do_not_keep_others_out(self, shared: Served) -> None:
        with ExitStack() as idle:
            for number in range(200):
                wire = idle.enter_context(connect(shared))
                if number % 2:
                    wire.sendall(b"GET /health HTTP/1.1\r\n")
            assert shared.client().get("/sessions").status_code == 200
            assert shared.on_socket().get("/sessions").status_code == 200

    def test_those_beyond_the_limit_are_closed_and_the_owner_still_comes_in(self, site: Site) -> None:
        served = impatient(site, connections=40)
        try:
            with ExitStack() as idle:
                for _ in range(20):
                    idle.enter_context(connect(served))
                until(lambda: len(_clients(served)) == 5, "the last few of them are left")
                for owner in (served.client(), served.on_socket()):
                    assert owner.get("/sessions").status_code == 200
                    owner.close()
            until(lambda: len(_clients(served)) == 0, "all are gone")
            assert served.client().get("/sessions").status_code == 200
        finally:
            served.close()

    def test_many_requests_at_once_all_get_a_response(self, shared: Served) -> None:
        statuses: list[int] = []

        def ask_some() -> None:
            with httpx.Client(base_url=shared.url, trust_env=False, timeout=60) as client:
                client.headers["Authorization"] = f"Bearer {shared.token}"
                statuses.extend(client.get("/nowhere").status_code for _ in range(10))

        threads = [threading.Thread(target=ask_some) for _ in range(30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert statuses == [404] * 300


@pytest.mark.parametrize(("limits", "is_used"), [({"idle_time": 1}, True), ({"head_time": 1.0}, False)])
def test_a_request_that_came_while_the_server_stood_still_is_carried_out(
    site: Site, limits: dict[str, Any], is_used: bool
) -> None:
    """For longer than it waits for one: when it goes on, the time is over before it has read anything."""
    with closing(impatient(site, **limits)) as served:
        asked = request(served, "POST /login-codes", "Content-Length: 0").replace(b"Connection: close\r\n", b"")

        def status() -> int | None:
            began = time.monotonic()
            with connect(served) as wire:
                if is_used:
                    wire.sendall(asked)
                    read_answer(wire)
                # What came before is behind it then: it waits for the next request.
                ask(served, request(served, "GET /health"))
                os.kill(served.pid, signal.SIGSTOP)
                try:
                    until(lambda: psutil.Process(served.pid).status() == psutil.STATUS_STOPPED, "it stands still")
                    wire.sendall(asked)
                    if time.monotonic() - began > 1:
                        # The time may have been over before that.
                        return None
                    time.sleep(1.1)
                finally:
                    os.kill(served.pid, signal.SIGCONT)
                return read_answer(wire).status

        # Whether the time or the request is looked at first is chance.
        assert [until(status, "a standstill in time") for _ in range(3)] == [201] * 3


def test_a_server_has_files_for_as_many_connections_as_it_takes(site: Site) -> None:
    """Where a shell allows a few hundred, as usual, and the system more."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard <= 2 * ServerLimits().connections:
        pytest.skip(f"this system allows {hard} files at most")
    info = json.loads(
        site.run(
            ["sh", "-c", 'ulimit -S -n 128; exec "$0" -m mas serve --detach --port 0 --json', sys.executable]
        ).stdout
    )
    try:
        with ExitStack() as idle:
            for _ in range(200):
                idle.enter_context(socket.create_connection(("127.0.0.1", int(info["url"].rpartition(":")[2]))))
            answer = httpx.get(f"{info['url']}/health", timeout=90, trust_env=False)
            assert answer.status_code == 200
    finally:
        site.mas("serve", "--stop")


def test_the_usual_limits_are_for_use() -> None:
    limits = ServerLimits()
    assert limits.body_size >= 6 << 20
    assert limits.head_time <= 10 <= limits.body_time
    # The longest for which a usual client or proxy keeps one that it does not use.
    assert limits.idle_time > 120


def _dripped(wire: socket.socket, drop: bytes) -> bytes:
    """What a server sends to a client that sends a little at a time, without end, until it closes."""
    received = b""
    wire.settimeout(0.05)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            block = wire.recv(1 << 16)
        except TimeoutError:
            try:
                wire.send(drop)
            except OSError:
                return received
            continue
        except ConnectionResetError:
            return received
        if not block:
            return received
        received += block
    raise AssertionError("the server waits for ever")


def _flood(wire: socket.socket, data: bytes) -> None:
    """Send the same again and again, until the other end has had enough."""
    for _ in range(5000):
        try:
            wire.sendall(data)
        except (ConnectionResetError, BrokenPipeError):
            return
    raise AssertionError("the server takes anything")


def _clients(served: Served) -> list[Any]:
    """Where the other ends of its connections are."""
    found = psutil.Process(served.pid).net_connections("tcp")
    return [connection.raddr for connection in found if connection.status == psutil.CONN_ESTABLISHED]


def _agent_token(site: Site) -> str:
    from mas.service.access import Access
    from mas.store.layout import Layout
    from mas.store.server.secrets import Secrets

    return Access(Secrets(Layout(site.root))).agent_token(OTHER, "00")
