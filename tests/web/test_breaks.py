"""The server dies and comes back: the page goes on, and what was typed is still there."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.web.room import Room


def test_the_page_goes_on_after_the_server_was_killed(room: Room) -> None:
    session = room.start("pair", "survivor")
    room.go("sessions", session)
    agents = room.page.locator(".tile")
    expect(agents).to_have_count(2)
    second = agents.nth(1).get_attribute("data-agent") or ""
    room.open(second)
    room.page.evaluate("window.sameAsBefore = true")
    numbers = "\n".join(f"number {number}" for number in range(200))
    room.served.site.mas("send", "--session", session, second, numbers)
    expect(room.terminal()).to_contain_text("number 199")
    room.page.get_by_label(f"Message to {second}").fill("half a thought")
    room.page.locator(".whole .xterm").hover()
    room.page.mouse.wheel(0, -400)
    expect(room.terminal()).not_to_contain_text("number 199")
    further_up = room.terminal().inner_text()
    room.served.kill()
    expect(room.page.locator(".top .link")).to_contain_text("Reconnecting")
    expect(room.page.get_by_text("Not connected")).to_be_visible()
    # Without a server the agent works on.
    room.served.site.mas("send", "--session", session, second, "meanwhile")
    room.served.restart()
    room.is_live()
    expect(room.page.get_by_text("Not connected")).to_have_count(0)
    expect(room.page.get_by_label(f"Message to {second}")).to_have_value("half a thought")
    # It still is the same agent at the same place of what it printed.
    assert room.terminal().inner_text() == further_up
    room.page.locator(".whole .xterm").click()
    expect(room.page.get_by_text("Keys go to the agent")).to_be_visible()
    room.type("still here\n")
    expect(room.terminal()).to_contain_text("(demo) got 1 line, 10 bytes")
    assert room.page.evaluate("window.sameAsBefore")
    room.served.site.mas("stop", session)
    expect(room.page.locator(".session > .bar .badge").first).to_contain_text("stopped")
    # What it printed last is above the cursor, which is on the line after its end: that is the part a tile shows.
    room.page.reload()
    above_cursor = room.page.locator(".whole .xterm-rows > div:has(+ div .xterm-cursor)")
    expect(above_cursor).to_contain_text(f"{second}>")


def test_a_form_outlives_server_and_page_and_starts_one_team(room: Room) -> None:
    room.go("new")
    page = room.page
    page.get_by_label("Name").fill("thought-twice")
    page.get_by_label("Team").select_option("pair")
    page.get_by_text("Provider, model and prompt per agent").click()
    page.get_by_label("Prompt of 21").fill("Begin slowly")
    page.reload()
    expect(page.get_by_label("Prompt of 21")).to_have_value("Begin slowly")
    room.served.kill()
    page.get_by_role("button", name="Start 2 agents").click()
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer")
    # A part of the page that was never looked at comes when it can.
    page.get_by_role("link", name="Server").click()
    expect(page.get_by_role("alert")).to_contain_text("This part of the page did not load")
    room.served.restart()
    room.is_live()
    expect(page.get_by_text("ok, version")).to_be_visible()
    page.get_by_role("link", name="Start a team").click()
    page.get_by_role("button", name="Start 2 agents").click()
    expect(room.tile("21").locator(".xterm-rows")).to_contain_text("Begin slowly")
    room.go()
    expect(room.row("thought-twice")).to_have_count(1)
    room.go("new")
    expect(page.get_by_label("Name")).to_have_value("")
    room.go()
    room.row("thought-twice").get_by_role("button", name="Delete").click()
    room.notice("Deleted thought-twice")


def test_a_page_that_was_frozen_goes_on_where_it_was(room: Room) -> None:
    session = room.start("solo", "asleep")
    room.go("sessions", session)
    room.open("00")
    room.page.get_by_label("Message to 00").fill("half a thought")
    devtools = room.page.context.new_cdp_session(room.page)
    devtools.send("Page.setWebLifecycleState", {"state": "frozen"})
    room.served.kill()
    room.served.restart()
    room.served.site.mas("send", "--session", session, "00", "said meanwhile")
    devtools.send("Page.setWebLifecycleState", {"state": "active"})
    expect(room.terminal()).to_contain_text("said meanwhile")
    expect(room.page.locator(".conversation .message", has_text="said meanwhile")).to_be_visible()
    expect(room.page.get_by_label("Message to 00")).to_have_value("half a thought")
    # Tabs that sleep long are thrown away: what was typed, and where one was, outlive that too.
    room.page.reload()
    expect(room.page.get_by_label("Message to 00")).to_have_value("half a thought")
    expect(room.terminal()).to_contain_text("said meanwhile")
    room.served.site.mas("delete", session, "--yes")
