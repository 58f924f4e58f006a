"""The socket files: who is at the other end counts, whatever token is shown."""

from __future__ import annotations

import errno
import os
import select
import socket
import stat
import subprocess
import sys

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import unix_connect

from mas.http import peer
from mas.http.peer import Arrival, Entrance, arrived, is_beside_by_number
from tests.http.raw import Answer, parsed
from tests.http.stranger import NOT_HERE
from tests.page_key import page_of
from tests.served import Served
from tests.site import REPOSITORY, short_directory, until

STRANGER = os.path.join(REPOSITORY, "tests", "http", "stranger.py")
BESIDE = "beside"
# Of these the kernel shows an ordinary user nothing; root sees through it.
HIDDEN = "hidden"
ELSEWHERE = ("mount", "pid", "mount and pid", "mount and hidden")
# It connected, handed its connection to another process, and exited.
GONE = "gone"


def asked(kind: str, path: str, token: str) -> Answer:
    """What the server says to a process of that kind."""
    done = subprocess.run([sys.executable, STRANGER, kind, path, token], capture_output=True, timeout=60)
    if done.returncode == NOT_HERE:
        pytest.skip("this machine does not let this user make namespaces")
    assert done.returncode == 0, done.stderr
    return parsed(done.stdout)


class TestOwnersFile:
    """`api.sock`: for who sees the machine as the server does."""

    def test_a_process_beside_the_server_comes_in_with_the_token_only(self, shared: Served) -> None:
        assert asked(BESIDE, shared.socket, shared.token).status == 200
        assert asked(BESIDE, shared.socket, "wrong").status == 401

    @pytest.mark.parametrize("kind", ELSEWHERE)
    def test_one_in_other_namespaces_is_refused_with_the_owners_token(self, shared: Served, kind: str) -> None:
        answer = asked(kind, shared.socket, shared.token)
        assert answer.status == 403
        assert b"does not run beside the server" in answer.body

    @pytest.mark.skipif(os.getuid() == 0, reason="root sees every process")
    def test_one_that_hides_is_refused_with_the_owners_token(self, shared: Served) -> None:
        assert asked(HIDDEN, shared.socket, shared.token).status == 403

    def test_one_that_is_gone_is_refused(self) -> None:
        assert arrival(GONE, Entrance.OWNER).is_elsewhere

    @pytest.mark.parametrize("kind", [BESIDE, *ELSEWHERE, GONE])
    def test_a_kernel_that_cannot_be_asked_about_a_connection_is_asked_by_number(
        self, kind: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def not_known(_: object) -> bool:
            raise OSError(errno.ENOPROTOOPT, "as a kernel before 6.5 says")

        monkeypatch.setattr(peer, "_has_our_namespaces", not_known)
        assert arrival(kind, Entrance.OWNER).is_elsewhere is (kind != BESIDE)

    def test_any_other_refusal_of_the_kernel_is_no_reason_to_look_at_a_number(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in (errno.ESRCH, errno.EACCES, errno.EINVAL, errno.EPERM, errno.EMFILE):

            def refused(_: object, number: int = number) -> bool:
                raise OSError(number, os.strerror(number))

            monkeypatch.setattr(peer, "_has_our_namespaces", refused)
            assert arrival(BESIDE, Entrance.OWNER).is_elsewhere, os.strerror(number)

    def test_no_number_is_that_of_no_process(self) -> None:
        assert not is_beside_by_number(0)
        assert is_beside_by_number(os.getpid())


@pytest.fixture(scope="module")
def team(shared: Served) -> str:
    return shared.site.start("--team", "pair")


class TestAgentsFile:
    """`agents.sock`: requests of agents, whatever token they carry."""

    @pytest.fixture
    def agent(self, shared: Served, team: str) -> httpx.Client:
        return inside(shared, shared.site.mas("token", "--session", team, "--agent", "21").stdout.strip())

    def test_an_agent_can_do_there_what_agents_may(self, agent: httpx.Client, team: str) -> None:
        assert agent.get(f"/sessions/{team}/messages").status_code == 200
        assert agent.get(f"/sessions/{team}/agents").status_code == 200
        sent = agent.post(f"/sessions/{team}/messages", json={"target": "person", "message": "hello"})
        assert sent.status_code == 202
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        accept = {"Accept": "application/json, text/event-stream"}
        assert agent.post("/mcp", json=asked, headers=accept).status_code == 200

    def test_it_can_do_nothing_else(self, shared: Served, agent: httpx.Client, team: str) -> None:
        other = shared.site.start()
        for path in ("/sessions", f"/sessions/{team}", f"/sessions/{other}/messages", "/events", "/", "/login?code=x"):
            assert agent.get(path).status_code == 403, path
        for path in (f"/sessions/{team}/stop", "/runs", "/login-codes"):
            assert agent.post(path, json={}).status_code == 403, path

    def test_the_tokens_of_others_are_refused(self, shared: Served, team: str) -> None:
        owner = inside(shared, shared.token)
        for path in ("/sessions", f"/sessions/{team}/messages", "/health", "/mcp", "/events", "/nowhere", "/"):
            answer = owner.get(path)
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), path
            assert answer.json()["detail"] == "Only the tokens of agents are accepted here"
        with pytest.raises(InvalidStatus) as refused:
            unix_connect(
                agents_file(shared),
                "ws://localhost/terminals",
                additional_headers=dict(owner.headers),
                compression=None,
            )
        assert refused.value.response.status_code == 403

    def test_by_the_network_of_a_session_only_its_own_agents_come_in(self, shared: Served, team: str) -> None:
        """What joins a session's network with the server carries the session's mark."""
        token = shared.site.mas("token", "--session", team, "--agent", "21").stdout.strip()
        ask = "\n".join(
            (
                "import socket, sys",
                "wire = socket.socket(socket.AF_UNIX); wire.connect(sys.argv[1]); wire.sendall(sys.argv[2].encode())",
                "print(wire.recv(100).decode().split(' ')[1])",
            )
        )
        head = f"GET /sessions/{team}/agents HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n"
        for mark, status in ((f"{team}//home", "200"), ("", "200"), (f"{shared.site.start()}//home", "403")):
            argv = [sys.executable, "-c", ask, agents_file(shared), head]
            done = subprocess.run(argv, env={"MAS_PANE": mark}, capture_output=True, text=True, check=True)
            assert done.stdout.strip() == status, mark

    def test_a_browser_that_is_signed_in_is_nobody_there(self, shared: Served) -> None:
        page = page_of(shared)
        assert page.client.get("/sessions").status_code == 200
        here = {"Host": page.host, "Origin": shared.url}
        assert inside(shared, page.bearer).get("/sessions", headers=here).status_code in (401, 403)
        assert inside(shared, "").get(f"/docs?ticket={page.ticket('/docs')}", headers=here).status_code in (401, 403)

    def test_without_a_token_there_is_nothing_but_a_sign_of_life(self, shared: Served) -> None:
        nobody = inside(shared, "")
        assert nobody.get("/health").status_code == 200
        for path in ("/", "/login?code=x", "/favicon.ico", "/sessions", "/assets/index.js"):
            assert nobody.get(path).status_code == 401, path

    def test_the_path_that_is_kept_for_a_gateway_leads_nowhere_yet(self, shared: Served, agent: httpx.Client) -> None:
        assert agent.post("/gateway/anthropic/v1/messages", json={}).status_code == 403
        assert inside(shared, "").post("/gateway/anthropic/v1/messages", json={}).status_code == 401

    def test_it_does_not_matter_in_which_namespaces_the_other_end_is(self) -> None:
        """An agent is not trusted more for being outside; what joins it with this file may be in a sandbox."""
        assert arrival("mount and pid", Entrance.AGENTS).is_elsewhere is False

    def test_it_is_there_for_one_user_and_gone_with_its_server(self, served: Served) -> None:
        path = agents_file(served)
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        served.kill()
        assert os.path.exists(path)
        served.restart()
        assert inside(served, "").get("/health").status_code == 200
        served.stop()
        assert not os.path.exists(path)


def agents_file(served: Served) -> str:
    return os.path.join(os.path.dirname(served.socket), "agents.sock")


def inside(served: Served, token: str) -> httpx.Client:
    """A client at the agents' file."""
    return served.on_socket(token, "agents.sock")


def arrival(kind: str, entrance: Entrance) -> Arrival:
    """How a process of that kind comes in at a socket file of ours."""
    with short_directory() as directory, socket.socket(socket.AF_UNIX) as listener:
        path = os.path.join(directory, "s")
        listener.bind(path)
        listener.listen()
        listener.settimeout(60)
        argv = [sys.executable, STRANGER, kind, path, "token"]
        with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as process:
            try:
                wire = until(lambda: process.poll() == NOT_HERE or _accepted(listener), "the process connects")
            finally:
                listener.close()
            if wire is True:
                pytest.skip("this machine does not let this user make namespaces")
            with wire:
                # It asks once it is what it is to be.
                wire.recv(1)
                found = arrived(wire, entrance)
        assert found is not None
        return found


def _accepted(listener: socket.socket) -> socket.socket | None:
    return listener.accept()[0] if select.select([listener], [], [], 0)[0] else None
