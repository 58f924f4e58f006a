"""The list of sessions, and starting one."""

from __future__ import annotations

from playwright.sync_api import Locator, expect

from tests.site import until
from tests.web.room import Room


def test_a_team_of_thirteen_is_started_from_the_form_and_all_are_live(room: Room) -> None:
    page = room.page
    page.get_by_role("banner").get_by_role("link", name="Start a team").click()
    page.get_by_label("Name").fill("x" * 65)
    page.get_by_text("Limits", exact=True).click()
    page.get_by_label("Whole session: memory").fill("2 apples")
    page.get_by_role("button", name="Start 13 agents").click()
    # The words are the API's own, and stand where they belong.
    expect(page.locator("p.wrong")).to_contain_text("it must be 1 to 64 printable characters")
    expect(page.get_by_label("Name")).to_be_focused()
    page.get_by_label("Name").fill("landing-page")
    page.get_by_role("button", name="Start 13 agents").click()
    expect(page.locator(".limits .wrong")).to_contain_text("limits.memory is '2 apples'")
    room.picture("refused")
    page.get_by_label("Whole session: memory").fill("")
    page.get_by_text("Provider, model and prompt per agent").click()
    page.get_by_label("Prompt of 21").fill("Say hello")
    page.get_by_role("button", name="Start 13 agents").click()
    expect(page.get_by_role("heading", name="landing-page")).to_be_visible()
    expect(page.locator(".tile .xterm-rows")).to_have_count(13)
    for agent in ("00", "10", "33"):
        expect(room.tile(agent).locator(".xterm-rows")).to_contain_text(f"{agent}>")
    expect(page.locator(".tile .badge.is-idle")).to_have_count(13)
    expect(room.tile("21").locator(".xterm-rows")).to_contain_text("Say hello")
    units = page.locator("section.unit")
    expect(units).to_have_count(4)
    # Nothing is drawn smaller than it can be read.
    sizes = page.locator(".tile .xterm-rows").evaluate_all("all => all.map(one => getComputedStyle(one).fontSize)")
    assert set(sizes) == {"11px"}
    room.picture("team")
    page.get_by_role("button", name="Delete", exact=True).click()
    room.notice("Deleted landing-page")
    expect(page.get_by_role("heading", name="Sessions")).to_be_visible()


def test_an_address_with_a_sessions_name_leads_to_the_session(room: Room) -> None:
    session = room.start("solo", "by name")
    room.page.evaluate("location.hash = '#/sessions/by%20name/team/00'")
    expect(room.page.get_by_role("heading", name="by name")).to_be_visible()
    until(lambda: room.page.evaluate("location.hash") == f"#/sessions/{session}/team/00", "the id in the address")
    room.page.evaluate("location.hash = '#/sessions/nobody'")
    expect(room.page.get_by_text("Session not found: nobody")).to_be_visible()


def test_stop_restore_delete_and_undo(room: Room) -> None:
    session = room.start("solo", "to-and-fro")
    row = room.row("to-and-fro")
    expect(row).to_contain_text("active")
    expect(row).to_contain_text("1 idle")
    row.get_by_role("button", name="Stop to-and-fro").click()
    expect(row).to_contain_text("stopped")
    row.get_by_role("button", name="Restore to-and-fro").click()
    expect(row).to_contain_text("active")
    row.get_by_role("button", name="Delete to-and-fro").click()
    expect(row).to_have_count(0)
    room.notice("Deleted to-and-fro").get_by_role("button", name="Undo").click()
    # It ran when it was deleted.
    expect(row).to_contain_text("active")
    room.served.site.mas("delete", session, "--yes")


def test_many_at_a_time(room: Room) -> None:
    ids = {name: room.start("solo", name) for name in ("bulk-one", "bulk-two")}
    page = room.page
    rows = page.locator("table.sessions tbody tr")
    page.get_by_label("Search sessions").fill("bulk- solo")
    expect(rows).to_have_count(2)

    def all_at_once(verb: str, done: str) -> Locator:
        page.get_by_label("Select all").check()
        page.get_by_role("button", name=f"{verb} 2").click()
        expect(page.locator(".bulk")).to_have_count(0)
        return room.notice(f"{done} 2 sessions").get_by_role("button", name="Undo")

    def is_now(status: str) -> bool:
        statuses = room.served.site.statuses()
        return all(statuses.get(session) == status for session in ids.values())

    all_at_once("Stop", "Stopped").click()
    until(lambda: is_now("active"))
    expect(rows.locator(".is-active")).to_have_count(2)
    all_at_once("Stop", "Stopped")
    all_at_once("Archive", "Archived").click()
    expect(rows).to_have_count(2)
    all_at_once("Restore", "Restored")
    all_at_once("Clone", "Cloned").click()
    room.notice("Deleted 2 sessions")
    expect(rows).to_have_count(2)
    assert is_now("active")
    all_at_once("Delete", "Deleted")
    page.get_by_label("Search sessions").fill("bulk-")
    page.get_by_text("deleted", exact=True).click()
    expect(page.get_by_role("button", name="Undelete bulk-one")).to_be_visible()
    expect(rows).to_have_count(4)


def test_what_is_started_elsewhere_shows_by_itself(room: Room) -> None:
    expect(room.page.get_by_role("heading", name="Sessions")).to_be_visible()
    room.is_live()
    session = room.start("solo", "from-elsewhere")
    expect(room.row("from-elsewhere")).to_be_visible()
    room.served.site.mas("delete", session, "--yes")
    expect(room.row("from-elsewhere")).to_have_count(0)


def test_a_phone_shows_all_of_it(room: Room) -> None:
    session = room.start("solo", "in-the-pocket")
    room.page.set_viewport_size({"width": 390, "height": 844})
    own = ("sessions", session)
    files = ((*own, "files"), (*own, "files", "unit", "00", "ROLE.md"), (*own, "files", "logs", "agent-00.cast"))
    places = ((), ("new",), ("approvals",), ("server",), own, (*own, "team", "00"), (*own, "messages"), *files)
    for place in places:
        room.go(*place)
        expect(room.page.get_by_role("heading", level=1)).to_be_visible()
        expect(room.page.get_by_text("Loading")).to_have_count(0)
        widths = "[document.scrollingElement, document.querySelector('main')].map(one => one.scrollWidth)"
        assert max(room.page.evaluate(widths)) <= 390, place
        room.picture(f"phone-{'-'.join(place[2:] or place[:1]) or 'list'}")
    room.served.site.mas("delete", session, "--yes")
