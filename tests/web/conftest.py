"""A real browser in front of a real server with demo agents."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.served import Served
from tests.site import REPOSITORY, fresh_workspace
from tests.web.browser import MISSING, how_to_launch
from tests.web.room import Room

_PICTURES = os.path.join(REPOSITORY, "artefacts")
# Milliseconds that a busy machine may take.
_PATIENCE = 60_000

expect.set_options(timeout=_PATIENCE)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Not for longer than the tests of the page: where Playwright runs, nothing else has an event loop."""
    found = how_to_launch()
    if found is None:
        pytest.skip(MISSING)
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(**found)
        yield made
        made.close()


@pytest.fixture(scope="package")
def served_demo() -> Iterator[Served]:
    """A workspace of demo agents and its server, for all tests: each makes sessions of its own."""
    with fresh_workspace() as site, closing(Served(site)) as made:
        yield made


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport={"width": 1280, "height": 800}, locale="en-GB")
    made.set_default_timeout(_PATIENCE)
    yield made
    made.close()


@pytest.fixture
def room(served_demo: Served, context: BrowserContext, request: pytest.FixtureRequest) -> Iterator[Room]:
    """A signed-in browser. A script that fails, or is refused by the page's own policy, fails the test."""
    page: Page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "console",
        lambda said: wrong.append(said.text) if said.type == "error" and "Failed to load" not in said.text else None,
    )
    made = Room(served_demo, page, _PICTURES)
    made.sign_in()
    yield made
    made.picture(request.node.name.removeprefix("test_"))
    assert [text for text in wrong if "WebSocket" not in text] == []


@pytest.fixture(scope="module")
def team(served_demo: Served) -> Iterator[str]:
    """A team, for all tests of a module."""
    session = served_demo.site.start("--team", "dev", "--name", "shop")
    yield session
    served_demo.site.mas("delete", session, "--yes")


@pytest.fixture
def looking(room: Room, team: str) -> Room:
    """Somebody who looks at that team."""
    room.go("sessions", team)
    expect(room.page.locator(".tile .badge.is-idle").first).to_be_visible()
    return room
