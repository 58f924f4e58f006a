"""Shares of connections, streams and threads: whatever agents and strangers hold, the owner gets in."""

from __future__ import annotations

import json
import resource
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from os import stat as stat_of

import anyio
import pytest

from mas.http.crowd import Crowd
from mas.http.limits import ServerLimits
from mas.http.peer import Arrival, Entrance
from mas.http.threads import CallerThreads
from mas.model.errors import TooMuch
from mas.model.principal import NOBODY, OWNER, Principal
from tests.http.raw import connect, parsed, read_answer
from tests.http.test_limits import impatient
from tests.served import Served
from tests.site import Site, fresh_workspace, until

LIMITS = ServerLimits()
# More than there may be connections in all.
MANY = 1100
SESSIONS = tuple(f"{number}f0e0d0c-5b7d-4e8f-9a0b-c1d2e3f4a5b6" for number in range(3))


@pytest.fixture(scope="module", autouse=True)
def descriptors() -> Iterator[None]:
    """As many files as these tests need, in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2 * MANY:
        pytest.skip(f"this system allows {hard} files at most")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * MANY), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(scope="module")
def crowded() -> Iterator[Served]:
    """A server with a session of two agents, for being crowded."""
    with fresh_workspace("--provider", "shell") as site, closing(Served(site)) as made:
        yield made


@pytest.fixture(scope="module")
def tokens(crowded: Served) -> tuple[str, str, str]:
    """A session, and the tokens of its agents 00 and of an agent of another session."""
    one, other = crowded.site.start(), crowded.site.start()
    return one, *(
        crowded.site.mas("token", "--session", session, "--agent", "00").stdout.strip() for session in (one, other)
    )  # type: ignore[return-value] # one and two are three


def held(served: Served, stack: ExitStack, head: str, number: int) -> list[socket.socket]:
    """Connections on which the same was asked, and that stay open; those that the server closes at once, too."""
    made = []
    for _ in range(number):
        wire = stack.enter_context(connect(served))
        wire.sendall(f"{head}\r\nHost: 127.0.0.1\r\n\r\n".encode())
        made.append(wire)
    return made


def owner_gets_in(served: Served) -> None:
    """By the address and by the file, for a call, an event stream, and the page."""
    with closing(served.client()) as owner, closing(served.on_socket()) as near:
        for client in (owner, near):
            assert client.get("/sessions").status_code == 200
        with owner.stream("GET", "/events") as events:
            assert next(events.iter_lines()).startswith("retry")
        assert owner.get("/nowhere").status_code == 404


class TestConnections:
    """Connections by whose they are."""

    @pytest.mark.parametrize("head", ["GET /health HTTP/1.1", "GET /sessions HTTP/1.1\r\nAuthorization: Bearer x"])
    def test_the_owner_gets_in_while_strangers_hold_more_than_there_may_be(self, crowded: Served, head: str) -> None:
        with ExitStack() as stack:
            held(crowded, stack, head, MANY)
            owner_gets_in(crowded)

    def test_the_owner_and_other_agents_get_in_while_an_agent_holds_more_than_there_may_be(
        self, crowded: Served, tokens: tuple[str, str, str]
    ) -> None:
        session, greedy, other = tokens
        head = f"GET /sessions/{session}/messages HTTP/1.1\r\nAuthorization: Bearer {greedy}"
        with ExitStack() as stack:
            made = held(crowded, stack, head, MANY)
            statuses = [read_answer(wire).status for wire in made[:40]]
            assert set(statuses) == {200, 429}
            assert statuses.count(200) == LIMITS.connection_shares.of_agent
            refused = json.loads(read_answer(made[-1]).body)
            assert refused["detail"].startswith("Too many connections are open: 32 of agent 00 of ")
            owner_gets_in(crowded)
            own = other.split(".")[1]
            assert crowded.client(other).get(f"/sessions/{own}/messages").status_code == 200

    def test_the_oldest_unknown_connection_makes_room_for_the_newest(self, site: Site) -> None:
        with closing(impatient(site, connections=40)) as served, ExitStack() as stack:
            first, *_, last = (stack.enter_context(connect(served)) for _ in range(6))
            assert first.recv(1) == b""
            last.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert read_answer(last).status == 200

    def test_an_agent_that_closed_some_may_open_others(self, crowded: Served, tokens: tuple[str, str, str]) -> None:
        session, greedy, _ = tokens
        head = f"GET /sessions/{session}/messages HTTP/1.1\r\nAuthorization: Bearer {greedy}"
        for _ in range(2):

            def all_got_in() -> bool:
                with ExitStack() as stack:
                    made = held(crowded, stack, head, LIMITS.connection_shares.of_agent)
                    return {read_answer(wire).status for wire in made} == {200}

            until(all_got_in, "as many as its share")


class Guest:
    """A connection that knows whether it was closed."""

    def __init__(self) -> None:
        self.is_out = False

    def turn_out(self) -> None:
        self.is_out = True


class TestCrowd:
    """Which connection makes room for which."""

    def test_each_process_at_the_agents_file_has_its_own_share_of_unknown_ones(self) -> None:
        crowd = Crowd(ServerLimits(connections=16))
        one, other, more = (Arrival(Entrance.AGENTS, process=process) for process in (1, 2, 1))
        guests = [Guest() for _ in range(4)]
        assert all(map(crowd.enter, guests, (one, one, other, more), (False,) * 4))
        assert [guest.is_out for guest in guests] == [True, False, False, False]

    def test_what_is_known_makes_room_for_nobody(self) -> None:
        crowd = Crowd(ServerLimits(connections=8))
        owner, stranger = Guest(), Guest()
        crowd.enter(owner, Arrival(), False)
        crowd.recognise(owner, OWNER)
        assert not crowd.enter(stranger, Arrival(), True)
        assert crowd.enter(stranger, Arrival(), False)
        crowd.recognise(stranger, NOBODY)
        newest = Guest()
        assert crowd.enter(newest, Arrival(), True)
        assert (owner.is_out, stranger.is_out, newest.is_out) == (False, True, False)

    def test_a_connection_counts_once_and_for_the_best_that_was_seen_on_it(self) -> None:
        crowd = Crowd(ServerLimits(connections=32))
        agent = Principal(SESSIONS[0], "00")
        guests = [Guest() for _ in range(2)]
        for guest in guests:
            crowd.enter(guest, Arrival(), False)
        for principal in (agent, agent):
            crowd.recognise(guests[0], principal)
        with pytest.raises(TooMuch):
            crowd.recognise(guests[1], agent)
        crowd.recognise(guests[0], OWNER)
        crowd.recognise(guests[1], agent)
        for guest in (*guests, *guests):
            crowd.leave(guest)
        assert (crowd._unknown, crowd._ways, crowd._owners) == ({}, {}, {})
        # What has left is not counted any more, whatever is still asked on it.
        crowd.recognise(guests[0], agent)
        assert not crowd._owners


class TestStreams:
    """What stays open for long."""

    def test_an_agent_has_its_share_and_the_owner_his(self, crowded: Served, tokens: tuple[str, str, str]) -> None:
        _, greedy, _ = tokens
        head = f"GET /mcp HTTP/1.1\r\nAccept: text/event-stream\r\nAuthorization: Bearer {greedy}"
        share = LIMITS.streams.of_agent
        with ExitStack() as stack:

            def has_its_share() -> bool:
                with ExitStack() as tried:
                    wires = held(crowded, tried, head, share)
                    if any(parsed(wire.recv(1 << 16)).status != 200 for wire in wires):
                        return False
                    stack.push(tried.pop_all())
                    return True

            # The server may not have seen yet that those of another test were closed.
            until(has_its_share, "as many as its share")
            (refused,) = held(crowded, stack, head, 1)
            answer = read_answer(refused)
            assert answer.status == 429
            assert json.loads(answer.body)["detail"].startswith(f"Too many streams are open: {share} of agent 00 of ")
            owner_gets_in(crowded)

        def is_free_again() -> bool:
            with ExitStack() as stack:
                (wire,) = held(crowded, stack, head, 1)
                return parsed(wire.recv(1 << 16)).status == 200

        until(is_free_again, "a place is free once a stream is closed")


def test_work_of_one_session_keeps_neither_the_owner_nor_other_sessions_waiting() -> None:
    """More of it than there are threads for all requests."""
    greedy, modest = Principal(SESSIONS[0], "00"), Principal(SESSIONS[1], "00")
    go_on = threading.Event()
    running = []

    def slow() -> None:
        running.append(1)
        assert go_on.wait(60)

    async def play() -> None:
        threads = CallerThreads(of_session=2, of_agents=4)
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for _ in range(100):
                    tasks.start_soon(threads.run, greedy, slow)
                while len(running) < 2:
                    await anyio.sleep(0.001)
                assert await threads.run(OWNER, lambda: "owner") == "owner"
                assert await threads.run(modest, lambda: "modest") == "modest"
                assert len(running) == 2
                go_on.set()
        assert len(running) == 100
        assert not threads._turns

    anyio.run(play)


class TestHeads:
    """Heads that come whole, and are too large."""

    @pytest.mark.parametrize(
        "more",
        [["X: " + "a" * 70_000], ["X: a"] * 10_000, ["X: a"] * LIMITS.head_lines, [f"X{n}: b" for n in range(400)]],
    )
    @pytest.mark.parametrize("name", ["address", "api.sock"])
    def test_one_is_refused_with_words(self, crowded: Served, more: list[str], name: str) -> None:
        head = "\r\n".join(["GET /health HTTP/1.1", "Host: 127.0.0.1", *more, "", ""]).encode()
        with connect(crowded) if name == "address" else closing(socket.socket(socket.AF_UNIX)) as wire:
            if name != "address":
                wire.connect(crowded.socket)
            wire.sendall(head)
            answer = read_answer(wire)
        assert answer.status == 431
        problem = json.loads(answer.body)
        assert problem["code"] == "head-too-large"
        assert problem["detail"] == "The head of a request may have at most 65536 bytes and 128 header lines"

    def test_an_address_can_be_too_long_as_well(self, crowded: Served) -> None:
        with connect(crowded) as wire:
            wire.sendall(f"GET /health?{'a' * 70_000} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            assert read_answer(wire).status == 431

    def test_the_most_lines_there_may_be_are_taken(self, crowded: Served) -> None:
        lines = [f"X-{number}: a" for number in range(LIMITS.head_lines - 1)]
        with connect(crowded) as wire:
            wire.sendall("\r\n".join(["GET /health HTTP/1.1", "Host: 127.0.0.1", *lines, "", ""]).encode())
            assert read_answer(wire).status == 200


def test_other_users_do_not_see_the_names_of_the_workspaces_logs(crowded: Served) -> None:
    assert stat.S_IMODE(stat_of(crowded.site.path("logs")).st_mode) == 0o700
