"""Paths: whatever an address, a parameter or a body names, nothing outside the session is touched."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tests.http.raw import ask, request
from tests.served import Served

OTHER = "0b5fb5a5-5b2c-4a5e-9d3c-0123456789ab"
# As they stand in a request line.
HOSTILE = [
    "..",
    "../..",
    "../../etc/passwd",
    "%2e%2e",
    "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "..%2f..%2f.masrc",
    "%252e%252e%252f",
    "..%5c..%5c",
    "%00",
    f"{OTHER}%00",
    f"{OTHER}%0a",
    f"{OTHER}%20",
    f"%20{OTHER}",
    "%2fetc%2fpasswd",
    "/etc/passwd",
    ".mas",
    ".mas%2fserver",
    ".",
    "%2e",
    "a" * 5000,
    "%ff%fe",
    "%c0%ae%c0%ae",
    "%ed%a0%80",
    OTHER.upper(),
    OTHER[:8],
    f"mas-{OTHER[:8]}",
    OTHER.replace("-", ""),
    f"{{{OTHER}}}",
    "0b5fb5a5-5b2c-1a5e-9d3c-0123456789ab",
    "0b5fb5a5-5b2c-4a5e-1d3c-0123456789ab",
    "00000000-0000-0000-0000-000000000000",
    "~",
    "$HOME",
    "*",
    "-",
    "--help",
    "%E2%80%AE",
    "０b5fb5a5-5b2c-4a5e-9d3c-0123456789ab",
]


@pytest.fixture(scope="module")
def calls(shared: Served) -> list[tuple[str, str, dict[str, Any]]]:
    paths = shared.client().get("/openapi.json").json()["paths"]
    return [(verb, path, call) for path, verbs in paths.items() for verb, call in verbs.items()]


@pytest.fixture(scope="module")
def session(shared: Served) -> str:
    """A session that lives, so that what is asked of it is looked for."""
    return shared.site.start()


@pytest.fixture(autouse=True)
def nothing_new(shared: Served, session: str) -> Iterator[None]:
    """Nothing is made, removed or changed by any of this, inside the workspace or near it."""
    before = _everything(shared)
    yield
    assert _everything(shared) == before


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_session_is_named_by_an_id_or_a_name_and_never_by_a_path(
    shared: Served, calls: list[tuple[str, str, dict[str, Any]]], hostile: str
) -> None:
    given = quote(hostile, safe="/%.:;,~*$")
    for verb, path, _ in calls:
        if "{" not in path:
            continue
        for name in ("sessionId", "agent"):
            if f"{{{name}}}" not in path:
                continue
            filled = path.replace(f"{{{name}}}", given).replace("{sessionId}", OTHER).replace("{agent}", "00")
            body = b"{}" if verb == "post" else b""
            answer = ask(shared, request(shared, f"{verb.upper()} {filled}", f"Content-Length: {len(body)}") + body)
            # One that is no path of ours any more is not found; one that is, means no session.
            assert answer.status in (404, 405, 422, 307), (verb, filled, answer)
            codes = ("not-found", "session-not-found")
            assert answer.status != 404 or json.loads(answer.body)["code"] in codes, (verb, filled, answer)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_query_names_no_file(
    shared: Served, session: str, calls: list[tuple[str, str, dict[str, Any]]], hostile: str
) -> None:
    given = quote(hostile, safe="/%.:;,~*$")
    for verb, path, call in calls:
        if verb != "get" or path == "/events":
            continue
        for parameter in call.get("parameters", []):
            if parameter["in"] != "query":
                continue
            filled = path.format(sessionId=session, agent="00")
            answer = ask(shared, request(shared, f"GET {filled}?{parameter['name']}={given}"))
            assert answer.status in (200, 404, 422), (path, parameter["name"], answer)
            for secret in (b"root:", shared.token.encode(), b"SESSION_ID="):
                assert secret not in answer.body


@pytest.mark.parametrize(
    "hostile", ["../../etc/passwd", "/etc/passwd", "\0", "..", "a" * 5000, "\ud800", "\x1b[2J", "~", "-"]
)
def test_a_body_names_no_file_either(shared: Served, session: str, hostile: str) -> None:
    client = shared.client()
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("/runs", {"team": hostile}),
        ("/runs", {"provider": hostile}),
        ("/runs", {"name": hostile, "team": "nobody"}),
        ("/runs", {"agents": {"metaManager": {"id": hostile}}}),
        ("/runs", {"agents": {"metaManager": {"provider": hostile}}}),
        ("/runs", {"agents": {"metaManager": {"command": hostile}}}),
        ("/runs", {"agents": {"units": [{"name": hostile, "manager": {}}]}}),
        ("/runs", {"env": {hostile: "x"}, "team": "nobody"}),
        ("/runs", {"env": {"X": hostile}, "team": "nobody"}),
        ("/runs", {"config": hostile}),
        (f"/sessions/{session}/messages", {"target": hostile, "message": "x"}),
        (f"/sessions/{OTHER}/clone", {"name": hostile}),
        ("/prune", {"statuses": [hostile]}),
    ]
    for path, body in bodies:
        answer = client.post(path, content=json.dumps(body), headers={"Content-Type": "application/json"})
        assert answer.status_code in (404, 409, 422), (path, body, answer.status_code, answer.text[:300])
        assert "root:" not in answer.text


@pytest.mark.parametrize("source", ["/nowhere", "\0", "../..", "a" * 5000, "\ud800", "", "/etc/passwd"])
def test_a_place_to_migrate_from_is_only_looked_at(shared: Served, source: str) -> None:
    body = json.dumps({"source": source})
    answer = shared.client().post("/migrate", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (200, 404, 409, 422), answer.text[:300]
    assert "root:" not in answer.text


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b'{"a":' * 50_000, b"1" * 10_000, b"NaN", b"\xff\xfe", b'"\\ud800"', b"null", b"[]", b"\0"]
)
def test_a_body_that_is_hard_to_read_is_bad_input(shared: Served, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    for path in ("/prune", f"/sessions/{OTHER}/messages"):
        answer = shared.client().post(path, content=body, headers=headers)
        assert answer.status_code in (400, 422), (path, answer.text[:200])


@pytest.mark.parametrize("hostile", ["../x", "/etc/passwd", "0000000000.1/../..", "%00", "9999999999.1", "a" * 64])
def test_an_event_id_names_no_file(shared: Served, hostile: str) -> None:
    with shared.client().stream("GET", f"/events?after={hostile}", headers={"Last-Event-ID": "../../x"}) as stream:
        assert stream.status_code == 200
        assert next(stream.iter_lines()).startswith("retry")


def _everything(served: Served) -> set[tuple[str, int, int]]:
    """Every file near the workspace, but what runs by itself and what a look may settle."""
    moving = (".mas/events", ".mas/server", ".mas/registry.lock", "logs/", ".lock", ".home", "serve.txt", ".cache")
    found: set[tuple[str, int, int]] = set()
    for directory, names, files in os.walk(served.site.directory):
        for name in (*names, *files):
            path = os.path.join(directory, name)
            if not any(part in f"{path}/" for part in moving):
                info = os.lstat(path)
                found.add((path, info.st_ino, info.st_size if name in files else 0))
    return found
