"""Markdown, as the parts of the reference are written in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# Where a page has a part put in; who reads it in the repository sees how to get it.
MARKER = re.compile(r"^\*Made from the code by `make docs`: ([a-z-]+)\.\*$", re.MULTILINE)


def code(text: str) -> str:
    return f"`{text}`"


def fenced(text: str, language: str = "text") -> str:
    return f"```{language}\n{text.strip()}\n```"


def plain(text: str) -> str:
    """Text that stands for itself, in one line."""
    return " ".join(text.split()).replace("<", "&lt;").replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; nothing where there are no rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines]) if lines else ""


def paragraphs(parts: Iterable[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"
