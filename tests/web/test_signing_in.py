"""Signing in: without it nothing is shown, and the code is kept nowhere."""

from __future__ import annotations

from playwright.sync_api import BrowserContext, expect

from tests.served import Served
from tests.web.room import Room


def test_without_signing_in_there_is_nothing_to_see(served_demo: Served, context: BrowserContext) -> None:
    page = context.new_page()
    asked: list[tuple[str, int]] = []
    page.on("response", lambda answer: asked.append((answer.url.removeprefix(served_demo.url), answer.status)))
    page.goto(served_demo.url)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(page.get_by_text("mas url")).to_be_visible()
    data = {(path, status) for path, status in asked if path != "/" and not path.startswith("/assets/")}
    assert data
    assert {status for _, status in data} == {401}


def test_the_address_signs_in_once_and_leaves_no_code_behind(room: Room, context: BrowserContext) -> None:
    expect(room.page.get_by_role("heading", name="Sessions")).to_be_visible()
    room.is_live()
    assert room.page.url == f"{room.served.url}/"
    assert "code=" not in str(
        room.page.evaluate("JSON.stringify([performance.getEntriesByType('resource'), history.state])")
    )
    used = room.served.site.mas("url").stdout.strip()
    assert context.request.get(used).ok
    assert context.request.get(used).status == 401


def test_signing_out_ends_it(room: Room) -> None:
    room.go("server")
    room.page.get_by_role("button", name="Sign out").click()
    expect(room.page.get_by_role("heading", name="Sign in")).to_be_visible()
