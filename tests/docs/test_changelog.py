"""The changelog has the form that people and programs look for."""

from __future__ import annotations

import re

from mas import __version__
from tests.docs.pages import written

_RELEASE = re.compile(r"## (\d+\.\d+\.\d+) \((not yet released|\d{4}-\d\d-\d\d)\)")


def test_releases_are_in_order_and_the_first_is_this_one() -> None:
    headings = [line for line in written("CHANGELOG.md").splitlines() if line.startswith("#")]
    releases = [_RELEASE.fullmatch(line) for line in headings[1:]]
    assert headings[0] == "# Changelog"
    assert all(releases), headings
    versions = [tuple(map(int, found[1].split("."))) for found in releases if found]
    assert versions == sorted(set(versions), reverse=True)
    assert headings[1].startswith(f"## {__version__} ")


def test_only_the_newest_release_may_be_yet_to_come() -> None:
    found = _RELEASE.findall(written("CHANGELOG.md"))
    assert all(when != "not yet released" for _, when in found[1:])


def test_what_users_notice_is_listed_once() -> None:
    text = written("CHANGELOG.md")
    items = re.findall(r"^- (.+?)(?=^- |^#|\Z)", text, re.DOTALL | re.MULTILINE)
    assert items
    starts = [" ".join(item.split())[:40] for item in items]
    assert len(set(starts)) == len(starts), "two items begin alike"
    assert all(item.rstrip().endswith(".") for item in items)
