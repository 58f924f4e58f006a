"""The signs by which a program's state is known, ready to be looked for. Imported when there is something to read."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mas.model.launch import Sign


def compiled(signs: Iterable[Sign]) -> list[tuple[re.Pattern[str], Sign]]:
    """Each sign with its compiled pattern; invalid ones are left out: a launcher has no user to report them to."""
    known = []
    for sign in signs:
        try:
            known.append((re.compile(sign.match), sign))
        except re.error:
            continue
    return known
