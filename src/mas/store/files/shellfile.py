"""Files of `KEY=value` lines that a shell could read and MAS parses: never sourced, nothing expanded."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mas.model.errors import BadInput

_KEY = r"[A-Z][A-Z0-9_]*"
_PLAIN = r"[A-Za-z0-9_@%+=:,./-]*"
# What `shlex.quote` makes: runs of '…' with each ' written as '"'"'.
_QUOTED = r"""'(?:[^']|'"'"')*'"""


def quote_pairs(pairs: Mapping[str, str]) -> bytes:
    """One safely quoted line per pair; `BadInput` for a value that cannot stand on one line."""
    from shlex import quote

    lines = []
    for key, value in pairs.items():
        if not re.fullmatch(_KEY, key) or any(mark in value for mark in "\n\r\0"):
            raise BadInput(f"{key} cannot be kept as a line: {value!r}")
        lines.append(f"{key}={quote(value) if value else ''}\n")
    return "".join(lines).encode("utf-8", "surrogateescape")


def parse_pairs(data: bytes) -> dict[str, str]:
    """The pairs of a file; `ValueError` for anything `quote_pairs` would not have written."""
    text = data.decode("utf-8", "surrogateescape")
    if not text.endswith("\n"):
        raise ValueError("the last line is cut off")
    pairs = {}
    for line in text[:-1].split("\n"):
        key, found, value = line.partition("=")
        if not found or not re.fullmatch(_KEY, key):
            raise ValueError(f"not a KEY=value line: {line[:60]!r}")
        if re.fullmatch(_PLAIN, value):
            pairs[key] = value
        elif re.fullmatch(_QUOTED, value):
            pairs[key] = value[1:-1].replace("""'"'"'""", "'")
        else:
            raise ValueError(f"the value of {key} is not quoted")
    return pairs
