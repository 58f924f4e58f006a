"""Retention: how long unused sessions are kept, as the workspace's `config.json` says."""

from __future__ import annotations

import re
from typing import Annotated, Literal, NamedTuple

from mas.model.fields import Rule
from mas.model.isolation import SIZE

ARCHIVE, TRASH, REMOVE = "archive", "trash", "remove"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_MOST_DIGITS = 9


def parse_age(value: object) -> float:
    """Seconds, of `7d` and the like; `ValueError` if it is no age."""
    match = re.fullmatch(r"([0-9]+)([smhdw])", value) if isinstance(value, str) else None
    if not match or len(match[1]) > _MOST_DIGITS:
        raise ValueError("not an age")
    return int(match[1]) * _UNITS[match[2]]


def shown_age(seconds: float) -> str:
    """An age for people, in the largest unit that it is whole numbers of."""
    whole = int(seconds)
    unit = next(unit for unit in reversed(_UNITS) if whole % _UNITS[unit] == 0)
    return f"{whole // _UNITS[unit]}{unit}"


AGE = Rule("an age: a number and s, m, h, d or w, such as 30d", read=parse_age, write=shown_age, written_as=str)
_COUNT = Rule("a number of sessions, 0 or more", least=0)


class Retention(NamedTuple):
    """A stopped session that exceeds one of the first three limits is moved; moved ones are removed by age."""

    max_age: Annotated[float | None, AGE] = None
    max_count: Annotated[int | None, _COUNT] = None
    max_disk: Annotated[int | None, SIZE] = None
    move_to: Literal["archive", "trash"] = "archive"
    archive_age: Annotated[float | None, AGE] = None
    trash_age: Annotated[float | None, AGE] = None
    lost: bool = False
    """Whether lost sessions may be moved too."""
