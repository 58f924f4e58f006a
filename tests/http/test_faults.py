"""`kill -9` of the server at any moment: nothing is lost, orphaned or stuck, and the next server knows it all."""

from __future__ import annotations

import json
import os
import random
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import psutil
import pytest

from tests.checker import World, check_world
from tests.e2e.standin import read, received, start_receivers
from tests.http.raw import connect, request
from tests.served import Served
from tests.site import until

_PATIENCE = 60.0
ROUNDS = 6
BODY = {"agents": {"metaManager": {"command": "sleep 1000"}}}


class Moment:
    """A moment to kill at: when something is visible on the disk or in tmux, or a while after the request."""

    def __init__(self, name: str, has_come: Callable[[Served], Any]) -> None:
        self.name = name
        self.has_come = has_come

    def __repr__(self) -> str:
        return self.name


def _directories(served: Served) -> set[str]:
    return {name for name in os.listdir(served.site.path("sessions")) if len(name) == 36}


def _intent(served: Served) -> bool:
    place = served.site.path("sessions", ".mas", "intents")
    return os.path.isdir(place) and bool(os.listdir(place))


def _tmux_session(served: Served) -> bool:
    return bool(served.site.tmux_sessions())


def _listed(served: Served) -> bool:
    index = served.site.path("sessions", ".sessions.index")
    return os.path.exists(index) and "active" in read(index)


MOMENTS = [
    Moment("at once", lambda served: True),
    Moment("an intent is written", _intent),
    Moment("the directory is there", _directories),
    Moment("tmux has the session", _tmux_session),
    Moment("it is listed", _listed),
]


@pytest.mark.parametrize("moment", MOMENTS, ids=repr)
def test_a_start_that_was_cut_short_is_whole_or_undone(served: Served, moment: Moment) -> None:
    with _Sent(served, "POST /runs", BODY, "Idempotency-Key: once"):
        until(lambda: moment.has_come(served), moment.name)
        served.kill()
    served.restart()
    sessions = served.client().get("/sessions").json()["sessions"]
    assert len(sessions) <= 1
    _all_is_well(served)
    # Asked again with the same key, the session is the one that was started, or now is.
    again = served.client().post("/runs", json=BODY, headers={"Idempotency-Key": "once"})
    assert again.status_code == 201
    listed = served.client().get("/sessions").json()["sessions"]
    assert [info["sessionId"] for info in listed] == [again.json()["sessionId"]]
    _all_is_well(served)
    check_world(served.site)


def test_starts_cut_short_at_any_moment_leave_nothing_half_made(served: Served) -> None:
    moments = random.Random(1)
    began = time.monotonic()
    whole = served.client().post("/runs", json=BODY)
    took = time.monotonic() - began
    kept = {whole.json()["sessionId"]}
    for _ in range(ROUNDS):
        with _Sent(served, "POST /runs", BODY):
            time.sleep(moments.uniform(0, 1.5 * took))
            served.kill()
        served.restart()
        found = {info["sessionId"] for info in served.client().get("/sessions").json()["sessions"]}
        assert kept <= found
        assert len(found - kept) <= 1
        kept = found
        _all_is_well(served)


def test_stops_cut_short_at_any_moment_can_be_finished(served: Served) -> None:
    moments = random.Random(2)
    session = served.client().post("/runs", json=BODY).json()["sessionId"]
    for number in range(ROUNDS):
        with _Sent(served, f"POST /sessions/{session}/stop", {}):
            time.sleep(moments.uniform(0, 0.3) if number else 0)
            served.kill()
        served.restart()
        status = served.client().get(f"/sessions/{session}").json()["status"]
        assert status in ("active", "stopped")
        _all_is_well(served)
        assert served.client().post(f"/sessions/{session}/stop").json()["status"] == "stopped"
        _all_is_well(served)
        assert served.client().post(f"/sessions/{session}/restore").json()["status"] == "active"


def test_messages_cut_short_at_any_moment_are_kept_and_come_at_most_once(served: Served) -> None:
    moments = random.Random(3)
    session = start_receivers(served.site)
    path = f"/sessions/{session}/messages"
    for number in range(ROUNDS):
        body = {"target": "00", "message": f"number {number}.", "id": f"m-{number:016x}"}
        with _Sent(served, f"POST {path}", body):
            time.sleep(moments.uniform(0, 0.1) if number else 0)
            served.kill()
        served.restart()
        again = served.client().post(path, json=body)
        assert again.status_code in (202, 409), again.text
        kept = [message for message in served.client().get(path).json()["messages"] if message["id"] == body["id"]]
        assert len(kept) == 1
        assert kept[0]["message"] == body["message"]
        assert again.status_code == 202 or "may have arrived" in kept[0]["deliveries"][0]["reason"]
    last = served.client().post(path, json={"target": "00", "message": "the last"})
    assert last.status_code == 202
    texts = list(_until_last(served, session))
    for number in range(ROUNDS):
        assert sum(f"number {number}." in text for text in texts) <= 1, texts
    states = {
        message["message"]: message["deliveries"][0]["state"]
        for message in served.client().get(path).json()["messages"]
    }
    for text, state in states.items():
        assert state == "undelivered" or any(text in got for got in texts), (text, state, texts)


def test_a_stream_goes_on_where_it_was_without_loss(served: Served) -> None:
    """What happens while there is no server is reported by the next one."""
    heard: list[dict[str, Any]] = []
    last = "0"
    for number in range(3):
        with served.client().stream("GET", "/events", headers={"Last-Event-ID": last}) as stream:
            session = served.client().post("/runs", json=BODY | {"name": f"session {number}"}).json()["sessionId"]
            for event_id, event in _events(stream.iter_lines()):
                heard.append(event)
                last = event_id
                if event.get("sessionId") == session and event.get("status") == "active":
                    break
            served.kill()
        served.site.mas("stop", session)
        served.restart()
    with served.client().stream("GET", "/events", headers={"Last-Event-ID": last}) as stream:
        served.site.world().events.add("warning", text="the end")
        for _, event in _events(stream.iter_lines()):
            heard.append(event)
            if event.get("text") == "the end":
                break
    kept = served.site.local().events("0").events
    assert [event["id"] for event in heard] == [event.id for event in kept]


def test_a_new_server_knows_the_state_of_every_agent_soon(served: Served) -> None:
    body = {"team": "pair", "provider": "demo"}
    sessions = [served.client().post("/runs", json=body).json()["sessionId"] for _ in range(2)]
    ended = served.client().post("/runs", json={"agents": {"metaManager": {"command": "true"}}}).json()["sessionId"]

    def states(session: str) -> dict[str, str]:
        agents = served.client().get(f"/sessions/{session}/agents").json()["agents"]
        return {agent["id"]: agent["state"] for agent in agents}

    def settled() -> dict[str, dict[str, str]] | None:
        found = {session: states(session) for session in (*sessions, ended)}
        living = {state for session in sessions for state in found[session].values()}
        return found if living == {"idle"} and "exited" in found[ended].values() else None

    before = until(settled, "all agents are up, and one has ended")
    served.kill()
    served.restart()
    until(lambda: {session: states(session) for session in before} == before, "the same states")


def test_sessions_whose_tmux_died_are_stopped_and_can_be_restored(served: Served) -> None:
    client = served.client()
    sessions = [client.post("/runs", json=BODY).json()["sessionId"] for _ in range(2)]
    for path in served.site.sockets():
        served.site.tmux("kill-server", socket=path)
    until(
        lambda: {info["status"] for info in client.get("/sessions").json()["sessions"]} == {"stopped"},
        "all are stopped",
    )
    for session in sessions:
        # The request that said so may not be the one that has them stopped.
        until(lambda of=session: served.site.four_places(of) == {"stopped"}, "the same everywhere")  # type: ignore[misc]
        assert client.get(f"/sessions/{session}").json()["status"] == "stopped"
        answer = client.post(f"/sessions/{session}/restore")
        assert answer.status_code == 200, answer.text
        assert answer.json()["status"] == "active"
    _all_is_well(served)


def test_a_killed_server_leaves_no_helpers_and_its_agents_alone(served: Served) -> None:
    session = served.client().post("/runs", json=BODY).json()["sessionId"]
    # A stream and a few looks, so that whatever a server keeps at hand is there.
    with served.client().stream("GET", "/events"):
        for _ in range(3):
            served.client().get("/sessions")
        assert _helpers(served)
        served.kill()
    until(lambda: not _helpers(served), "its helpers end with it")
    assert served.site.statuses() == {session: "active"}
    check_world(served.site)


def test_work_that_was_cut_short_is_finished_by_a_server_without_any_request(served: Served) -> None:
    session = served.site.start("--no-server", "--team", "solo", "--command", "sleep 1000")
    intent = {"session_id": session, "verb": "stop", "pid": 1, "at": "2026-01-01T00:00:00Z", "socket": None}
    with open(served.site.path("sessions", ".mas", "intents", session), "w", encoding="utf-8") as file:
        json.dump(intent, file)
    until(lambda: not _intent(served), "the server to finish what was cut short")
    assert "STATUS=stopped" in read(served.site.session(session, ".session"))
    assert served.site.tmux_sessions() == set()


class _Sent:
    """A request on its way, whose response is not waited for."""

    def __init__(self, served: Served, line: str, body: dict[str, Any], *headers: str) -> None:
        data = json.dumps(body).encode()
        kind = "Content-Type: application/json"
        self._wire: socket.socket = connect(served)
        self._wire.sendall(request(served, line, kind, f"Content-Length: {len(data)}", *headers) + data)

    def __enter__(self) -> None:
        return

    def __exit__(self, *_: object) -> None:
        self._wire.close()


def _all_is_well(served: Served) -> None:
    """Once what was killed has ended, everything on the disk, in tmux and among the processes agrees."""

    def problems() -> list[str]:
        # Half a note of a key is written over when its request is made again, and forgotten after a day.
        return [problem for problem in World(served.site).problems() if "/server/keys/." not in problem]

    deadline = time.monotonic() + _PATIENCE
    while problems() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert problems() == []
    for session in _directories(served):
        assert len(served.site.four_places(session)) == 1


def _helpers(served: Served) -> list[str]:
    found = []
    for process in served.site.processes():
        # What ends meanwhile is no helper any more.
        with suppress(psutil.Error):
            found.append(" ".join(process.cmdline()))
    return [line for line in found if line.startswith("tmux") and " -C" in line]


def _events(lines: Iterator[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    event_id = ""
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "id":
            event_id = value
        elif name == "data":
            yield event_id, json.loads(value)


def _until_last(served: Served, session: str) -> Iterator[str]:
    """What the agent got, in its order, up to the last message."""
    number = 0
    while True:
        number += 1
        text = received(served.site, session, "00", number).decode()
        yield text
        if "the last" in text:
            return
