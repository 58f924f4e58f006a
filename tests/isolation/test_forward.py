"""Forwards: a port of the machine that leads to one of a session's network, for its owner and no other."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psutil
import pytest

from tests.isolation.test_network import Team, lives
from tests.ports import free_port
from tests.site import Site, until

_PATIENCE = 60.0
_STRANGER = 4242


class Running:
    """`mas forward` in the foreground."""

    def __init__(self, site: Site, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mas", "forward", *words],
            env=site.env,
            cwd=site.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        assert self.url, self.process.communicate()[1]
        self.local = int(self.url.rstrip("/").rpartition(":")[2])
        self.host = self.url.removeprefix("http://").rstrip("/")
        self.children = psutil.Process(self.process.pid).children(recursive=True)
        assert len(self.children) == 2

    def end(self) -> str:
        """End it as a person does, and see that nothing is left; returns what it said."""
        self.process.send_signal(signal.SIGINT)
        return self.ended()

    def ended(self) -> str:
        said = self.process.communicate(timeout=_PATIENCE)[1]
        until(lambda: not any(map(lives, self.children)), "the end of its processes")
        for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            with socket.socket(family) as one:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                one.bind((address, self.local))
        return str(said)


@contextmanager
def forwarding(site: Site, *words: str) -> Iterator[Running]:
    running = Running(site, *words)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.end()


def ask(running: Running, host: str | None = None, path: str = "/", address: str = "127.0.0.1") -> tuple[int, str]:
    """The status and the body of a request."""
    head = f"GET {path} HTTP/1.1\r\nHost: {host or running.host}\r\nConnection: close\r\n\r\n"
    said = exchange(running, head.encode(), address)
    status, _, rest = said.partition("\r\n")
    return int(status.split()[1]), rest.partition("\r\n\r\n")[2]


def exchange(running: Running, data: bytes, address: str = "127.0.0.1") -> str:
    """All that comes back."""
    said = b""
    with socket.create_connection((address, running.local), _PATIENCE) as one:
        one.sendall(data)
        while more := one.recv(1 << 16):
            said += more
    return said.decode()


def test_a_server_of_an_agent_is_reached_at_a_port_of_the_machine(site: Site) -> None:
    team = Team(site)
    with free_port() as port:
        assert team.ask("23", "serve", port) == "serving"
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", port), 5)
    with forwarding(site, team.id, str(port)) as running:
        assert running.host == f"{port}-{team.id[:8]}.localhost:{running.local}"
        for address in ("127.0.0.1", "::1"):
            status, body = ask(running, path="/a?b", address=address)
            assert (status, json.loads(body)["path"]) == (200, "/a?b")
            assert json.loads(body)["headers"]["Host"] == running.host
        assert ask(running, f"127.0.0.1:{running.local}")[0] == 200
        assert ask(running, "evil.example")[0] == 403
        said = running.end()
    assert f"127.0.0.1:{running.local} leads to port {port}" in said


def test_a_server_that_listens_at_the_newer_kind_of_address_is_reached_too(site: Site) -> None:
    team = Team(site)
    assert team.ask("21", "serve", 5173, "::1") == "serving"
    with forwarding(site, team.id, "5173") as running:
        assert ask(running)[0] == 200


def test_a_sign_in_that_calls_back_to_localhost_reaches_the_program_inside(site: Site) -> None:
    """A browser outside is sent to `http://localhost:PORT/callback` by the one who asked for the sign-in."""
    team = Team(site)
    with free_port() as port:
        assert team.ask("21", "serve", port) == "serving"
        with forwarding(site, team.id, str(port), str(port)) as running:
            assert running.local == port
            asked = f"GET /callback?code=7 HTTP/1.1\r\nHost: localhost:{port}\r\nSec-Fetch-Mode: navigate\r\n"
            said = exchange(running, f"{asked}Connection: close\r\n\r\n".encode())
            assert '"path": "/callback?code=7"' in said


def test_a_protocol_in_which_the_server_speaks_first_works(site: Site) -> None:
    team = Team(site)
    team.ask("21", "greet", 2525)
    with forwarding(site, team.id, "2525") as running:
        with socket.create_connection(("127.0.0.1", running.local), _PATIENCE) as one:
            assert one.recv(6, socket.MSG_WAITALL) == b"hello\n"
            one.sendall(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
            one.shutdown(socket.SHUT_WR)
            # One side has ended, and the other still speaks.
            rest = b""
            while more := one.recv(1 << 16):
                rest += more
        assert rest.endswith(b"\r\n\r\ngoodbye\n")


def test_a_protocol_that_is_not_http_works_even_if_its_first_line_is_never_whole(site: Site) -> None:
    team = Team(site)
    team.ask("21", "listen", 6379)
    with forwarding(site, team.id, "6379") as running:
        for data in (b"PING\r\n", b"\x16\x03\x01", b"half"):
            with socket.create_connection(("127.0.0.1", running.local), _PATIENCE) as one:
                one.sendall(data)
                assert one.recv(len(data), socket.MSG_WAITALL) == data


def test_without_a_listener_it_says_so_and_waits_for_one(site: Site) -> None:
    team = Team(site)
    with forwarding(site, team.id, "3000") as running:
        status, words = ask(running)
        assert status == 502
        assert "no program listens at port 3000 of the session (connection refused)" in words
        # What is not HTTP is closed.
        with pytest.raises(ConnectionError):
            exchange(running, b"\x00\x01")
        team.ask("21", "serve", 3000)
        assert ask(running)[0] == 200
        said = running.end()
    assert f"No program of session {team.id[:8]} listens at port 3000 yet" in said


def test_many_connections_at_once_all_get_through(site: Site) -> None:
    team = Team(site)
    team.ask("21", "listen", 7000)
    with forwarding(site, team.id, "7000") as running, ExitStack() as stack:
        places = [("127.0.0.1", running.local)] * 200
        ones = [stack.enter_context(socket.create_connection(place, _PATIENCE)) for place in places]
        for number, one in enumerate(ones):
            one.sendall(b"\x00%04d" % number)
        for number, one in enumerate(ones):
            assert one.recv(5, socket.MSG_WAITALL) == b"\x00%04d" % number
        # Still one child inside, and no thread: no process for each.
        assert len(psutil.Process(running.process.pid).children(recursive=True)) == 2


def test_a_slow_reader_costs_little_memory_and_holds_up_no_other(site: Site) -> None:
    team = Team(site)
    team.ask("21", "flood", 7000)
    with forwarding(site, team.id, "7000") as running:
        forward = running.children[0]
        at_first = forward.num_fds()
        with ExitStack() as stack:
            ones = [stack.enter_context(socket.create_connection(("127.0.0.1", running.local))) for _ in range(20)]
            for one in ones:
                one.settimeout(_PATIENCE)
                assert one.recv(1)
            # One of them reads: everything that the others do not take waits inside.
            for _ in range(1000):
                assert ones[0].recv(1 << 16)
            assert forward.memory_info().rss < 64 << 20
        until(lambda: forward.num_fds() == at_first, "the end of all connections")


def test_stopping_the_session_ends_its_forward(site: Site) -> None:
    team = Team(site)
    team.ask("21", "listen", 7000)
    with forwarding(site, team.id, "7000") as running:
        with socket.create_connection(("127.0.0.1", running.local), _PATIENCE) as one:
            one.sendall(b"\x00")
            assert one.recv(1) == b"\x00"
            site.mas("stop", team.id)
            # With the session, not at some time after it.
            assert not any(map(lives, running.children))
            assert _rest(one) == b""
        assert "The session has stopped, and so has the forward" in running.ended()
        assert running.process.returncode == 0


def _rest(one: socket.socket) -> bytes:
    try:
        return one.recv(1)
    except ConnectionError:
        return b""


def test_a_forward_ends_with_a_tmux_that_is_killed(site: Site) -> None:
    team = Team(site)
    team.ask("21", "namespace")
    with forwarding(site, team.id, "7000") as running:
        show = site.json("show", team.id)
        site.tmux("kill-session", "-t", f"={show['tmuxSession']}", socket=show["tmuxSocket"])
        running.ended()
    site.mas("stop", team.id, code=None)


def test_a_forward_outlives_an_egress_process_that_is_killed(site: Site) -> None:
    team = Team(site)
    team.ask("21", "serve", 3000)
    with forwarding(site, team.id, "3000") as running:
        old = team.egress()
        for _ in range(2):
            old.kill()
            until(lambda old=old: not lives(old), "its end")  # type: ignore[misc]
            assert ask(running)[0] == 200
            old = team.egress()
        assert running.process.poll() is None
        site.mas("stop", team.id)
        running.ended()


@pytest.mark.parametrize("who", ["command", "forward", "child"])
def test_a_forward_of_which_a_process_is_killed_leaves_nothing(site: Site, who: str) -> None:
    team = Team(site)
    team.ask("21", "serve", 3000)
    with forwarding(site, team.id, "3000") as running:
        victim = {"command": running.process.pid, "forward": running.children[0].pid, "child": running.children[1].pid}
        os.kill(victim[who], signal.SIGKILL)
        running.ended()


def test_a_port_that_leads_to_mas_or_outside_is_refused(site: Site) -> None:
    team = Team(site, policy={"private": ["localhost:5432"]})
    for port in ("7717", "3128", "22", "80", "443", "53", "5432"):
        done = site.mas("forward", team.id, port, code=2)
        assert "is MAS's own" in done.stderr
    # Nor are they listed.
    team.ask("23", "serve", 3000)
    assert site.json("forward", "--list", team.id)["ports"] == [{"port": 3000, "agent": "23"}]


def test_a_port_of_the_machine_that_is_taken_is_refused(site: Site) -> None:
    team = Team(site)
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with socket.create_server((address, 0), family=family) as taken:
            port = str(taken.getsockname()[1])
            done = site.mas("forward", team.id, "3000", port, code=4)
            assert f"Port {port} of this machine cannot be used: Address already in use" in done.stderr


def test_errors_name_the_next_command(site: Site) -> None:
    team = Team(site)
    assert "No port given" in site.mas("forward", team.id, code=2).stderr
    for words in (("0",), ("65536",), ("3000", "99999"), ("3000", "x"), ("x", "3000", "y")):
        assert site.mas("forward", *words, code=None).returncode in (2, 3)
    site.mas("stop", team.id)
    done = site.mas("forward", team.id, "3000", code=4)
    assert f"is not running\nhint:  mas restore {team.id[:8]}" in done.stderr
    assert "is not running" in site.mas("forward", "--list", team.id, code=4).stderr


def test_the_ports_are_listed_with_their_agents(site: Site) -> None:
    team = Team(site)
    assert site.json("forward", "--list")["ports"] == []
    team.ask("21", "serve", 3000)
    team.ask("23", "serve", 8080, "0.0.0.0")
    team.ask("23", "serve", 8080, "::1")
    found = site.json("forward", "--list")
    assert found == {
        "network": "names",
        "ports": [{"port": 3000, "agent": "21"}, {"port": 8080, "agent": "23"}],
        "forwards": [],
    }
    assert site.mas("forward", "--list").stdout.splitlines()[1].split() == ["3000", "21"]


def test_in_a_shared_network_the_port_needs_no_forward(site: Site) -> None:
    team = Team(site, policy={"network": "shared"})
    with free_port() as port:
        assert team.ask("21", "serve", port) == "serving"
    done = site.mas("forward", team.id, str(port))
    assert done.stdout.strip() == f"http://{port}-{team.id[:8]}.localhost:{port}/"
    assert "the port needs no forward" in done.stderr
    # The machine has other listeners, which are not the session's.
    with socket.create_server(("127.0.0.1", 0)):
        assert site.json("forward", "--list", team.id)["ports"] == [{"port": port, "agent": "21"}]


def _as_stranger(local: int, host: str) -> str:
    """What a program of another user gets."""
    code = f"""
import encodings.idna, os, socket  # the rest of Python may be out of reach for that user
os.setgroups([]); os.setgid({_STRANGER}); os.setuid({_STRANGER})
with socket.create_connection(("127.0.0.1", {local}), 60) as one:
    one.sendall(b"GET / HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n")
    print(one.recv(1 << 16).decode().partition("\\r\\n")[0])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=_PATIENCE)
    return done.stdout.strip()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
def test_another_user_of_the_machine_is_refused_unless_all_are_let_in(site: Site) -> None:
    team = Team(site)
    team.ask("21", "serve", 3000)
    with forwarding(site, team.id, "3000") as running:
        assert _as_stranger(running.local, running.host) == "HTTP/1.1 403 Forbidden"
        assert ask(running)[0] == 200
    with forwarding(site, "--any-user", team.id, "3000") as running:
        assert _as_stranger(running.local, running.host) == "HTTP/1.1 200 OK"


def test_two_clients_that_never_say_anything_are_waited_for_without_work(site: Site) -> None:
    """Browsers open connections ahead of time; and one that the other side has left is closed."""
    team = Team(site)
    team.ask("21", "listen", 7000)
    with forwarding(site, team.id, "7000") as running:
        forward = running.children[0]
        at_first = forward.num_fds()
        with socket.create_connection(("127.0.0.1", running.local)), socket.create_connection(("::1", running.local)):
            until(lambda: forward.num_fds() == at_first + 4, "a way inside for each")
            before = forward.cpu_times()
            time.sleep(0.5)
            assert forward.cpu_times().user - before.user < 0.2
        until(lambda: forward.num_fds() == at_first, "both are closed")
