"""The messages that troubleshooting names are those that MAS prints."""

from __future__ import annotations

import re

from tests.docs.pages import rows, sources, written

_LEFT_OUT = "…"


def test_every_error_that_is_explained_is_one_that_mas_prints() -> None:
    # Long sentences are put together of pieces.
    said = re.sub(r'"\s*\n\s*f?"', "", "".join(sources("src/mas", "hatch_build.py", "web/src/pages")))
    quoted = {
        words
        for row in rows(written("docs/how-to/troubleshooting.md"))
        for words in re.findall(r"`([A-Z][^`]* [^`]*)`", row[0])
    }
    assert len(quoted) > 10
    for words in quoted:
        for piece in filter(None, (part.strip() for part in words.split(_LEFT_OUT))):
            assert piece in said, words
