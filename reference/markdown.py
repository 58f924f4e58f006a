"""Markdown, as the parts of the reference are written in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# Where a page has a part that is made from the code: in the repository a short form of it, in the site all of it.
MARKER = re.compile(r"^<!-- made from the code: ([a-z-]+) -->\n(.*?)\n<!-- end -->$", re.MULTILINE | re.DOTALL)


def code(text: str) -> str:
    return f"`{text}`"


def fenced(text: str, language: str = "text") -> str:
    return f"```{language}\n{text.strip()}\n```"


def plain(text: str) -> str:
    """Text that stands for itself, in one line."""
    return " ".join(text.split()).replace("<", "&lt;").replace("|", "\\|")


def sentence(text: str) -> str:
    """The first sentence of a text."""
    return re.split(r"(?<=\.)\s", text.strip())[0]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; nothing where there are no rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines]) if lines else ""


def paragraphs(parts: Iterable[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"
