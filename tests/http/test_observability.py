"""What the server reports about itself: numbers for Prometheus, and a line for every request."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.served import Served
from tests.site import until


def numbers(served: Served) -> dict[str, float]:
    text = served.client().get("/metrics").text
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in text.splitlines() if line[0] != "#"}


def _states(served: Served, session: str) -> set[str]:
    return {agent["state"] for agent in served.site.json("show", session)["agents"]}


def lines(path: str) -> list[dict[str, Any]]:
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.startswith("{")]


def test_the_metrics_count_sessions_agents_messages_requests_and_disk(served: Served) -> None:
    session = served.site.start("--team", "pair", "--provider", "demo")
    stopped = served.site.start("--team", "solo", "--command", "cat")
    served.site.mas("stop", stopped)
    until(lambda: _states(served, session) == {"idle"}, "two idle agents")
    served.site.mas("send", "--session", session, "21", "hello")
    served.client().get(f"/sessions/{session}")
    found = numbers(served)
    assert found['mas_sessions{status="active"}'] == 1
    assert found['mas_sessions{status="stopped"}'] == 1
    assert sum(number for name, number in found.items() if name.startswith("mas_agents{")) == 2
    assert found['mas_messages{state="acknowledged"}'] == 1
    assert found["mas_disk_bytes"] > 0
    assert found["mas_processes"] >= 4
    # By route, not by path: a session more is not a number more.
    shown = 'mas_request_seconds_count{method="GET",route="/sessions/{sessionId}",status="200"}'
    assert found[shown] == 1
    assert "mas_event_loop_lag_seconds" in found


def test_open_streams_are_counted_while_they_are_open(served: Served) -> None:
    with served.client().stream("GET", "/events") as stream:
        # Kept: the stream ends with who reads it.
        reading = stream.iter_lines()
        next(reading)
        assert numbers(served)['mas_streams{kind="events"}'] == 1
    until(lambda: numbers(served)['mas_streams{kind="events"}'] == 0, "the end of the stream")


def test_every_request_has_a_line_and_those_about_a_session_one_in_its_own_log_too(served: Served) -> None:
    session = served.site.start()
    client = served.client()
    answer = client.get(f"/sessions/{session}", headers={"X-Request-ID": "mine-1"})
    assert answer.headers["x-request-id"] == "mine-1"
    client.get("/sessions/00000000-0000-4000-8000-000000000000", headers={"X-Request-ID": "mine-2"})

    def logged(path: str) -> dict[str, dict[str, Any]]:
        return {line["requestId"]: line for line in lines(path) if "requestId" in line}

    until(lambda: "mine-2" in logged(served.log), "the second request's line")
    line = logged(served.log)["mine-1"]
    assert (line["method"], line["path"], line["status"], line["principal"]) == (
        "GET",
        f"/sessions/{session}",
        200,
        "owner",
    )
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["at"])
    own = logged(served.site.session(session, "logs", "api.log"))
    assert list(own) == ["mine-1"]


def test_a_refusal_has_the_request_id_that_is_in_the_log(served: Served) -> None:
    refused = served.client("").get("/sessions", headers={"X-Request-ID": "who-am-i"}).json()
    assert (refused["requestId"], refused["code"]) == ("who-am-i", "unauthorized")
