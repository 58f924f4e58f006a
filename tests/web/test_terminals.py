"""A terminal at full size: copy, fit, restart, read out; and what a flood does to the others."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, expect

from tests.site import until
from tests.web.room import Room

# What five thousand lines take, and a little.
_FLAT = 20 << 20


def line(room: Room, text: str) -> Locator:
    return room.page.locator(".whole .xterm-rows > div", has_text=text).last


def test_what_is_selected_is_copied(looking: Room) -> None:
    page = looking.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    looking.open("21")
    looking.type("onewordtocopy\n")
    expect(looking.terminal()).to_contain_text("(demo) got")
    for by_key in (False, True):
        page.evaluate("navigator.clipboard.writeText('nothing')")
        line(looking, "onewordtocopy").dblclick(position={"x": 60, "y": 5}, force=True)
        if by_key:
            page.keyboard.press("Control+c")
        else:
            page.get_by_role("button", name="Copy").click()
        looking.notice("Copied")
        assert page.evaluate("navigator.clipboard.readText()") == "onewordtocopy"
        looking.notice("Copied").get_by_role("button", name="Dismiss").click()
    # The agent was not interrupted by it.
    page.locator(".whole .xterm").click()
    looking.type("still here")
    expect(looking.terminal()).to_contain_text("21> still here")


def test_fit_gives_the_agent_a_terminal_that_fits(looking: Room, team: str) -> None:
    looking.page.set_viewport_size({"width": 1500, "height": 900})
    looking.open("22")
    inside = """() => {
      const place = document.querySelector('.whole'), drawn = place.querySelector('.xterm-screen');
      const cell = drawn.offsetHeight / place.querySelectorAll('.xterm-rows > div').length;
      return drawn.offsetHeight <= place.clientHeight && place.clientHeight - drawn.offsetHeight < 3 * cell;
    }"""
    assert not looking.page.evaluate(inside)
    looking.page.get_by_role("button", name="Fit").click()
    until(lambda: looking.page.evaluate(inside), "a terminal as high as its place")
    pane = next(a["pane"] for a in looking.served.site.json("show", team)["agents"] if a["id"] == "22")
    site = looking.served.site

    def is_as_high() -> bool:
        rows = looking.page.locator(".whole .xterm-rows > div").count()
        panes = [
            site.tmux("list-panes", "-a", "-F", "#{pane_id} #{pane_height}", socket=socket) for socket in site.sockets()
        ]
        return f"{pane} {rows}" in "\n".join(panes).split("\n")

    until(is_as_high, "a pane as high as the terminal")


def test_an_agent_that_ended_and_one_that_hangs_are_restarted(looking: Room) -> None:
    page = looking.page
    looking.open("23")
    looking.type("/die 3\n")
    expect(page.get_by_text("The agent has exited with status 3")).to_be_visible()
    page.get_by_role("button", name="Restart", exact=True).click()
    looking.notice("Restarted 23")
    expect(looking.terminal()).to_contain_text("23>")
    expect(page.get_by_text("The agent has exited")).to_have_count(0)
    page.locator(".whole .xterm").click()
    looking.type("/hang\n")
    expect(page.locator(".full .badge")).to_contain_text("working")
    page.get_by_role("button", name="Restart…").click()
    page.get_by_role("button", name="Stop and restart").click()
    expect(page.locator(".full .badge")).to_contain_text("idle")
    page.locator(".whole .xterm").click()
    looking.type("back again")
    expect(looking.terminal()).to_contain_text("23> back again")


def test_a_tile_offers_its_state_and_last_lines_to_screen_readers(looking: Room, team: str) -> None:
    looking.served.site.mas("send", "--session", team, "20", "a word to be heard")
    tile = looking.page.get_by_role("article", name=re.compile(r"^20 Development manager, idle$"))
    opening = tile.get_by_role("link", name="20 Development manager")
    expect(opening).to_have_accessible_description(
        re.compile(r"^idle\. .*a word to be heard.*kept in inbox\.md", re.DOTALL)
    )


def test_a_terminal_can_be_read_out(looking: Room) -> None:
    looking.open("20")
    looking.page.keyboard.press("Control+]")
    aloud = looking.page.get_by_role("button", name="Read the terminal out")
    aloud.focus()
    looking.page.keyboard.press("Enter")
    expect(aloud).to_have_attribute("aria-pressed", "true")
    expect(looking.page.get_by_role("listitem").filter(has_text="20>").first).to_be_visible()
    aloud.press("Enter")
    expect(looking.page.locator(".whole .xterm-accessibility")).to_have_count(0)


def test_floods_fill_no_memory_and_hold_up_no_other_agent(looking: Room, team: str) -> None:
    page, site = looking.page, looking.served.site
    devtools = page.context.new_cdp_session(page)

    def memory() -> int:
        """What the page takes, without what is only waiting to be thrown away."""
        devtools.send("HeapProfiler.collectGarbage")
        used = devtools.send("Runtime.getHeapUsage")
        return int(used["usedSize"] + used["backingStorageSize"])

    before = memory()
    # Each so large that the page gets all of it, and each more than is kept to scroll back to.
    for time in ("first", "second", "third"):
        site.mas("send", "--session", team, "21", "/flood 1")
        site.mas("send", "--session", team, "21", f"after the {time}")
        expect(looking.tile("21").locator(".xterm-rows")).to_contain_text(f"after the {time}")
    assert memory() - before < _FLAT
    # One that goes on and on, and another agent meanwhile.
    site.mas("send", "--session", team, "21", "/flood 1024")
    expect(looking.tile("21").locator(".badge")).to_contain_text("working")
    looking.open("22")
    looking.type("not held up\n")
    expect(looking.terminal()).to_contain_text("(demo) got 1 line, 11 bytes")
    assert "working" in page.locator(".roster a", has_text="21").inner_text()
    site.mas("restart-agent", team, "21", "--force")
