"""Files of `KEY=value` lines that a shell could read and MAS parses: never sourced, nothing expanded."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from mas.model.errors import BadInput

_KEY = re.compile(r"[A-Z][A-Z0-9_]*")
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]*")
# What `shlex.quote` makes: runs of '…' with each ' written as '"'"'.
_QUOTED = re.compile(r"""'(?:[^']|'"'"')*'""")


def quote_pairs(pairs: Mapping[str, str]) -> bytes:
    """One safely quoted line per pair; `BadInput` for a value that cannot stand on one line."""
    lines = []
    for key, value in pairs.items():
        if not _KEY.fullmatch(key) or any(mark in value for mark in "\n\r\0"):
            raise BadInput(f"{key} cannot be kept as a line: {value!r}")
        lines.append(f"{key}={shlex.quote(value) if value else ''}\n")
    return "".join(lines).encode("utf-8", "surrogateescape")


def parse_pairs(data: bytes) -> dict[str, str]:
    """The pairs of a file; `ValueError` for anything `quote_pairs` would not have written."""
    text = data.decode("utf-8", "surrogateescape")
    if not text.endswith("\n"):
        raise ValueError("the last line is cut off")
    pairs = {}
    for line in text[:-1].split("\n"):
        key, found, value = line.partition("=")
        if not found or not _KEY.fullmatch(key):
            raise ValueError(f"not a KEY=value line: {line[:60]!r}")
        if _PLAIN.fullmatch(value):
            pairs[key] = value
        elif _QUOTED.fullmatch(value):
            pairs[key] = value[1:-1].replace("""'"'"'""", "'")
        else:
            raise ValueError(f"the value of {key} is not quoted")
    return pairs
