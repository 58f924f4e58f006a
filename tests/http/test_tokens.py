"""Tokens: how a caller proves who it is, and what each token allows."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import psutil
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as connect_websocket
from websockets.typing import Origin

from mas.model.errors import Corrupt
from mas.model.principal import OWNER, Principal
from mas.service.access import Access
from mas.store.layout import Layout
from mas.store.server.secrets import Secrets
from tests.http.raw import ask, request
from tests.page_key import PageKey, page_of
from tests.served import Served
from tests.site import Site, until

OTHER = "0b5fb5a5-5b2c-4a5e-9d3c-0123456789ab"


def test_only_the_owners_token_opens_everything(shared: Served) -> None:
    assert shared.client().get("/sessions").status_code == 200
    assert shared.client("").get("/sessions").status_code == 401
    for wrong in (
        shared.token[:-1],
        f"{shared.token}0",
        shared.token.upper(),
        shared.token[::-1],
        "0" * 64,
        "a" * 50_000,
    ):
        assert shared.client(wrong).get("/sessions").status_code == 401, wrong[:80]


@pytest.mark.parametrize(
    "proof",
    [
        "Authorization: Bearer",
        "Authorization: Bearer ",
        "Authorization: {token}",
        "Authorization: Basic {token}",
        "Authorization: Token {token}",
        "Authorization: Bearer:{token}",
        "Authorization: Bearer\t{token}",
        "Authorization: Bearer {token}, Bearer {token}",
        "Authorization: Bearer wrong\r\nAuthorization: Bearer {token}",
        "Authorization: Bearer \xe9\xff\x80",
        "Authorization: Bearer {token}\xff",
        "X-Token: {token}",
        "Cookie: mas={token}",
        "Cookie: token={token}",
        "Proxy-Authorization: Bearer {token}",
    ],
)
def test_a_token_anywhere_else_is_none(shared: Served, proof: str) -> None:
    given = proof.format(token=shared.token)
    assert ask(shared, request(shared, "GET /sessions", given, token=False)).status == 401
    address = f"GET /sessions?token={shared.token}&access_token={shared.token}"
    assert ask(shared, request(shared, address, given, token=False)).status == 401


def test_the_word_before_a_token_may_be_written_in_any_case(shared: Served) -> None:
    for word in ("bearer", "BEARER", "Bearer "):
        assert (
            ask(shared, request(shared, "GET /sessions", f"Authorization: {word} {shared.token}", token=False)).status
            == 200
        )


def test_a_renewed_token_puts_the_old_one_and_all_browsers_out_at_once(served: Served) -> None:
    browser = page_of(served).client
    waiting = PageKey(served.client(""), served.client().post("/login-codes").json()["code"])
    agent = served.client(_access(served).agent_token(OTHER, "00"))
    assert browser.get("/sessions").status_code == 200
    assert agent.get(f"/sessions/{OTHER}/messages").status_code == 404
    new = served.site.mas("token", "--rotate").stdout.strip()
    assert new != served.token
    assert served.client().get("/sessions").status_code == 401
    assert browser.get("/sessions").status_code == 401
    assert waiting.prove(waiting.hello()).status_code == 401
    assert served.client(new).get("/sessions").status_code == 200
    # Agents have nothing to do with it.
    assert agent.get(f"/sessions/{OTHER}/messages").status_code == 404


@pytest.mark.parametrize("proof", ["token", "page"])
def test_a_stream_ends_with_the_token_it_was_opened_with(served: Served, proof: str) -> None:
    client = served.client() if proof == "token" else page_of(served).client
    with client.stream("GET", "/events", params={"after": "0"}) as stream:
        lines = stream.iter_lines()
        until(lambda: next(lines).startswith("retry"), "the stream has begun")
        served.site.mas("token", "--rotate")
        served.site.start()
        assert not [line for line in lines if line.startswith("data")]
    _ends_quietly(served)


@pytest.mark.parametrize("proof", ["token", "page"])
def test_a_terminal_ends_with_the_token_it_was_opened_with(served: Served, proof: str) -> None:
    session = served.site.start("--team", "solo", "--command", "cat")
    headers = {"Authorization": f"Bearer {served.token}"}
    if proof == "page":
        headers = {"Authorization": f"Bearer {page_of(served).bearer}"}
    url = f"{served.url.replace('http', 'ws')}/sessions/{session}/agents/00/terminal"
    with connect_websocket(url, additional_headers=headers, origin=Origin(served.url), proxy=None) as terminal:
        terminal.recv(timeout=90)
        terminal.send(b"before\r")
        until(lambda: "before" in served.site.mas("output", session, "00").stdout, "what is typed is shown")
        served.site.mas("token", "--rotate")
        with pytest.raises(ConnectionClosed) as closed:
            _type_until_closed(terminal)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1008
    assert "after" not in served.site.mas("output", session, "00").stdout
    _ends_quietly(served)


def _ends_quietly(served: Served) -> None:
    """That a stream was cut off is no failure of the server."""
    served.stop()
    with open(served.log, encoding="utf-8") as file:
        assert "Traceback" not in file.read()


def _type_until_closed(terminal: ClientConnection) -> None:
    for _ in range(1000):
        terminal.send(b"after\r")
        while True:
            try:
                terminal.recv(timeout=0.05)
            except TimeoutError:
                break


def test_a_damaged_token_admits_no_caller(served: Served) -> None:
    """Whatever is in the file: it could be guessed, and so could every browser signed in with it."""
    path = served.site.path("sessions", ".mas", "server", "token")
    browser = page_of(served).client
    for damage in (b"", b"\n", b"short\n", b"\0" * 65, b" " * 65, b"\xff" * 65, served.token.encode() + b"\nmore\n"):
        with open(path, "wb") as file:
            file.write(damage)
        for client in (served.client(), served.client("guessed"), browser):
            answer = client.get("/sessions")
            assert answer.status_code == 500, damage
            assert answer.json()["code"] == "corrupt"
            assert path in answer.json()["detail"]
        assert served.client("").get("/sessions").status_code == 401
        assert served.client("").get("/health").status_code == 200
        assert "is damaged" in served.site.mas("token", code=None).stderr
    os.unlink(path)
    os.symlink("/dev/zero", path)
    assert served.client().get("/sessions").status_code == 500
    os.unlink(path)
    os.mkdir(path)
    assert served.client().get("/sessions").status_code == 500
    os.rmdir(path)
    # Without one there is a new one, never none.
    assert served.client().get("/sessions").status_code == 401
    assert served.client(served.site.mas("token").stdout.strip()).get("/sessions").status_code == 200


def test_a_damaged_key_makes_no_agents(site: Site) -> None:
    access = _access_of(site)
    token = access.agent_token(OTHER, "00")
    assert access.who(token) == Principal(OTHER, "00")
    with open(site.path("sessions", ".mas", "server", "key"), "wb") as file:
        file.write(b"\0" * 65)
    with pytest.raises(Corrupt, match="key is damaged"):
        access.who(token)
    with pytest.raises(Corrupt):
        access.agent_token(OTHER, "00")


@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_secrets_can_be_read_by_their_user_alone_whatever_the_umask(site: Site, umask: int) -> None:
    site.run(["sh", "-c", f'umask {umask:o}; exec "$0" -m mas token', _python()])
    server = site.path("sessions", ".mas", "server")
    before = os.umask(umask)
    try:
        _access_of(site).agent_token(OTHER, "00")
    finally:
        os.umask(before)
    assert {name: _mode(os.path.join(server, name)) for name in ("token", "key", ".")} == {
        "token": 0o600,
        "key": 0o600,
        ".": 0o700,
    }


def test_the_socket_file_and_all_that_a_server_leaves_are_for_its_user_alone(bare: Site) -> None:
    before = os.umask(0)
    try:
        bare.mas("init", bare.root, "--provider", "shell")
        served = Served(bare)
    finally:
        os.umask(before)
    try:
        server = bare.path("sessions", ".mas", "server")
        modes = {name: _mode(os.path.join(server, name)) for name in os.listdir(server)}
        assert modes
        assert not {name: mode for name, mode in modes.items() if mode & 0o077}
        assert _mode(server) == 0o700
        assert _mode(served.socket) == 0o600
        assert served.on_socket().get("/sessions").status_code == 200
        until(lambda: os.path.exists(served.log) and _mode(served.log) == 0o600, "the log is the user's alone")
    finally:
        served.close()


def test_no_token_is_in_the_processes_of_a_server(served: Served) -> None:
    process = psutil.Process(served.pid)
    seen = [process.cmdline(), list(process.environ().values())]
    assert not any(served.token in word for words in seen for word in words)


@pytest.fixture(scope="module")
def team(shared: Served) -> str:
    return shared.site.start("--team", "pair")


@pytest.fixture(scope="module")
def agents(shared: Served, team: str) -> list[str]:
    return [agent["id"] for agent in shared.client().get(f"/sessions/{team}/agents").json()["agents"]]


@pytest.fixture(scope="module")
def agent(shared: Served, team: str, agents: list[str]) -> httpx.Client:
    token = shared.site.mas("token", "--session", team, "--agent", agents[0]).stdout.strip()
    assert token.startswith(f"mas-agent.{team}.{agents[0]}.")
    return shared.client(token)


class TestAgents:
    """An agent's token: its own messages and its team, nothing else."""

    def test_it_can_write_read_and_see_its_team(
        self, shared: Served, team: str, agents: list[str], agent: httpx.Client
    ) -> None:
        body = {"target": agents[1], "message": "echo hello"}
        assert agent.post(f"/sessions/{team}/messages", json=body).status_code == 202
        assert agent.post(f"/sessions/{team}/messages", json=body | {"from": agents[0]}).status_code == 202
        assert shared.client().post(f"/sessions/{team}/messages", json=body | {"from": None}).status_code == 202
        found = agent.get(f"/sessions/{team}/messages").json()["messages"]
        # The third is from a person to another agent.
        assert [(message["from"], message["target"]) for message in found] == [(agents[0], agents[1])] * 2
        assert agent.get(f"/sessions/{team}/messages", params={"agent": agents[0]}).json()["total"] == 2
        assert len(agent.get(f"/sessions/{team}/agents").json()["agents"]) == len(agents)

    def test_it_is_not_another_agent(self, team: str, agents: list[str], agent: httpx.Client) -> None:
        body = {"target": agents[1], "message": "echo hello"}
        for name in (agents[1], "owner", "person", "", f"{agents[0]} "):
            answer = agent.post(f"/sessions/{team}/messages", json=body | {"from": name})
            assert answer.status_code in ((403,) if name == agents[1] else (403, 422)), name
        assert agent.get(f"/sessions/{team}/messages", params={"agent": agents[1]}).status_code == 403
        said = {"text": "I am somebody else"}
        assert agent.post(f"/sessions/{team}/agents/{agents[0]}/report", json=said).status_code == 200
        assert agent.post(f"/sessions/{team}/agents/{agents[1]}/report", json=said).status_code == 403
        shown = f"/sessions/{team}/agents/{agents[1]}/output"
        assert agent.get(shown).status_code == 200
        assert agent.get(shown, params={"reader": agents[1]}).status_code == 403

    def test_it_is_good_for_its_own_session_only(self, shared: Served, team: str, agent: httpx.Client) -> None:
        other = shared.site.start()
        for session in (other, OTHER, team.upper(), f"{team}/../{other}", f"{other}/../{team}"):
            for what in ("messages", "agents", "agents/00/output", "agents/21/output"):
                proof = f"Authorization: {agent.headers['authorization']}"
                line = f"GET /sessions/{session}/{what}"
                assert ask(shared, request(shared, line, proof, token=False)).status == 403, line
        shared.client().post(f"/sessions/{other}/stop")

    def test_it_is_good_for_no_other_call(
        self, shared: Served, team: str, agents: list[str], agent: httpx.Client
    ) -> None:
        allowed = {
            ("get", "/sessions/{sessionId}/messages"),
            ("post", "/sessions/{sessionId}/messages"),
            ("get", "/sessions/{sessionId}/agents"),
            ("get", "/sessions/{sessionId}/agents/{agent}/output"),
            ("get", "/sessions/{sessionId}/agents/{agent}/transcript"),
            ("post", "/sessions/{sessionId}/agents/{agent}/report"),
            ("get", "/sessions/{sessionId}/wait"),
        }
        known = set(_calls(shared.client().get("/openapi.json").json()))
        assert allowed < known
        hidden = {("get", path) for path in ("/docs", "/openapi.json", "/nowhere")} | {("post", "/logout")}
        for verb, path in sorted(known - allowed | hidden):
            if path in ("/health", "/browser/hello", "/browser/bearer"):
                continue
            filled = path.format(sessionId=team, agent=agents[0], messageId="m-1", channel="0", port="3000")
            answer = agent.request(verb, filled, json={} if verb == "post" else None)
            assert answer.status_code == 403, (verb, path)
            assert answer.json()["code"] == "forbidden"
        for verb in ("put", "patch", "delete", "head", "options"):
            assert agent.request(verb, f"/sessions/{team}/messages").status_code == 403
        for what in (
            "messages/",
            "agents/",
            f"agents/{agents[0]}/output/",
            f"agents/{agents[0]}/../output",
            "agents/21",
        ):
            line = f"GET /sessions/{team}/{what}"
            given = f"Authorization: {agent.headers['authorization']}"
            assert ask(shared, request(shared, line, given, token=False)).status == 403, what
        for path in (f"/sessions/{team}/agents/{agents[0]}/terminal", "/terminals"):
            proof = {"Authorization": agent.headers["authorization"]}
            with pytest.raises(InvalidStatus) as refused:
                connect_websocket(shared.url.replace("http", "ws") + path, additional_headers=proof, proxy=None)
            assert refused.value.response.status_code == 403
        assert shared.client().get(f"/sessions/{team}").json()["status"] == "active"

    def test_it_cannot_be_forged(self, shared: Served, team: str, agents: list[str], agent: httpx.Client) -> None:
        good = agent.headers["authorization"].removeprefix("Bearer ")
        who, _, proof = good.rpartition(".")
        path = f"/sessions/{team}/messages"
        assert shared.client(good).get(path).status_code == 200
        forged = [
            who,
            f"{who}.",
            f"{who}.{'0' * 64}",
            f"{who}.{proof[:-1]}",
            f"{who}.{proof}0",
            f"{who}.{proof.upper()}",
            f"mas-agent.{team}.{agents[1]}.{proof}",
            f"mas-agent.{OTHER}.{agents[0]}.{proof}",
            f"mas-agent.{team}..{proof}",
            f"mas-agent..{agents[0]}.{proof}",
            f"owner.{proof}",
            f"mas-agent.{team}.{agents[0]}.{good}",
            good.replace("mas-agent", "mas-owner"),
            good.replace("-", "–"),
        ]
        for token in forged:
            proof_bytes = f"Authorization: Bearer {token}".encode().decode("latin-1")
            assert ask(shared, request(shared, f"GET {path}", proof_bytes, token=False)).status == 401, token


def test_a_callers_identity_depends_on_the_whole_token(site: Site) -> None:
    access = _access_of(site)
    owner = access.owner_token()
    assert access.who(owner) is OWNER
    for wrong in ("", " ", owner[:-1], f"{owner} ", "é", "\ud800", "\0", "mas-agent", "mas-agent...", "." * 1000):
        assert access.who(wrong) is None
    assert access.who(access.agent_token(OTHER, "21")) == Principal(OTHER, "21")


def _calls(description: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for path, verbs in description["paths"].items():
        for verb in verbs:
            yield verb, path


def _access_of(site: Site) -> Access:
    return Access(Secrets(Layout(site.root)))


def _access(served: Served) -> Access:
    return _access_of(served.site)


def _mode(path: str) -> int:
    return stat.S_IMODE(os.stat(path, follow_symlinks=False).st_mode)


def _python() -> str:
    return sys.executable
