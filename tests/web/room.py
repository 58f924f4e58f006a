"""What tests do with the page, in words."""

from __future__ import annotations

import os
import re

from playwright.sync_api import Locator, Page, expect

from tests.served import Served


class Room:
    """A signed-in page and the server behind it."""

    def __init__(self, served: Served, page: Page, pictures: str) -> None:
        self.served = served
        self.page = page
        self._pictures = pictures

    def sign_in(self) -> None:
        """As a person does: by the address that `mas url` prints."""
        self.page.goto(self.served.on_socket().post("/login-codes").json()["url"])
        self.is_live()

    def start(self, team: str, name: str) -> str:
        """A session that was started elsewhere, as most are."""
        return self.served.site.start("--team", team, "--name", name)

    def go(self, *words: str) -> None:
        """Go to a place of the page, once the page has loaded everything again."""
        self.page.goto(f"{self.served.url}/#/{'/'.join(words)}")

    def row(self, name: str) -> Locator:
        """A session in the list."""
        return self.page.locator("table.sessions tbody tr", has=self.page.get_by_role("link", name=name, exact=True))

    def tile(self, agent: str) -> Locator:
        return self.page.locator(f'.tile[data-agent="{agent}"]')

    def terminal(self) -> Locator:
        """What the terminal at full size shows."""
        return self.page.locator(".whole .xterm-rows")

    def open(self, agent: str) -> None:
        """Open an agent from the team at full size, ready to be typed to."""
        self.tile(agent).click()
        expect(self.terminal()).to_contain_text(f"{agent}>")
        expect(self.page.locator(".whole textarea")).to_be_focused()

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)

    def is_live(self) -> None:
        expect(self.page.locator(".top .link")).to_have_text("Live")

    def notice(self, text: str) -> Locator:
        found = self.page.locator(".notice", has_text=text)
        expect(found).to_be_visible()
        return found

    def picture(self, name: str) -> None:
        """Keep what the page looks like, for people to look at."""
        os.makedirs(self._pictures, exist_ok=True)
        self.page.screenshot(path=self.path(name))

    def path(self, name: str) -> str:
        """Where a picture is kept."""
        return os.path.join(self._pictures, f"{re.sub(r'[^a-z0-9-]+', '-', name)}.png")
