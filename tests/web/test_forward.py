"""What an agent serves, opened from the page: by the list of ports, and by a link in its terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.served import Served
from tests.web.room import Room
from tests.web.test_manners import found_by_axe
from tests.web.test_network import fits

_SERVE = "mkdir -p site && echo shop-window > site/index.html && python3 -u -m http.server -d site -b 127.0.0.1 3000"
# Where some text in the terminal is on the page.
_PLACE = """text => {
  const row = [...document.querySelectorAll('.whole .xterm-rows > div')].find(one => one.textContent.includes(text));
  if (!row) return null;
  const walk = document.createTreeWalker(row, NodeFilter.SHOW_TEXT), range = document.createRange();
  let at = row.textContent.indexOf(text) + 3, node;
  while ((node = walk.nextNode()) && at >= node.data.length) at -= node.data.length;
  range.setStart(node, at); range.setEnd(node, at + 1);
  const box = range.getBoundingClientRect();
  return {x: box.x + box.width / 2, y: box.y + box.height / 2};
}"""


@pytest.fixture
def serving(served_demo: Served) -> Iterator[str]:
    """A session with a network of its own, in which an agent serves a page."""
    site = served_demo.site
    with open(site.path("serving.json"), "w", encoding="utf-8") as file:
        json.dump({"team": "solo", "name": "window", "provider": "shell"}, file)
    done = site.mas("start", "--config", site.path("serving.json"), env={"MAS_ISOLATION": "A"}, code=None)
    if done.returncode == 7:
        pytest.skip(f"this machine has no tier A: {done.stderr.strip().splitlines()[0]}")
    assert done.returncode == 0, done.stderr
    session = done.stdout.strip()
    site.mas("send", f"{session}:00", _SERVE)
    yield session
    site.mas("delete", session, "--yes")


def opened_by(room: Room, session: str) -> Page:
    """The page that a click on the forward's address opens."""
    link = room.page.get_by_role("link", name=f"http://3000-{session[:8]}.localhost:")
    assert link.get_attribute("rel") == "noreferrer noopener"
    with room.page.context.expect_page() as coming:
        link.click()
    page = coming.value
    expect(page.get_by_text("shop-window")).to_be_visible()
    assert page.evaluate("[opener, document.referrer, document.cookie, localStorage.length]") == [None, "", "", 0]
    assert page.evaluate("location.hostname") == f"3000-{session[:8]}.localhost"
    return page


def test_a_port_in_the_list_is_opened_and_closed(room: Room, serving: str) -> None:
    page = room.page
    room.go("sessions", serving, "network")
    row = page.locator(".ports li", has_text="3000")
    expect(row).to_contain_text("agent 00")
    row.get_by_role("button", name="Open… port 3000").click()
    for width in (1440, 1000, 390):
        page.set_viewport_size({"width": width, "height": 800})
        assert fits(page), width
        room.picture(f"forward-question-{width}")
    page.get_by_role("button", name="Open a forward").click()
    shown = opened_by(room, serving)
    expect(row.get_by_role("link")).to_have_attribute("href", shown.url)
    for width in (1440, 1000, 390):
        page.set_viewport_size({"width": width, "height": 800})
        assert fits(page), width
        room.picture(f"forward-list-{width}")
    assert found_by_axe(page) == []
    row.get_by_role("button", name="Close the forward to port 3000").click()
    expect(row.get_by_role("button", name="Open… port 3000")).to_be_visible()


def test_a_link_of_loopback_in_a_terminal_becomes_a_forward_after_a_question(room: Room, serving: str) -> None:
    page = room.page
    room.go("sessions", serving, "team", "00")
    expect(page.locator(".whole .xterm-rows")).to_contain_text("(http://127.0.0.1:3000/)")
    place = page.evaluate(_PLACE, "http://127.0.0.1:3000/")
    page.mouse.move(place["x"], place["y"])
    expect(page.locator(".whole .xterm-cursor-pointer")).to_have_count(1)
    page.mouse.click(place["x"], place["y"])
    dialog = page.get_by_role("dialog", name="Open port 3000")
    expect(dialog).to_contain_text("Open port 3000 of this session?")
    # Nothing is opened before the answer.
    client = room.served.client()
    assert client.get(f"/sessions/{serving}/forwards").json() == {"forwards": []}
    assert len(page.context.pages) == 1
    dialog.get_by_role("button", name="Open a forward").click()
    opened_by(room, serving)
    expect(dialog).to_have_count(0)
