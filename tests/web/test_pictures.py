"""What the page looks like with a team at work; UPDATE_PICTURES=1 puts it where the README shows it."""

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


@pytest.fixture
def bakery(served_demo: Served) -> Iterator[str]:
    """A team of thirteen at work, one of which asks."""
    site = served_demo.site
    with open(site.path("pace.json"), "w", encoding="utf-8") as file:
        json.dump(_PACE, file)
    session = site.start("--name", "bakery", "--isolation", "auto", "--config", site.path("pace.json"))
    site.mas("send", "--session", session, "33", "/ask put the opening hours on the page")
    site.mas("send", "--session", session, "00", "Plan the page of a bakery")
    yield session
    site.mas("delete", session, "--yes")


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
    if os.environ.get("UPDATE_PICTURES") == "1":
        os.makedirs(_SHOWN, exist_ok=True)
        with open(room.path("readme-team"), "rb") as taken, open(os.path.join(_SHOWN, "team.png"), "wb") as file:
            file.write(smaller(taken.read()))


def test_the_pictures_of_the_readme_are_there() -> None:
    with open(os.path.join(REPOSITORY, "README.md"), encoding="utf-8") as file:
        shown = re.findall(r"!\[(.+?)\]\((docs/pictures/.+?)\)", file.read())
    assert shown
    for words, path in shown:
        assert len(words) > 20
        assert os.path.getsize(os.path.join(REPOSITORY, path)) < _LARGEST
