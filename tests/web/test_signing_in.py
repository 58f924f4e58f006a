"""Signing in: without it nothing is shown; no cookie is used; a program that is not the server is sent nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from playwright.sync_api import BrowserContext, Page, Request, expect

from tests.served import Served
from tests.site import until
from tests.web.room import Room

# Longer than the page waits before it tries again.
_A_WHILE = 2000


class Listener(ThreadingHTTPServer):
    """A program of somebody else's at a port: it answers everything, and keeps what it was sent."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Recorder)
        self.heard: list[tuple[str, dict[str, str], bytes]] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def headers(self, name: str) -> list[str]:
        return [headers[name] for _, headers, _ in self.heard if name in headers]


class _Recorder(BaseHTTPRequestHandler):
    server: Listener

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.heard.append((f"{self.command} {self.path}", headers, body))
        answer = json.dumps({"challenge": "9.0.0", "proofs": ["0" * 64] * 16, "bearer": "x", "seconds": 900}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_POST = do_DELETE = do_GET  # noqa: N815 - as the library names them

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def listening(port: int = 0) -> Iterator[Listener]:
    made = Listener(port)
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    try:
        yield made
    finally:
        made.shutdown()
        made.server_close()
        thread.join()


def _link(served: Served) -> str:
    return str(served.on_socket().post("/login-codes").json()["url"])


def _asked(page: Page, served: Served) -> list[Request]:
    """What a page asks for from now on, but for the page itself."""
    asked: list[Request] = []
    own = (f"{served.url}/assets/", f"{served.url}/login")
    page.on("request", lambda one: asked.append(one) if not one.url.startswith(own) else None)
    return asked


def test_without_signing_in_there_is_nothing_to_see(served_demo: Served, context: BrowserContext) -> None:
    page = context.new_page()
    asked = _asked(page, served_demo)
    page.goto(served_demo.url)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(page.get_by_text("mas url")).to_be_visible()
    # Without a key there is nothing to ask.
    assert [one.url for one in asked] == [f"{served_demo.url}/"]


def test_the_address_signs_in_once_and_leaves_no_code_behind(room: Room, context: BrowserContext) -> None:
    expect(room.page.get_by_role("heading", name="Sessions")).to_be_visible()
    assert room.page.url == f"{room.served.url}/"
    seen = "JSON.stringify([performance.getEntriesByType('resource'), history.state, document.referrer])"
    assert "code=" not in str(room.page.evaluate(seen))
    assert context.cookies() == []
    assert room.page.evaluate("JSON.stringify([localStorage, sessionStorage])").count("mas-page") == 0


def test_a_used_link_offers_a_new_one_and_a_signed_in_browser_just_goes_in(
    served_demo: Served, context: BrowserContext, room: Room
) -> None:
    link = _link(served_demo)
    room.page.goto(link)
    room.is_live()
    again = context.new_page()
    again.goto(link)
    expect(again.locator(".top .link")).to_have_text("Live")
    assert again.url == f"{served_demo.url}/"
    browser = context.browser
    assert browser is not None
    elsewhere = browser.new_context()
    try:
        stranger = elsewhere.new_page()
        asked = _asked(stranger, served_demo)
        stranger.goto(link)
        expect(stranger.get_by_role("heading", name="This sign-in link is used up")).to_be_visible()
        expect(stranger.get_by_text("mas url")).to_be_visible()
        assert [one.url.removeprefix(served_demo.url) for one in asked] == ["/browser/hello"]
        # The old form of the link, and one that is good.
        stranger.goto(_link(served_demo).replace("#", "?"))
        expect(stranger.locator(".top .link")).to_have_text("Live")
        assert stranger.url == f"{served_demo.url}/"
    finally:
        elsewhere.close()


def test_signing_out_ends_it_also_for_who_kept_what_the_page_sent(room: Room) -> None:
    asked = _asked(room.page, room.served)
    room.go("server")
    expect(room.page.get_by_text("ok, version")).to_be_visible()
    until(lambda: any("authorization" in one.headers for one in asked), "the page has asked for something")
    bearers = {one.headers["authorization"] for one in asked if "authorization" in one.headers}
    replay = room.served.client("")
    assert {replay.get("/sessions", headers={"Authorization": one}).status_code for one in bearers} == {200}
    room.page.get_by_role("button", name="Sign out").click()
    expect(room.page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert {replay.get("/sessions", headers={"Authorization": one}).status_code for one in bearers} == {401}
    room.page.reload()
    expect(room.page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_no_cookie_and_no_bearer_reaches_another_port_or_name(room: Room, context: BrowserContext) -> None:
    port = room.served.url.rpartition(":")[2]
    with listening() as other:
        page = context.new_page()
        # A cookie, as earlier versions had: it does reach the other port, so the listener would see one.
        context.add_cookies([{"name": f"mas-{port}", "value": "old", "url": room.served.url, "httpOnly": True}])
        page.goto(other.url)
        assert set(other.headers("cookie")) == {f"mas-{port}=old"}
        # The page clears it, and uses none.
        room.page.reload()
        room.is_live()
        assert context.cookies() == []
        other.heard.clear()
        page.goto(f"{other.url}/again")
        page.goto(f"{other.url.replace('127.0.0.1', 'localhost')}/by-name")
        # A page of that port asks the server itself, too.
        page.evaluate(
            "url => fetch(url, {mode: 'no-cors', credentials: 'include'}).catch(() => 0)", f"{room.served.url}/x"
        )
        assert len(other.heard) >= 2
        assert other.headers("cookie") == []
        assert other.headers("authorization") == []
        # The key is for this address alone.
        names = "indexedDB.databases().then(all => all.map(one => one.name))"
        assert page.evaluate(names) == []
        assert room.page.evaluate(names) == ["mas"]


def test_the_key_of_a_browser_cannot_be_read(room: Room) -> None:
    read = """async () => {
      const opening = indexedDB.open("mas", 1);
      await new Promise((done) => (opening.onsuccess = done));
      const all = opening.result.transaction("keys").objectStore("keys").getAll();
      await new Promise((done) => (all.onsuccess = done));
      const read = ({secret}) => crypto.subtle.exportKey("raw", secret).then(() => "read", (error) => error.name);
      return Promise.all(all.result.map(read));
    }"""
    assert room.page.evaluate(read) == ["InvalidAccessError"]


def test_a_new_tab_is_signed_in_without_a_click_and_a_restart_signs_nobody_out(
    room: Room, context: BrowserContext
) -> None:
    tabs = [room.page, context.new_page()]
    tabs[1].goto(room.served.url)
    for tab in tabs:
        expect(tab.locator(".top .link")).to_have_text("Live")
    room.page.evaluate("window.sameAsBefore = true")
    room.served.restart()
    name = room.start("solo", "after-the-restart")
    for tab in tabs:
        expect(tab.get_by_role("link", name="after-the-restart", exact=True)).to_be_visible()
    assert room.page.evaluate("window.sameAsBefore")
    room.served.site.mas("delete", name, "--yes")


def test_a_program_that_takes_the_port_gets_a_nonce_and_nothing_else(room: Room, context: BrowserContext) -> None:
    session = room.start("solo", "watched")
    room.go("sessions", session)
    room.open("00")
    second = context.new_page()
    second.goto(f"{room.served.url}/#/server")
    expect(second.get_by_text("ok, version")).to_be_visible()
    room.served.stop()
    with listening(int(room.served.url.rpartition(":")[2])) as thief:
        for tab in (room.page, second):
            expect(tab.get_by_role("heading", name="This is not your MAS")).to_be_visible()
            # What makes a page try again at once.
            tab.evaluate("dispatchEvent(new Event('online'))")
        room.page.wait_for_timeout(_A_WHILE)
        assert 1 <= len(thief.heard) <= 2
        for what, headers, body in thief.heard:
            assert what == "POST /browser/hello"
            assert set(json.loads(body)) == {"nonce", "keys"}
            assert not {"cookie", "authorization"} & set(headers)
        # Asked to, the page tries once more.
        thief.heard.clear()
        room.page.get_by_role("button", name="Try again").click()
        until(lambda: thief.heard, "the page has tried again")
        expect(room.page.get_by_role("heading", name="This is not your MAS")).to_be_visible()
        assert {what for what, _, _ in thief.heard} == {"POST /browser/hello"}
    room.served.restart()
    room.page.get_by_role("button", name="Try again").click()
    expect(room.terminal()).to_contain_text("00>")
    room.is_live()
    # One tab has asked; the others go on with it.
    expect(second.locator(".top .link")).to_have_text("Live")
    room.served.site.mas("delete", session, "--yes")


def test_a_browser_without_cryptography_is_told_what_to_do(served_demo: Served, context: BrowserContext) -> None:
    """As one is at an address of a network that is not encrypted."""
    page = context.new_page()
    page.add_init_script("delete Crypto.prototype.subtle")
    page.goto(_link(served_demo))
    expect(page.get_by_role("heading", name="This page needs a secure address")).to_be_visible()
    expect(page.get_by_text("ssh -L")).to_be_visible()
