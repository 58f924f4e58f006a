"""The pages of the documentation as tests read them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from reference.markdown import MARKER
from reference.parts import PARTS
from tests.site import REPOSITORY

_WORD = re.compile(r"`([^`]+)`")
_BY_PEOPLE = (".py", ".sh", ".toml", ".json", ".tsx")
_BUILT = Path(REPOSITORY, "src", "mas", "http", "built")


def written(path: str) -> str:
    """The page as it is in the repository."""
    with open(os.path.join(REPOSITORY, path), encoding="utf-8") as file:
        return file.read()


@cache
def page(name: str) -> str:
    """A page of the reference as it is in the site."""
    return MARKER.sub(lambda match: PARTS[match[1]].whole(), written(f"docs/reference/{name}.md"))


def section(name: str, heading: str) -> str:
    """What stands under a heading of a page of the reference, up to the next one."""
    _, found, rest = page(name).partition(f"# {heading}\n")
    assert found, f"{name}.md has no heading {heading!r}"
    return rest.partition("\n#")[0]


def rows(text: str) -> list[list[str]]:
    """The rows of the tables in a text, without their heads."""
    lines = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if line[:1] == "|"]
    rules = [number for number, line in enumerate(lines) if set("".join(line)) <= set("-|")]
    return [line for number, line in enumerate(lines) if number not in rules and number + 1 not in rules]


def names(name: str, heading: str) -> set[str]:
    """What the tables under a heading list: the words in the first cell of every row."""
    return {word for row in rows(section(name, heading)) for word in _WORD.findall(row[0])}


def words(text: str) -> set[str]:
    """All that is written as code in a text."""
    return set(_WORD.findall(text))


def sources(*places: str) -> Iterator[str]:
    """The text of every file of these places that people write."""
    for place in places:
        path = Path(REPOSITORY, place)
        for file in path.rglob("*") if path.is_dir() else [path]:
            if file.suffix in _BY_PEOPLE and _BUILT not in file.parents:
                yield file.read_text("utf-8")
