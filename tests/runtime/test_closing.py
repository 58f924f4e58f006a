"""A team is closed while control clients are attached: tmux, and all else that is on it, stay."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator
from contextlib import closing
from itertools import cycle, islice

import pytest

from mas.runtime import changing
from mas.runtime.control import Connections
from mas.runtime.runtime import Place
from mas.runtime.tmux import Tmux
from mas.settings import ServerMode
from tests.runtime.ground import NAME, Ground, teams_seen
from tests.site import Site, until

ROUNDS = 20
OTHER, MINE, VIEW = "mas-00000000", "mine", "a-view"
# Of one, two and four windows.
TEAMS = ({"meta": "00 01"}, {"meta": "00", "design": "10 11"}, {"a": "00", "b": "10 11", "c": "20", "d": "30 31"})


@pytest.fixture
def connections() -> Iterator[Connections]:
    with closing(Connections()) as made:
        yield made


@pytest.fixture
def shared(bare: Site, connections: Connections) -> Ground:
    """The user's tmux server, with a tmux session of a person's."""
    ground = Ground(bare, ServerMode.DEFAULT, connections)
    os.makedirs(os.path.dirname(bare.user_socket), 0o700)
    bare.tmux("new-session", "-d", "-s", MINE, "cat")
    return ground


@pytest.fixture
def persons_client(shared: Ground) -> Iterator[None]:
    """A control client of the person's, as some terminals are."""
    argv = ["tmux", "-S", shared.site.user_socket, "-C", "attach-session", "-t", MINE]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=shared.site.env
    ) as client:
        yield
        client.communicate(timeout=60)


def control_clients(ground: Ground) -> int:
    return ground.site.tmux("list-clients", "-F", "#{client_control_mode}").splitlines().count("1")


def connect(ground: Ground, place: Place, connections: Connections) -> None:
    """Have a kept connection attached to the server."""
    server = Tmux(place.socket, False, ground.site.env, connections)
    until(lambda: connections.ask(server, [["list-sessions"]], 60.0), "a connection")


@pytest.mark.usefixtures("persons_client")
def test_other_teams_a_persons_sessions_and_views_stay(shared: Ground, connections: Connections) -> None:
    other, _ = shared.open(shared.plan(TEAMS[1], OTHER))
    shared.site.tmux("new-session", "-d", "-t", OTHER, "-s", VIEW)
    connect(shared, other, connections)
    until(lambda: control_clients(shared) == 2, "the person's client and ours")
    pid = Tmux(other.socket, False, shared.site.env).pid()
    for number, units in enumerate(islice(cycle(TEAMS), ROUNDS)):
        place, _ = shared.open(shared.plan(units))
        if number % 2:
            # A view of the team itself has another current window, and goes with the team.
            shared.site.tmux("new-session", "-d", "-t", NAME, "-s", "its-view", ";", "next-window", "-t", "its-view")
        shared.runtime.close(place)
        assert teams_seen(place.socket) == {OTHER, MINE, VIEW}
        assert control_clients(shared) == 2
    assert Tmux(other.socket, False, shared.site.env).pid() == pid
    assert shared.runtime.alive([other]) == {other: True}


def test_no_connection_begins_while_a_team_comes_or_goes(shared: Ground, connections: Connections) -> None:
    place, _ = shared.solo()
    server = Tmux(place.socket, False, shared.site.env, connections)
    with changing.changing(place.socket):
        assert connections.ask(server, [["list-sessions"]], 60.0) is None
        assert control_clients(shared) == 0
        # Asked another way, everybody gets what they ask for.
        assert NAME in server.run(["list-sessions"])
    connect(shared, place, connections)
    assert control_clients(shared) == 1


def test_a_team_is_closed_beside_a_process_that_keeps_its_turn_for_ever(
    shared: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, _ = shared.solo()
    monkeypatch.setattr(changing, "_PATIENCE", 0.05)
    lock = os.open(os.path.dirname(place.socket), os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shared.runtime.close(place)
    finally:
        os.close(lock)
    assert teams_seen(place.socket) == {MINE}
