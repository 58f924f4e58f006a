"""Every link of the documentation leads somewhere."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import pytest

from reference.links import problems
from tests.docs.pages import written
from tests.site import REPOSITORY, short_directory
from tests.store.samples import put

_LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)[^)]*\)")
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
