"""The guard: which requests reach the routes at all, by Host, Origin and the form of the request."""

from __future__ import annotations

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect as connect_websocket
from websockets.typing import Origin

from mas import __version__
from tests.http.raw import ask, connect, parsed, request, rest_of
from tests.page_key import PageKey, page_of
from tests.served import Served
from tests.site import until

SECURITY = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
NOWHERE = "/sessions/0b5fb5a5-5b2c-4a5e-9d3c-0123456789ab/agents/00/terminal"


@pytest.fixture(scope="module")
def browser(shared: Served) -> httpx.Client:
    """A page that is signed in: it has a bearer of its own."""
    return page_of(shared).client


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:80", "localhost", "LocalHost:7717", "[::1]", "[::1]:80"])
def test_the_servers_own_names_are_known_with_any_port(shared: Served, host: str) -> None:
    assert ask(shared, request(shared, host=host)).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:80",
        "EVIL.example",
        "localhost.",
        "localhost.evil.example",
        "evil.example\r\nHost: 127.0.0.1",
        "127.0.0.1\r\nHost: evil.example",
        "127.0.0.1\r\nHost: 127.0.0.1",
        "127.0.0.1, evil.example",
        "evil.example@127.0.0.1",
        "127.0.0.1@evil.example",
        "127.0.0.1/evil",
        "127.0.0.1#.evil.example",
        "127.0.0.1?.evil.example",
        "127.0.0.1:evil",
        "127.0.0.1 evil",
        "[::2]",
        "[::1",
        "[::1]evil.example",
        "0.0.0.0",
        "127.0.0.2",
        "2130706433",
        "0x7f.1",
        "\xe9vil.example",
        "a" * 5000,
        "",
        None,
    ],
)
@pytest.mark.parametrize("path", ["/sessions", "/health", "/login?code=x"])
def test_a_foreign_host_is_refused_whatever_else_is_right(shared: Served, host: str | None, path: str) -> None:
    answer = ask(shared, request(shared, f"GET {path}", host=host))
    assert answer.status == 403
    assert b'"forbidden"' in answer.body


def test_the_address_in_the_request_line_goes_before_the_host_header(shared: Served) -> None:
    assert ask(shared, request(shared, "GET http://evil.example/sessions")).status == 403
    assert ask(shared, request(shared, "GET http://127.0.0.1@evil.example/sessions")).status == 403
    assert ask(shared, request(shared, "GET http://127.0.0.1/sessions", host="evil.example")).status == 200
    assert ask(shared, request(shared, "GET http://127.0.0.1/sessions")).status == 200


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "",
        "http://127.0.0.1:1",
        "http://127.0.0.1",
        "http://localhost:{port}",
        "http://127.0.0.1:{port}.evil.example",
        "http://evil.example@127.0.0.1:{port}",
        "ftp://127.0.0.1:{port}",
        "file://",
        "127.0.0.1:{port}",
    ],
)
def test_pages_of_other_servers_may_not_use_this_one(shared: Served, browser: httpx.Client, origin: str) -> None:
    headers = {"Origin": origin.format(port=shared.url.rpartition(":")[2])}
    for client in (browser, shared.client(), shared.client("")):
        assert client.get("/sessions", headers=headers).status_code == 403
        assert client.post("/repair", headers=headers).status_code == 403
        assert client.options("/sessions", headers=headers).status_code == 403


def test_the_servers_own_page_may_use_it_with_its_bearer(shared: Served, browser: httpx.Client) -> None:
    own = {"Origin": shared.url}
    assert browser.get("/sessions").status_code == 200
    assert browser.get("/sessions", headers=own).status_code == 200
    assert browser.post("/repair", headers=own).status_code == 200
    assert browser.get("/sessions", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200
    assert browser.get("/docs", headers={"Sec-Fetch-Site": "none"}).status_code == 200


def test_with_a_pages_bearer_alone_nothing_is_changed(shared: Served, browser: httpx.Client) -> None:
    """A browser names the page's origin with all that changes something."""
    for method in ("POST", "DELETE", "PUT", "PATCH"):
        answer = browser.request(method, "/repair")
        assert answer.status_code == 403, method
        assert "Origin" in answer.json()["detail"]
    assert shared.client().post("/repair").status_code == 200


@pytest.mark.parametrize("site", ["same-site", "cross-site"])
def test_a_page_at_another_port_cannot_ask_with_the_bearer_of_this_one(
    shared: Served, browser: httpx.Client, site: str
) -> None:
    asked = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
    assert browser.get("/sessions", headers=asked).status_code == 403
    followed = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}
    assert browser.get("/docs", headers=followed).status_code == 200
    assert shared.client().get("/sessions", headers=asked).status_code == 200


@pytest.mark.parametrize("path", [NOWHERE, "/nowhere", "/sessions"])
def test_a_websocket_is_guarded_before_anybody_asks_where_it_leads(
    shared: Served, browser: httpx.Client, path: str
) -> None:
    page = {"Authorization": browser.headers["Authorization"]}
    token = {"Authorization": f"Bearer {shared.token}"}
    own = Origin(shared.url)
    evil = Origin("http://evil.example")
    assert _handshake(shared, path, {}, None) == 401
    assert _handshake(shared, path, {"Authorization": "Bearer wrong"}, own) == 401
    for proof in (page, token, {}):
        assert _handshake(shared, path, proof, evil) == 403
        assert _handshake(shared, path, proof, Origin("null")) == 403
    # Programs without a page have a token.
    assert _handshake(shared, path, page, None) == 403
    if path == NOWHERE:
        # Who may come in learns there that no such session exists.
        assert _handshake(shared, path, page, own) == 101
        assert _handshake(shared, path, token, None) == 101
        assert _handshake(shared, path, token, own) == 101


def test_a_websocket_with_a_foreign_host_is_refused(shared: Served) -> None:
    upgrade = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13")
    key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="
    for host in ("evil.example", "127.0.0.1\r\nHost: evil.example"):
        head = request(shared, f"GET {NOWHERE}", *upgrade, key, host=host).replace(b"Connection: close\r\n", b"")
        assert ask(shared, head).status == 403, host


@pytest.mark.parametrize(
    "headers",
    [
        ("Content-Length: 2",),
        (),
        ("Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", f"X: {'a' * 20_000}"),
        ("Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", *(f"X-{number}: a" for number in range(300))),
        ("Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "X: \xe9"),
    ],
    ids=["a body", "no key", "a long header", "many headers", "not ASCII"],
)
def test_a_websocket_that_cannot_be_opened_is_not_kept(shared: Served, headers: tuple[str, ...]) -> None:
    head = request(shared, "GET /nowhere", "Upgrade: websocket", "Connection: Upgrade", *headers, token=False)
    answer = ask(shared, head.replace(b"Connection: close\r\n", b"") + b"{}")
    assert answer.status in (0, 400, 401, 403, 426, 431)


@pytest.mark.parametrize("path", ["/nowhere", "/openapi.json", "/docs", "/metrics", "/events", "/assets", "/sessions/"])
def test_nothing_can_be_learned_without_a_token(shared: Served, path: str) -> None:
    for method in ("GET", "POST", "HEAD", "OPTIONS", "PUT"):
        answer = shared.client("").request(method, path)
        assert answer.status_code == 401, (method, path)
        assert answer.headers["www-authenticate"] == "Bearer"


def test_what_needs_no_token_says_no_more_than_it_must(shared: Served) -> None:
    nobody = shared.client("")
    assert nobody.get("/health").json() == {"status": "ok", "version": None, "isolation": None, "failing": []}
    assert shared.client("wrong").get("/health").json()["version"] is None
    known = shared.client().get("/health").json()
    assert known["version"] == __version__
    assert known["isolation"]["tier"]
    assert nobody.get("/login").content == nobody.get("/").content
    assert nobody.get("/favicon.ico").status_code == 404
    assert nobody.get("/health/").status_code == 401
    assert ask(shared, request(shared, "GET //health", token=False)).status == 401


def test_every_answer_has_the_headers_that_keep_browsers_careful(shared: Served) -> None:
    answers = [
        shared.client().get("/sessions"),
        shared.client().get("/docs"),
        shared.client().get("/nowhere"),
        shared.client().delete("/sessions"),
        shared.client("").get("/sessions"),
        shared.client("").get("/health"),
        shared.client().get("/sessions", headers={"Host": "evil.example"}),
        shared.client().post("/runs", content=b"{"),
    ]
    found = {answer.status_code: dict(answer.headers) for answer in answers}
    invalid = ask(shared, b"what is this\r\n\r\n")
    found[invalid.status] = invalid.headers
    assert set(found) == {200, 400, 401, 403, 404, 405, 422}
    for status, headers in found.items():
        assert SECURITY.items() <= headers.items(), status
        assert "default-src 'none'" in headers["content-security-policy"], status
        assert "server" not in headers, status


@pytest.mark.parametrize(
    ("line", "headers", "body"),
    [
        ("POST /runs", ("Content-Length: 5", "Transfer-Encoding: chunked"), "0\r\n\r\n"),
        ("POST /runs", ("Transfer-Encoding: chunked", "Content-Length: 5"), "0\r\n\r\n"),
        ("POST /runs", ("Content-Length: 5", "Content-Length: 6"), "hello"),
        ("POST /runs", ("Content-Length: +5",), "hello"),
        ("POST /runs", ("Content-Length: -5",), "hello"),
        ("POST /runs", ("Content-Length: 5, 5",), "hello"),
        ("POST /runs", (f"Content-Length: {'9' * 30}",), "hello"),
        ("POST /runs", ("Transfer-Encoding: xchunked",), "0\r\n\r\n"),
        ("POST /runs", ("Transfer-Encoding: chunked, identity",), "0\r\n\r\n"),
        ("POST /runs", ("Transfer-Encoding : chunked",), "0\r\n\r\n"),
        ("POST /runs", ("Transfer-Encoding: chunked",), "zz\r\n"),
        ("POST /runs", ("Transfer-Encoding: chunked",), "ffffffffffffffffff\r\nx"),
        ("GET /sessions", ("X: a\r\n folded",), ""),
        ("GET /sessions", ("X: a\nY: b",), ""),
        ("GET /sessions", ("X\0: a",), ""),
        ("GET /sessions", ("X: a\0b",), ""),
        ("GET /sessions\xff", (), ""),
        ("GET /sessions?\xff", (), ""),
        ("GET sessions", (), ""),
        ("CONNECT evil.example:80", (), ""),
        ("BREW /sessions", (), ""),
    ],
)
def test_a_request_that_could_be_read_in_two_ways_is_read_in_none(
    shared: Served, line: str, headers: tuple[str, ...], body: str
) -> None:
    answer = ask(shared, request(shared, line, *headers) + body.encode("latin-1"))
    assert answer.status == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert b'"bad-request"' in answer.body
    assert shared.client().get("/sessions").json()["total"] == 0


@pytest.mark.parametrize("data", [b"\x16\x03\x01\x02\x00\x01", b"\0" * 1000, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"])
def test_what_is_no_http_is_answered_and_closed(shared: Served, data: bytes) -> None:
    assert ask(shared, data).status == 400


def test_requests_sent_ahead_are_answered_in_their_order(shared: Served) -> None:
    kept = request(shared).replace(b"Connection: close\r\n", b"")
    refused = request(shared, "GET /nowhere").replace(b"Connection: close\r\n", b"")
    with connect(shared) as wire:
        wire.sendall(kept + refused + kept + request(shared, "GET /health"))
        received = rest_of(wire)
    first, *others = received.split(b"HTTP/1.1 ")[1:]
    assert [int(answer[:3]) for answer in (first, *others)] == [200, 404, 200, 200]


def test_a_refusal_ends_what_was_sent_behind_it(shared: Served) -> None:
    """Nothing that follows a refused request on the same connection is taken for another caller's."""
    stranger = request(shared, host="evil.example").replace(b"Connection: close\r\n", b"")
    with connect(shared) as wire:
        wire.sendall(stranger + request(shared, "POST /runs", "Content-Length: 0"))
        received = rest_of(wire)
    assert received.count(b"HTTP/1.1 ") == 1
    assert parsed(received).status == 403
    assert shared.client().get("/sessions").json()["total"] == 0


def test_a_token_is_never_shown_again(shared: Served) -> None:
    client = shared.client()
    answers = [
        client.get("/sessions", params={"status": shared.token[:8]}).text,
        client.get("/nowhere", headers={"X-Request-ID": f"{shared.token}!"}).text,
        client.post("/runs", json={"team": "nobody"}).text,
        shared.client(f"{shared.token}x").get("/sessions").text,
        ask(shared, request(shared, host="evil.example")).body.decode(),
        ask(shared, b"GET /sessions HTTP/1.1\r\nAuthorization: Bearer " + shared.token.encode() + b"\0\r\n\r\n").body,
        client.get("/metrics").text,
    ]
    assert not any(shared.token in str(answer) for answer in answers)
    page = PageKey(shared.client(""), client.post("/login-codes").json()["code"], Origin=shared.url)
    code = page.secret
    page.sign_in()
    ticket = page.ticket("/docs")
    asked = f"/docs?ticket={ticket}"
    assert shared.client("").get(asked, headers={"X-Request-ID": "the-last"}).status_code == 200
    until(lambda: "the-last" in _read(shared.log), "the log is written")
    written = _read(shared.log) + _read(shared.said)
    for secret in (code, page.secret, page.bearer, ticket, shared.token):
        assert secret not in written


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _handshake(served: Served, path: str, headers: dict[str, str], origin: Origin | None) -> int:
    url = served.url.replace("http://", "ws://") + path
    try:
        with connect_websocket(url, additional_headers=headers, origin=origin, open_timeout=90, proxy=None):
            return 101
    except InvalidStatus as error:
        return error.response.status_code
