"""What agents reach, on the page: refused names are marked, and allowed by a button."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.served import Served
from tests.site import until
from tests.web.room import Room
from tests.web.test_manners import found_by_axe

_RUN = {
    "team": "pair",
    "name": "shelf",
    "provider": "shell",
    "isolation": {"network": "list", "allow": ["git.example.com"]},
}


@pytest.fixture
def listed(served_demo: Served) -> Iterator[str]:
    """A team whose agents reach one name."""
    site = served_demo.site
    with open(site.path("listed.json"), "w", encoding="utf-8") as file:
        json.dump(_RUN, file)
    done = site.mas("start", "--config", site.path("listed.json"), env={"MAS_ISOLATION": "A"}, code=None)
    if done.returncode == 7:
        pytest.skip(f"this machine has no tier A: {done.stderr.strip().splitlines()[0]}")
    assert done.returncode == 0, done.stderr
    session = done.stdout.strip()
    yield session
    site.mas("delete", session, "--yes")


def ask_for(served: Served, session: str, agent: str, name: str) -> None:
    served.site.mas("send", f"{session}:{agent}", f"getent hosts {name}", "--force")


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_a_refused_name_is_marked_as_it_comes_and_allowed_by_a_button(room: Room, listed: str) -> None:
    room.go("sessions", listed, "network")
    page = room.page
    expect(page.get_by_role("heading", name="Network list")).to_contain_text("its run or team says so")
    expect(page.get_by_text("No agent has asked for a name")).to_be_visible()
    ask_for(room.served, listed, "21", "www.example.com")
    ask_for(room.served, listed, "23", "intranet")
    # No look at the page is needed: an event brings it.
    row = page.locator(".requests tbody tr", has_text="www.example.com")
    expect(row).to_contain_text("refused it is not on the list of allowed names")
    expect(row.get_by_role("cell").first).to_have_text("21")
    expect(page.locator(".requests tbody tr", has_text="intranet").get_by_role("button")).to_have_text(
        "Allow intranet private"
    )
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for width in (1440, 1000, 390):
            page.set_viewport_size({"width": width, "height": 800})
            assert fits(page), width
            room.picture(f"network-{scheme}-{width}")
        assert found_by_axe(page) == []
    row.get_by_role("button", name="Allow www.example.com").click()
    room.notice("Allowed: www.example.com (its agents have it now)")
    expect(row).to_contain_text("allowed since")
    assert room.served.site.json("network", listed)["allow"] == ["git.example.com", "www.example.com"]
    page.get_by_role("button", name="Undo").click()
    until(lambda: room.served.site.json("network", listed)["allow"] == ["git.example.com"], "it is taken back")
    expect(row.get_by_role("button", name="Allow www.example.com")).to_be_visible()


def test_a_shared_network_says_that_nothing_is_recorded(room: Room, team: str) -> None:
    room.go("sessions", team)
    room.page.get_by_role("link", name="Network", exact=True).click()
    expect(room.page.get_by_role("heading", name="Network shared")).to_contain_text("isolation is off")
    expect(room.page.get_by_text("Nothing is recorded.")).to_be_visible()
    expect(room.page.locator(".requests")).to_have_count(0)
