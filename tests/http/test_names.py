"""Names over HTTP: a session's name stands wherever its id does, in paths, queries and sockets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from mas.client import RemoteMas
from mas.model.ids import SessionId
from tests.e2e.standin import ASLEEP, read
from tests.http.terminals import Server, agent, log_of, serving
from tests.served import Served
from tests.site import Site, until

NAME = "web shop 日本 50%?#"


@pytest.fixture(scope="module")
def session(shared: Served) -> Iterator[str]:
    session = shared.site.start(*ASLEEP, "--name", NAME)
    yield session
    shared.site.mas("delete", "--yes", session)


def test_a_name_in_the_address_means_its_session(shared: Served, session: str) -> None:
    client = shared.client()
    for reference in (quote(NAME, safe=""), session, session.upper(), session[:8], f"mas-{session[:8]}"):
        answer = client.get(f"/sessions/{reference}")
        assert answer.status_code == 200, answer.text
        assert answer.json()["sessionId"] == session
        assert client.get(f"/sessions/{reference}/agents").status_code == 200
    for query in ("/approvals", "/stats"):
        assert client.get(query, params={"sessionId": NAME}).status_code == 200
    assert client.get("/resolve", params={"reference": NAME}).json()["sessionId"] == session
    unknown = client.get("/sessions/nobody")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "session-not-found")
    assert client.get("/stats", params={"sessionId": "nobody"}).status_code == 404
    until(lambda: NAME in read(shared.site.session(session, "logs", "api.log")), "the session's own log")


def test_a_session_is_renamed_stopped_and_brought_back_by_name(shared: Served) -> None:
    client = shared.client()
    made = client.post("/runs", json={"team": "solo", "name": "one"}).json()
    second = client.post("/runs", json={"team": "solo", "name": "one"}).json()
    assert (made["name"], second["name"]) == ("one", "one-2")
    assert second["warnings"] == ["Another session is named one: this one is named one-2"]
    assert client.post("/sessions/one/rename", json={"name": "two"}).json()["name"] == "two"
    assert client.post("/sessions/two/rename", json={"name": "one-2"}).status_code == 409
    refused = client.post("/sessions/two/rename", json={"name": "a:b"})
    assert (refused.status_code, refused.json()["errors"][0]["where"]) == (422, "body.name")
    assert client.post("/runs", json={"name": "21"}).json()["errors"][0]["where"] == "body.name"
    for verb in ("stop", "archive", "unarchive"):
        assert client.post(f"/sessions/two/{verb}").status_code == 200
    assert client.delete("/sessions/two").status_code == 200
    assert client.post("/sessions/two/undelete").json()["sessionId"] == made["sessionId"]
    for name in ("two", "one-2"):
        client.delete(f"/sessions/{name}")


def test_the_python_client_takes_a_name_for_a_session(shared: Served, session: str) -> None:
    with RemoteMas(shared.url, shared.token) as mas:
        named = SessionId(NAME)
        assert mas.show(named).session_id == session
        assert mas.resolve(NAME) == session
        assert mas.stats(named).sessions[0].session_id == session
        assert not mas.approvals(named).approvals
        assert mas.rename(named, "other").name == "other"
        assert mas.rename(SessionId("other"), NAME).session_id == session


def test_an_agents_token_opens_no_session_by_name(shared: Served, session: str) -> None:
    token = shared.site.mas("token", "--agent", "00", "--session", session).stdout.strip()
    client = shared.client(token)
    assert client.get(f"/sessions/{session}/agents").status_code == 200
    assert client.get(f"/sessions/{quote(NAME, safe='')}/agents").status_code == 403


@pytest.fixture
def server(site: Site) -> Iterator[Server]:
    with serving(site) as made:
        yield made


def test_a_terminal_opens_by_name(site: Site, server: Server) -> None:
    session = site.start("--team", "solo", "--name", "web", "--command", agent("pane_echo", "100"))
    until(lambda: b"<ready>" in log_of(site, session), "the agent")
    with server.watch("web") as viewer:
        assert b"<ready>" in viewer.screen()
    with server.watch("nobody") as viewer:
        viewer.until(lambda: viewer.said, "a refusal")
        assert json.dumps(viewer.said[0]).count("session-not-found")


def test_a_call_about_a_session_that_was_archived_or_deleted_says_how_to_have_it_back(shared: Served) -> None:
    client = shared.client()
    session = client.post("/runs", json={"team": "solo"}).json()["sessionId"]
    calls = [f"/sessions/{session}{what}" for what in ("", "/agents", "/messages", "/files", "/logs", "/env", "/stats")]

    def said() -> set[tuple[int, bool]]:
        answers = [client.get(call) for call in (*calls, f"/approvals?sessionId={session}")]
        return {(answer.status_code, f"mas {back} {session}"[:20] in answer.json()["hint"]) for answer in answers}

    for verb in ("stop", "archive"):
        client.post(f"/sessions/{session}/{verb}")
    back = "unarchive"
    assert said() == {(410, True)}
    client.post(f"/sessions/{session}/unarchive")
    client.delete(f"/sessions/{session}")
    back = "undelete"
    assert said() == {(404, True)}
