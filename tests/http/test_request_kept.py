"""The request that made a session is kept: in its config.json as it was asked, and as a line of its api.log."""

from __future__ import annotations

import json
from typing import Any

from tests.served import Served
from tests.site import Site, until

RUN = {"team": "solo", "agents": {"metaManager": {"command": "sleep 1000"}}, "limits": {"cpu": 2}, "provider": None}


def config(site: Site, session: str) -> dict[str, Any]:
    with open(site.session(session, "config.json"), encoding="utf-8") as file:
        found: dict[str, Any] = json.load(file)
    return found


def lines(site: Site, session: str) -> list[dict[str, Any]]:
    with open(site.session(session, "logs", "api.log"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_a_session_made_by_the_api_keeps_the_request_and_its_line(served: Served) -> None:
    client, site = served.client(), served.site
    asked = RUN | {"sessionMode": "isolated"}
    session = client.post("/runs", json=asked, headers={"X-Request-ID": "made-by"}).json()["sessionId"]
    assert config(site, session)["request"] == asked
    (line,) = until(lambda: lines(site, session), "the line of the request")
    assert (line["requestId"], line["method"], line["path"], line["status"]) == ("made-by", "POST", "/runs", 201)
    assert line["sessionId"] == session
    copy = client.post(f"/sessions/{session}/clone", headers={"X-Request-ID": "cloned-by"}).json()["sessionId"]
    until(lambda: len(lines(site, session)) == 2, "the line of the clone")
    assert [line["requestId"] for line in until(lambda: lines(site, copy), "the same")] == ["cloned-by"]
    assert config(site, copy)["request"] == asked


def test_an_empty_request_is_kept_as_one(served: Served) -> None:
    session = served.client().post("/runs").json()["sessionId"]
    assert config(served.site, session)["request"] == {}


def test_the_options_of_the_command_are_kept_as_the_fields_they_mean(site: Site) -> None:
    body = json.dumps({"isolation": {"hide": ["/etc"]}, "env": {"A": "1"}})
    options = ("--name", "kept", "--provider", "shell", "--isolation", "off", "--lazy-units")
    session = site.start("--config", "-", *options, input=body)
    assert config(site, session)["request"] == {
        "isolation": {"hide": ["/etc"], "enforce": "off"},
        "env": {"A": "1"},
        "name": "kept",
        "provider": "shell",
        "lazyUnits": True,
    }
    assert lines(site, session) == []
    # Such a file is itself a run, and of an older version too.
    again = site.start("--config", site.session(session, "config.json"))
    assert "request" not in config(site, again)["request"]
    older = config(site, session) | {"version": 1}
    del older["request"]
    with open(site.session(session, "config.json"), "w", encoding="utf-8") as file:
        json.dump(older, file)
    site.mas("stop", session)
    site.mas("restore", session)
    assert site.json("show", session)["status"] == "active"
