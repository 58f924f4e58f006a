"""Many tabs of one browser: they share one stream of events, and none of them waits for a connection."""

from __future__ import annotations

from playwright.sync_api import BrowserContext, Page, expect

from tests.served import Served
from tests.site import until

# A browser opens six connections to a server.
_TABS = 7


def _streams(served: Served) -> list[str]:
    lines = served.on_socket().get("/metrics").text.splitlines()
    return [line for line in lines if line.startswith('mas_streams{kind="events"}')]


def _named(tab: Page, name: str) -> None:
    expect(tab.get_by_role("link", name=name, exact=True)).to_be_visible()


def test_seven_tabs_stay_live_also_when_the_one_that_listens_is_closed(
    served_demo: Served, context: BrowserContext
) -> None:
    tabs = [context.new_page() for _ in range(_TABS)]
    tabs[0].goto(served_demo.on_socket().post("/login-codes").json()["url"])
    expect(tabs[0].locator(".top .link")).to_have_text("Live")
    for tab in tabs[1:]:
        tab.goto(served_demo.url)
    for tab in tabs:
        expect(tab.locator(".top .link")).to_have_text("Live")
    until(lambda: _streams(served_demo) == ['mas_streams{kind="events"} 1.0'])
    first = served_demo.site.start("--team", "solo", "--name", "seen-by-all")
    for tab in tabs:
        _named(tab, "seen-by-all")
    tabs.pop(0).close()
    second = served_demo.site.start("--team", "solo", "--name", "seen-by-the-rest")
    for tab in tabs:
        _named(tab, "seen-by-the-rest")
    until(lambda: _streams(served_demo) == ['mas_streams{kind="events"} 1.0'])
    # Signed out is signed out everywhere.
    tabs[-1].goto(f"{served_demo.url}/#/server")
    tabs[-1].get_by_role("button", name="Sign out").click()
    for tab in tabs:
        expect(tab.get_by_role("heading", name="Sign in")).to_be_visible()
    for session in (first, second):
        served_demo.site.mas("delete", session, "--yes")
