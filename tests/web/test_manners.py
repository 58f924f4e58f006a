"""Manners: readable by everybody, small."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.served import Served
from tests.site import REPOSITORY
from tests.web.room import Room

_AXE = os.path.join(REPOSITORY, "web", "node_modules", "axe-core", "axe.min.js")


@pytest.fixture(scope="module")
def team(served_demo: Served) -> Iterator[str]:
    session = served_demo.site.start("--team", "pair", "--name", "looked-at")
    yield session
    served_demo.site.mas("delete", session, "--yes")


def found_by_axe(page: Page) -> list[str]:
    """What would keep a person from using the page. What agents print is theirs."""
    with open(_AXE, encoding="utf-8") as file:
        page.evaluate(file.read())
    found: list[dict[str, Any]] = page.evaluate(
        "axe.run({exclude: ['.xterm']}, {resultTypes: ['violations']}).then(found => found.violations)"
    )
    return [json.dumps([one["id"], [node["html"][:200] for node in one["nodes"]]]) for one in found]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_it(room: Room, team: str, scheme: Any) -> None:
    room.page.emulate_media(color_scheme=scheme)
    agent = room.served.site.json("show", team)["agents"][0]["id"]
    own = ("sessions", team)
    places = ((), ("new",), ("approvals",), ("server",), own, (*own, "team", agent), (*own, "messages"))
    role, recording = (*own, "files", "unit", agent, "ROLE.md"), (*own, "files", "logs", f"agent-{agent}.cast")
    for place in (
        *places,
        (*own, "files", "workflows"),
        role,
        recording,
        (*own, "network"),
        (*own, "numbers"),
        ("nowhere",),
    ):
        room.go(*place)
        expect(room.page.get_by_role("heading").first).to_be_visible()
        expect(room.page.get_by_text("Loading")).to_have_count(0)
        assert found_by_axe(room.page) == [], place
        room.picture(f"{scheme}-{'-'.join(place[2:] or place[:1]) or 'list'}")
    for key in ("?", "Control+k"):
        room.page.keyboard.press(key)
        expect(room.page.get_by_role("dialog")).to_be_visible()
        assert found_by_axe(room.page) == [], key
        room.page.keyboard.press("Escape")


def test_the_first_look_is_small(room: Room, team: str) -> None:
    room.go("sessions", team)
    room.page.reload()
    expect(room.page.locator(".tile .xterm-rows").first).to_contain_text(">")
    cold = sum(
        len(_raw(room, path))
        for path in room.page.evaluate(
            "performance.getEntriesByType('resource').map(one => new URL(one.name).pathname)"
            ".filter(path => path.startsWith('/assets/'))"
        )
    )
    assert 100_000 < cold < 250_000


def _raw(room: Room, path: str) -> bytes:
    """A file as it goes over the wire."""
    with room.served.client("").stream("GET", path, headers={"Accept-Encoding": "gzip"}) as answer:
        return b"".join(answer.iter_raw())
