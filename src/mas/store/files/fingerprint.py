"""Fingerprints: whether a file is still the one that was read, without reading it again."""

from __future__ import annotations

import os
import time

Stamp = tuple[int, int, int, int, int]
# Changes that follow each other within a tick of the kernel's clock bear the same time; no tick is longer.
_TICK_NS = 20_000_000


def stamp_of(path: str) -> Stamp:
    """Which file this is and when it was changed last; `OSError` if it cannot be looked at."""
    found = os.lstat(path)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def is_settled(stamp: Stamp) -> bool:
    """Whether the file, or another in its place, will have another stamp after the next change.

    Not so while the last one is only just made: the next may bear the same time, and a new file the number of an
    old one. Files that were looked at before they were read, and are settled, are what was read for as long as
    their stamp is the same.
    """
    return time.time_ns() - stamp[-1] > _TICK_NS
