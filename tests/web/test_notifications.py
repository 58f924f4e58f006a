"""Notifications: a user who looks elsewhere learns that an agent asks or a session fails."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.site import until
from tests.web.room import Room

# What a browser would show, kept instead; and a page that is in the background.
_KEPT = """
window.shown = [];
window.Notification = class {
  static permission = 'granted';
  constructor(title, options) { window.shown.push([title, options.body]); }
};
Object.defineProperty(document, 'visibilityState', { get: () => 'hidden' });
"""


def background(room: Room) -> None:
    """The page as a tab in the background, and what it has the browser show."""
    room.page.add_init_script(_KEPT)
    room.go()
    room.page.reload()
    room.is_live()


def test_an_agent_that_asks_causes_one_notification(room: Room) -> None:
    session = room.start("solo", "in-need")
    background(room)
    expect(room.row("in-need")).to_contain_text("1 idle")
    site = room.served.site
    site.mas("send", "--session", session, "00", "/ask May I go on?")
    told = until(lambda: room.page.evaluate("window.shown"))
    assert [title for title, _ in told] == ["00 Meta manager waits for an answer"]
    assert "go on" in told[0][1]
    # Network that comes back makes the page look again, and nothing is notified twice.
    room.page.evaluate("window.dispatchEvent(new Event('online'))")
    expect(room.page.get_by_role("banner").get_by_role("link", name="Approvals 1")).to_be_visible()
    room.is_live()
    site.mas("deny", session, "00")
    expect(room.page.locator(".bubble")).to_have_count(0)
    assert len(room.page.evaluate("window.shown")) == 1
    site.mas("delete", session, "--yes")


def test_a_failed_session_causes_a_notification_and_a_stopped_one_does_not(room: Room) -> None:
    stopped, lost = room.start("solo", "sent-home"), room.start("solo", "let-down")
    background(room)
    expect(room.row("let-down")).to_contain_text("1 idle")
    site = room.served.site
    site.mas("stop", stopped)
    site.tmux("kill-session", "-t", f"=mas-{lost[:8]}")
    told = until(lambda: room.page.evaluate("window.shown"))
    assert told == [["let-down failed", "Session let-down was lost: its tmux session is gone"]]
    room.notice("Session let-down was lost: its tmux session is gone")
    expect(room.row("let-down").locator(".badge.is-lost")).to_contain_text("lost")
    expect(room.row("sent-home").locator(".badge.is-stopped")).to_contain_text("stopped")
    for session in (stopped, lost):
        site.mas("delete", session, "--yes")
