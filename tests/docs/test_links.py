"""Every link of the documentation leads somewhere, and every module it names exists."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from reference.links import problems
from tests.docs.pages import written
from tests.site import REPOSITORY, short_directory
from tests.store.samples import put

_LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)[^)]*\)")
_MODULE = re.compile(r"[\w/]*\w\.py\b")
_DRAWN = re.compile(r"<text[^>]*>([^<]*)</text>")
_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def pages() -> Iterator[str]:
    """Every page in the repository that people read."""
    yield from (name for name in sorted(os.listdir(REPOSITORY)) if name.endswith(".md"))
    for directory, _, names in os.walk(os.path.join(REPOSITORY, "docs")):
        for name in names:
            if name.endswith(".md"):
                yield os.path.relpath(os.path.join(directory, name), REPOSITORY)


@pytest.mark.parametrize("page", sorted(pages()))
def test_every_link_of_a_page_leads_to_a_file(page: str) -> None:
    for target in _LINK.findall(_FENCED.sub("", written(page))):
        path = os.path.join(REPOSITORY, os.path.dirname(page), target)
        assert os.path.exists(path), f"{page}: {target}"


def drawings() -> Iterator[str]:
    """Every drawing of the documentation that people wrote."""
    return (f"docs/pictures/{name}" for name in ("rooms.svg", "start.svg", "message.svg"))


@pytest.mark.parametrize("page", sorted([*pages(), *drawings()]))
def test_every_module_a_page_or_a_drawing_names_exists(page: str) -> None:
    text = " ".join(_DRAWN.findall(written(page))) if page.endswith(".svg") else _FENCED.sub("", written(page))
    missing = [
        name for name in _MODULE.findall(text) if not any(f"/{path}".endswith(f"/{name}") for path in _modules())
    ]
    assert not missing


@pytest.mark.parametrize("room", ["service", "store", "runtime"])
def test_the_drawing_of_the_rooms_shows_every_folder_of_a_large_room(room: str) -> None:
    folders = {path.parent.name for path in Path(REPOSITORY, "src", "mas", room).glob("*/__init__.py")}
    assert folders
    assert folders <= set(_DRAWN.findall(written("docs/pictures/rooms.svg")))


@cache
def _modules() -> frozenset[str]:
    """The path of every Python file, as pages write it: from src/mas, or from the top of the repository."""
    tops = [os.path.join("src", "mas"), "tests", "benchmarks", "reference"]
    files = [path for top in tops for path in Path(REPOSITORY, top).rglob("*.py")]
    return frozenset(path.relative_to(REPOSITORY).as_posix() for path in files)


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_every_how_to_is_linked_from_the_front_pages(page: str) -> None:
    linked = {os.path.basename(target) for target in _LINK.findall(written(page)) if "how-to/" in target}
    there = {name for name in os.listdir(os.path.join(REPOSITORY, "docs", "how-to")) if name.endswith(".md")}
    assert linked == there


def test_every_decision_is_in_the_list_of_them() -> None:
    there = {name for name in os.listdir(os.path.join(REPOSITORY, "docs", "decisions")) if name[0].isdigit()}
    assert set(_LINK.findall(written("docs/decisions/README.md"))) == there


GOOD = """
<link rel="canonical" href="https://example.org/a.html"><h1 id="top">x</h1>
<a href="#top">x</a><a href="deep/b.html#c">x</a><a href="https://example.org/">x</a>
"""


@pytest.mark.parametrize(
    ("link", "wrong"),
    [
        ('<a href="c.html">x</a>', "no such page"),
        ('<a href="../a.html">x</a>', "no such page"),
        ('<a href="/a.html">x</a>', "no such page"),
        ('<a href="deep/b.html#d">x</a>', "no such place"),
        ('<a href="#nowhere">x</a>', "no such place"),
        ('<a href="https://nowhere">x</a>', "not an address"),
        ('<a href="htps://example.org/">x</a>', "not an address"),
        ('<script src="https://example.org/x.js"></script>', "from elsewhere"),
        ('<link rel="stylesheet" href="//example.org/x.css">', "from elsewhere"),
    ],
)
def test_a_link_of_the_site_that_leads_nowhere_or_elsewhere_is_found(link: str, wrong: str) -> None:
    with short_directory() as site:
        put(site, "deep/b.html", '<h2 id="c">x</h2><a href="../a.html">x</a><img src="c.svg">')
        put(site, "deep/c.svg")
        put(site, "a.html", GOOD)
        assert problems(site) == []
        put(site, "a.html", GOOD + link)
        (problem,) = problems(site)
    assert problem.startswith("a.html: ")
    assert wrong in problem
