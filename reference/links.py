"""The links of a built site: those inside it lead to a place that is there, and nothing is fetched from elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

# What a browser fetches by itself, as opposed to where it goes when told to.
_FETCHED = {("script", "src"), ("img", "src"), ("link", "href"), ("source", "src"), ("iframe", "src"), ("video", "src")}
_NOT_FETCHED = {"canonical", "next", "prev", "alternate"}
# Answers to any address, so it cannot know the way from there.
_ANYWHERE = "404.html"


class _Link(NamedTuple):
    address: str
    fetched: bool


class _Page(HTMLParser):
    """The links of a page, and the places that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[_Link] = []
        self.places = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        of_itself = dict(attrs).get("rel") in _NOT_FETCHED
        for name, value in attrs:
            if name in ("id", "name"):
                self.places.add(value or "")
            elif name in ("href", "src"):
                self.links.append(_Link(value or "", (tag, name) in _FETCHED and not of_itself))


def problems(site: str) -> list[str]:
    """What is wrong with the links of the site in that directory, a line each."""
    pages = {path: _Page(_read(site, path)) for path in _html_of(site) if path != _ANYWHERE}
    return sorted(
        f"{path}: {link.address} ({wrong})"
        for path, page in pages.items()
        for link in page.links
        if (wrong := _wrong(site, path, link, pages))
    )


def _wrong(site: str, path: str, link: _Link, pages: dict[str, _Page]) -> str:
    """What is wrong with a link of the page at `path`; nothing where all is well."""
    try:
        parts = urlsplit(link.address)
    except ValueError:
        return "not an address"
    if parts.scheme or parts.netloc:
        if link.fetched and parts.scheme != "data":
            return "fetched from elsewhere"
        known = parts.scheme in ("mailto", "data") or (parts.scheme in ("http", "https") and "." in parts.netloc)
        return "" if known else "not an address"
    target = os.path.normpath(os.path.join(os.path.dirname(path), unquote(parts.path))) if parts.path else path
    if target.startswith(("..", "/")) or not os.path.exists(os.path.join(site, target)):
        return "no such page"
    if os.path.isdir(os.path.join(site, target)):
        target = os.path.normpath(os.path.join(target, "index.html"))
    if target not in pages:
        return "no such page" if target.endswith(".html") else ""
    return "" if unquote(parts.fragment) in pages[target].places else "no such place in that page"


def _html_of(site: str) -> Iterator[str]:
    for directory, _, names in os.walk(site):
        for name in names:
            if name.endswith(".html"):
                yield os.path.relpath(os.path.join(directory, name), site)


def _read(site: str, path: str) -> str:
    with open(os.path.join(site, path), encoding="utf-8") as file:
        return file.read()
