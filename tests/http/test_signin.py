"""Signing in: page and server prove themselves to each other with a code, then with a key, and no cookie is used."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as connect_websocket
from websockets.typing import Origin, Subprotocol

from mas.model.browser import Place
from mas.model.errors import NotSignedIn
from mas.service.access import Access
from mas.service.browsers import (
    BEARER_LIFE,
    CODE_LIFE,
    MOST_BROWSERS,
    TICKET_LIFE,
    UNUSED_LIFE,
    Browsers,
    Hello,
    name_of,
)
from mas.store.layout import Layout
from mas.store.server.browsers import BrowserFile
from mas.store.server.secrets import Secrets
from tests.http.raw import ask, request
from tests.page_key import PageKey, mac, page_of
from tests.served import Served
from tests.site import Site

PLACE = Place("127.0.0.1:7717", "http://127.0.0.1:7717")
NONCE = "0" * 32


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def elapsed() -> Clock:
    """One that no page can set."""
    return Clock()


@pytest.fixture
def layout(bare: Site) -> Layout:
    bare.mas("init", bare.root)
    return Layout(bare.root)


@pytest.fixture
def browsers(layout: Layout, clock: Clock, elapsed: Clock) -> Browsers:
    return _browsers(layout, clock, elapsed)


def _browsers(layout: Layout, clock: Clock, elapsed: Clock) -> Browsers:
    """Those of another run of the server, too."""
    return Browsers(Secrets(layout), BrowserFile(layout), clock, elapsed)


class Keyed:
    """A browser's key, without a server in between."""

    def __init__(self, browsers: Browsers, code: str) -> None:
        self.name, self.secret = name_of(code), code
        self.bearer = self.enter(browsers)

    def enter(self, browsers: Browsers, place: Place = PLACE) -> str:
        """The bearer; `NotSignedIn` if the key is not good."""
        challenge = browsers.greet(place, NONCE, [self.name]).challenge
        proof = mac(self.secret, f"page {self.name} {place.shown} {NONCE} {challenge}")
        given = browsers.admit(place, Hello(self.name, NONCE, challenge, proof))
        if given.key:
            seal = int(mac(self.secret, f"seal {challenge}"), 16)
            self.name, self.secret = given.key.name, f"{int(given.key.sealed, 16) ^ seal:064x}"
        return given.bearer


def test_a_code_is_good_once(shared: Served) -> None:
    login = shared.client().post("/login-codes").json()
    # A browser does not send what follows the #.
    assert login["url"] == f"{shared.url}/login#code={login['code']}"
    first = PageKey(shared.client(""), login["code"])
    assert shared.client(first.sign_in()).get("/sessions").status_code == 200
    second = PageKey(shared.client(""), login["code"])
    greeting = second.hello()
    assert not second.is_proven_by(greeting)
    assert second.prove(greeting).status_code == 401


def test_a_guessed_code_is_none(shared: Served) -> None:
    code = shared.client().post("/login-codes").json()["code"]
    for guess in ("", code[:-1], f"{code}0", code.upper(), "0" * 48, "é"):
        key = PageKey(shared.client(""), guess)
        for name in (key.name, mac(code, "name")[:32]):
            key.name = name
            greeting = key.hello()
            assert not key.is_proven_by(greeting), guess
            assert key.prove(greeting).status_code == 401, guess
    for name in ("", "x" * 32, "0" * 33, "../../token"):
        answer = shared.client("").post("/browser/hello", json={"nonce": NONCE, "keys": [name]})
        assert answer.status_code == 422, name


def test_only_the_owner_makes_codes(shared: Served) -> None:
    assert shared.client("").post("/login-codes").status_code == 401
    url = shared.site.mas("url").stdout.strip()
    key = PageKey(shared.client(""), url.rpartition("=")[2])
    assert shared.client(key.sign_in()).get("/sessions").status_code == 200
    # A page signs in no other browser but by its bearer, which is the owner's.
    assert shared.client(key.bearer).post("/login-codes", headers={"Origin": shared.url}).status_code == 201


def test_neither_code_nor_key_is_ever_sent(shared: Served) -> None:
    sent: list[str] = []
    client = shared.client("")
    client.event_hooks = {
        "request": [lambda one: sent.append(one.content.decode() + str(one.url) + str(one.headers))],
        "response": [lambda one: sent.append(one.read().decode() + str(one.headers))],
    }
    code = shared.client().post("/login-codes").json()["code"]
    key = PageKey(client, code)
    key.sign_in()
    key.sign_in()
    assert "challenge" in "".join(sent)
    assert code not in "".join(sent)
    assert key.secret not in "".join(sent)


def test_no_cookie_is_set_or_accepted_and_an_old_one_is_cleared(shared: Served) -> None:
    page = page_of(shared)
    name = f"mas-{shared.url.rpartition(':')[2]}"
    for path in ("/", "/login", "/login?code=x", "/health"):
        answer = shared.client("").get(path)
        assert "set-cookie" not in answer.headers, path
    for value in (page.bearer, shared.token, mac(shared.token, "cookie 9999999999"), f"9999999999.{'0' * 64}"):
        assert ask(shared, request(shared, "GET /sessions", f"Cookie: {name}={value}", token=False)).status == 401
    until = "9999999999"
    good = f"{name}={until}.{mac(shared.token, f'cookie {until}')}"
    assert ask(shared, request(shared, "GET /sessions", f"Cookie: {good}", token=False)).status == 401
    for path in ("/", "/login"):
        cleared = ask(shared, request(shared, f"GET {path}", f"Cookie: other=1; {good}", token=False)).headers[
            "set-cookie"
        ]
        assert re.match(rf'{name}=""; .*Max-Age=0', cleared)


def test_a_server_proves_itself_to_the_browsers_that_signed_in_to_it_also_after_a_restart(served: Served) -> None:
    page = page_of(served)
    old = page.bearer
    served.restart()
    assert page.is_proven_by(page.hello())
    assert served.client(old).get("/sessions").status_code == 401
    assert served.client(page.sign_in()).get("/sessions").status_code == 200


def test_another_server_cannot_prove_itself_and_learns_nothing(shared: Served, served: Served) -> None:
    page = page_of(shared)
    elsewhere = PageKey(served.client(""), "", page.host)
    elsewhere.name, elsewhere.secret = page.name, page.secret
    assert not elsewhere.is_proven_by(elsewhere.hello())
    assert elsewhere.prove(elsewhere.hello()).status_code == 401
    # What was proven to one is no proof for the other.
    assert elsewhere.prove(page.hello()).status_code == 401


def test_the_same_server_at_another_port_cannot_be_asked_for_the_proof(site: Site) -> None:
    """A program that took the port passes on what the page sends, with the headers that the page sent."""
    first = Served(site)
    try:
        page = page_of(first)
    finally:
        first.close()
    moved = Served(site)
    try:
        assert moved.url != first.url
        relayed = PageKey(moved.client(""), "", page.host, Host=page.host, Origin=first.url)
        relayed.name, relayed.secret = page.name, page.secret
        assert not relayed.is_proven_by(relayed.hello())
        assert relayed.prove(relayed.hello()).status_code == 401
    finally:
        moved.close()


def test_a_bearer_is_good_at_the_address_it_was_made_for(shared: Served) -> None:
    page = page_of(shared)
    port = shared.url.rpartition(":")[2]
    client = shared.client(page.bearer)
    assert client.get("/sessions").status_code == 200
    for host in (f"localhost:{port}", "127.0.0.1:1", "127.0.0.1", f"[::1]:{port}"):
        assert client.get("/sessions", headers={"Host": host}).status_code == 401, host


def test_an_altered_bearer_is_none(shared: Served) -> None:
    page = page_of(shared)
    word, name, until, proof = page.bearer.split(".")
    for altered in (
        word,
        f"{word}.",
        f"{word}...",
        f"{word}.{name}.{until}.",
        f"{word}.{name}.{int(until) + 1}.{proof}",
        f"{word}.{name}.0{until}.{proof}",
        f"{word}.{'0' * 32}.{until}.{proof}",
        f"{word}.{name}.{until}.{proof[:-1]}",
        f"{word}.{name}.{until}.{proof}0",
        f"{word}.{name}.{until}.{'0' * 64}",
        f"{word}.{'9' * 5000}.{proof}",
        f"{word}.{name}.{until}.{proof}\xff",
        f"mas-agent.{name}.{until}.{proof}",
    ):
        given = f"Authorization: Bearer {altered}"
        assert ask(shared, request(shared, "GET /sessions", given, token=False)).status == 401, altered[:80]
    assert shared.client(page.bearer).get("/sessions").status_code == 200


def test_signing_out_ends_the_key_its_bearers_and_its_tickets(shared: Served) -> None:
    page, other = page_of(shared), page_of(shared)
    ticket = page.ticket("/docs")
    assert page.client.post("/logout", headers={"Origin": shared.url}).status_code == 204
    assert shared.client(page.bearer).get("/sessions").status_code == 401
    assert shared.client("").get(f"/docs?ticket={ticket}").status_code == 401
    # The server can still prove itself: so the page knows that it was its own server which signed it out.
    greeting = page.hello()
    assert page.is_proven_by(greeting)
    assert page.prove(greeting).status_code == 401
    assert shared.client(other.bearer).get("/sessions").status_code == 200


def test_signing_out_ends_streams_and_terminals(served: Served) -> None:
    session = served.site.start("--team", "solo", "--command", "cat")
    page = page_of(served)
    path = f"/sessions/{session}/agents/00/terminal"
    with page.client.stream("GET", "/events", params={"after": "0"}) as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith("retry")
        with _terminal(served, path, page.ticket(path)) as terminal:
            terminal.recv(timeout=90)
            other = served.client(page.bearer)
            assert other.post("/logout", headers={"Origin": served.url}).status_code == 204
            served.site.mas("send", "--force", "--session", session, "00", "after")
            with suppress(ConnectionClosed):
                while True:
                    terminal.recv(timeout=60)
            assert terminal.close_code == 1008
        assert not [line for line in lines if "after" in line]


def _terminal(served: Served, path: str, ticket: str, origin: str | None = None) -> ClientConnection:
    offered = [Subprotocol("mas"), Subprotocol(f"ticket.{ticket}")]
    url = served.url.replace("http", "ws") + path
    return connect_websocket(url, subprotocols=offered, origin=Origin(origin or served.url), proxy=None)


def test_a_ticket_opens_one_address_once(shared: Served) -> None:
    page = page_of(shared)
    nobody = shared.client("")
    ticket = page.ticket("/docs")
    assert nobody.get(f"/docs?ticket={ticket}").status_code == 200
    assert nobody.get(f"/docs?ticket={ticket}").status_code == 401
    for target, asked in (
        ("/docs", "/openapi.json?ticket={}"),
        ("/docs", "/docs?x=1&ticket={}"),
        ("/docs?x=1", "/docs?ticket={}"),
        ("/docs?x=1", "/docs?x=2&ticket={}"),
        ("/docs", "/docs?ticket={}&x=1"),
        ("/docs", "/docs?xticket={}"),
        ("/docs", "/docs#ticket={}"),
    ):
        ticket = page.ticket(target)
        assert nobody.get(asked.format(ticket)).status_code == 401, asked
    assert nobody.get(f"/docs?x=1&ticket={page.ticket('/docs?x=1')}").status_code == 200
    # It changes nothing.
    assert nobody.post(f"/repair?ticket={page.ticket('/repair')}", headers={"Origin": shared.url}).status_code == 401
    # Other clients have a token, and no key that a ticket could end with.
    assert shared.client().post("/browser/ticket", json={"target": "/docs"}).status_code == 403
    assert nobody.post("/browser/ticket", json={"target": "/docs"}).status_code == 401


def test_a_ticket_opens_a_websocket_of_this_page_once(shared: Served) -> None:
    page = page_of(shared)
    path = "/terminals"
    ticket = page.ticket(path)
    for origin in ("http://evil.example", "null"):
        assert _refusal(shared, path, page.ticket(path), origin) == 403
    assert _refusal(shared, "/sessions/x/agents/00/terminal", page.ticket(path)) == 401
    with _terminal(shared, path, ticket) as terminal:
        assert terminal.subprotocol == "mas"
    assert _refusal(shared, path, ticket) == 401
    assert _refusal(shared, path, page.bearer) == 401


def _refusal(served: Served, path: str, ticket: str, origin: str | None = None) -> int:
    with pytest.raises(InvalidStatus) as refused, _terminal(served, path, ticket, origin):
        pass
    return refused.value.response.status_code


def test_a_browser_signs_in_to_two_servers_of_one_machine(shared: Served, served: Served) -> None:
    for page, server in ((page_of(shared), shared), (page_of(served), served)):
        assert server.client(page.bearer).get("/sessions").status_code == 200


def test_the_file_of_browsers_is_for_its_user_alone_and_has_no_key_in_it(served: Served) -> None:
    page = page_of(served)
    path = served.site.path("sessions", ".mas", "server", "browsers.json")
    assert os.stat(path).st_mode & 0o777 == 0o600
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert [one["name"] for one in json.loads(text)["browsers"]] == [page.name]
    assert page.secret not in text
    # One that somebody else wrote into it is none of ours.
    body = json.loads(text)
    body["browsers"][0]["name"] = "0" * 32
    _replace(path, json.dumps(body))
    assert served.client(page.bearer).get("/sessions").status_code == 401
    for damage in ("", "{", "[]", '{"version":2,"browsers":[]}', '{"version":1,"browsers":[1]}', '{"version":1}'):
        _replace(path, damage)
        answer = served.client(page.bearer).get("/sessions")
        assert (answer.status_code, answer.json()["code"]) == (500, "corrupt"), damage
        assert served.client().get("/sessions").status_code == 200
    os.unlink(path)
    assert served.client(page.bearer).get("/sessions").status_code == 401
    assert served.client(page_of(served).bearer).get("/sessions").status_code == 200


def _replace(path: str, text: str) -> None:
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(f"{path}.new", path)


def test_a_code_is_good_for_minutes(browsers: Browsers, elapsed: Clock) -> None:
    early, late = browsers.new_code(), browsers.new_code()
    elapsed.now += CODE_LIFE - 1
    Keyed(browsers, early)
    with pytest.raises(NotSignedIn):
        Keyed(browsers, early)
    elapsed.now += 1
    with pytest.raises(NotSignedIn):
        Keyed(browsers, late)


def test_a_code_is_good_for_no_longer_when_the_clock_is_set_back(
    browsers: Browsers, clock: Clock, elapsed: Clock
) -> None:
    code = browsers.new_code()
    elapsed.now += CODE_LIFE
    clock.now -= CODE_LIFE
    with pytest.raises(NotSignedIn):
        Keyed(browsers, code)


def test_unused_codes_do_not_pile_up(browsers: Browsers) -> None:
    codes = [browsers.new_code() for _ in range(1000)]
    assert len(set(codes)) == 1000
    with pytest.raises(NotSignedIn):
        Keyed(browsers, codes[1000 - 65])
    Keyed(browsers, codes[1000 - 64])


def test_a_code_is_no_longer_good_than_the_token(browsers: Browsers, layout: Layout) -> None:
    code = browsers.new_code()
    Access(Secrets(layout)).renew_owner_token()
    with pytest.raises(NotSignedIn):
        Keyed(browsers, code)


def test_a_bearer_is_good_for_minutes_and_for_one_run(
    browsers: Browsers, layout: Layout, clock: Clock, elapsed: Clock
) -> None:
    key = Keyed(browsers, browsers.new_code())
    assert browsers.bearer_of(key.bearer, PLACE.shown) == key.name
    again = _browsers(layout, clock, elapsed)
    assert again.bearer_of(key.bearer, PLACE.shown) is None
    assert again.bearer_of(key.enter(again), PLACE.shown) == key.name
    elapsed.now += BEARER_LIFE - 1
    assert browsers.bearer_of(key.bearer, PLACE.shown) == key.name
    elapsed.now += 1
    assert browsers.bearer_of(key.bearer, PLACE.shown) is None
    # What was opened with it meanwhile stays open.
    assert browsers.knows(key.name, PLACE.shown)


def test_a_key_is_good_until_it_was_not_used_for_a_month_and_no_longer_than_the_token(
    browsers: Browsers, layout: Layout, clock: Clock
) -> None:
    key, other = (Keyed(browsers, browsers.new_code()) for _ in range(2))
    clock.now += UNUSED_LIFE - 1
    key.enter(browsers)
    clock.now += UNUSED_LIFE - 1
    key.enter(browsers)
    with pytest.raises(NotSignedIn):
        other.enter(browsers)
    Access(Secrets(layout)).renew_owner_token()
    with pytest.raises(NotSignedIn):
        key.enter(browsers)


def test_a_key_is_for_one_address_of_one_server(browsers: Browsers) -> None:
    key = Keyed(browsers, browsers.new_code())
    for place in (Place("localhost:7717", PLACE.listens), Place(PLACE.shown, "http://127.0.0.1:7718")):
        with pytest.raises(NotSignedIn):
            key.enter(browsers, place)


def test_a_challenge_is_good_for_seconds_and_for_one_run(
    browsers: Browsers, layout: Layout, clock: Clock, elapsed: Clock
) -> None:
    key = Keyed(browsers, browsers.new_code())
    for other, wait in ((_browsers(layout, clock, elapsed), 0), (browsers, 60)):
        challenge = other.greet(PLACE, NONCE, [key.name]).challenge
        elapsed.now += wait
        proof = mac(key.secret, f"page {key.name} {PLACE.shown} {NONCE} {challenge}")
        with pytest.raises(NotSignedIn):
            browsers.admit(PLACE, Hello(key.name, NONCE, challenge, proof))


def test_the_browser_that_was_not_used_for_longest_makes_room(browsers: Browsers, clock: Clock) -> None:
    first, second, *others = (Keyed(browsers, browsers.new_code()) for _ in range(MOST_BROWSERS))
    clock.now += 7200
    first.enter(browsers)
    others.append(Keyed(browsers, browsers.new_code()))
    for key in (first, *others):
        key.enter(browsers)
    with pytest.raises(NotSignedIn):
        second.enter(browsers)


def test_a_ticket_is_good_for_seconds(browsers: Browsers, elapsed: Clock) -> None:
    key = Keyed(browsers, browsers.new_code())
    early, late = (browsers.new_ticket(key.name, PLACE.shown, "/docs") for _ in range(2))
    elapsed.now += TICKET_LIFE - 1
    assert browsers.spend_ticket(early, PLACE.shown, "/docs") == key.name
    elapsed.now += 1
    assert browsers.spend_ticket(late, PLACE.shown, "/docs") is None
    assert browsers.spend_ticket(browsers.new_ticket(key.name, PLACE.shown, "/docs"), "localhost:7717", "/docs") is None
