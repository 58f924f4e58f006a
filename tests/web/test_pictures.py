"""What the page looks like with a team at work: kept beside the other pictures, and shown by the README."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.served import Served
from tests.site import REPOSITORY
from tests.web.png import smaller
from tests.web.room import Room

_SHOWN = os.path.join(REPOSITORY, "docs", "pictures")
_LARGEST = 200_000
# Soon at work, and still at it when the picture is taken.
_PACE = {"env": {"MAS_DEMO_SPEED": "1.5"}}
_BESIDE = (("solo", "release-notes"), ("pair", "price-list"))


@pytest.fixture
def bakery(served_demo: Served) -> Iterator[str]:
    """A team of thirteen at work, one of whom asks, and other sessions beside it."""
    site = served_demo.site
    beside = [site.start("--team", team, "--name", name) for team, name in _BESIDE]
    site.mas("stop", beside[0])
    with open(site.path("pace.json"), "w", encoding="utf-8") as file:
        json.dump(_PACE, file)
    session = site.start("--name", "bakery", "--isolation", "auto", "--config", site.path("pace.json"))
    site.mas("send", "--session", session, "33", "/ask put the opening hours on the page")
    site.mas("send", "--session", session, "00", "Plan the page of a bakery")
    yield session
    for one in (session, *beside):
        site.mas("delete", one, "--yes")


def test_a_team_at_work_is_a_picture(bakery: str, room: Room) -> None:
    room.go("sessions", bakery)
    page = room.page
    expect(room.tile("33").locator(".badge")).to_contain_text("blocked")
    for agent in ("11", "22", "32"):
        expect(room.tile(agent).locator(".xterm-rows")).to_contain_text("read ROLE.md")
    expect(page.get_by_role("banner").get_by_role("link", name=re.compile("Approvals"))).to_contain_text("1")
    room.picture("readme-team")
    page.emulate_media(color_scheme="dark")
    room.picture("readme-team-dark")
    page.emulate_media(color_scheme="light")
    room.go()
    expect(room.row("bakery")).to_contain_text("1 blocked")
    room.picture("readme-sessions")
    if os.environ.get("UPDATE_PICTURES") == "1":
        show(room, "team", "team-dark", "sessions")


def show(room: Room, *names: str) -> None:
    """Put pictures where the README shows them."""
    os.makedirs(_SHOWN, exist_ok=True)
    for name in names:
        with open(room.path(f"readme-{name}"), "rb") as taken, open(os.path.join(_SHOWN, f"{name}.png"), "wb") as file:
            file.write(smaller(taken.read()))


def test_the_pictures_of_the_readme_are_there() -> None:
    with open(os.path.join(REPOSITORY, "README.md"), encoding="utf-8") as file:
        shown = re.findall(r"!\[(.+?)\]\((docs/pictures/.+?)\)", file.read())
    assert shown
    for words, path in shown:
        assert len(words) > 20
        assert os.path.getsize(os.path.join(REPOSITORY, path)) < _LARGEST
