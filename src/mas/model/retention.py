"""Retention: how long unused sessions are kept, as the workspace's `config.json` says."""

from __future__ import annotations

import re
from typing import NamedTuple

from mas.model.errors import BadInput
from mas.model.fields import known
from mas.model.ids import shown
from mas.model.isolation import parse_size

ARCHIVE, TRASH, REMOVE = "archive", "trash", "remove"
_WHAT = "retention of config.json"
_FIELDS = {"maxAge", "maxCount", "maxDisk", "moveTo", "archiveAge", "trashAge", "lost"}
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_MOST_DIGITS = 9


class Retention(NamedTuple):
    """A stopped session that exceeds one of the first three limits is moved; moved ones are removed by age."""

    max_age: float | None = None
    max_count: int | None = None
    max_disk: int | None = None
    move_to: str = ARCHIVE
    archive_age: float | None = None
    trash_age: float | None = None
    lost: bool = False
    """Whether lost sessions may be moved too."""


def parse_retention(value: object) -> Retention | None:
    """What `config.json` says of retention; None where it says nothing."""
    if value is None:
        return None
    fields = known(value, _WHAT, _FIELDS)
    count = fields.get("maxCount")
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 0):
        raise BadInput(f"maxCount in {_WHAT} must be a number of sessions, 0 or more")
    move_to = fields.get("moveTo", ARCHIVE)
    if move_to not in (ARCHIVE, TRASH):
        raise BadInput(f"moveTo in {_WHAT} must be {ARCHIVE} or {TRASH}")
    lost = fields.get("lost", False)
    if not isinstance(lost, bool):
        raise BadInput(f"lost in {_WHAT} must be true or false")
    disk = fields.get("maxDisk")
    return Retention(
        max_age=_age(fields.get("maxAge"), "maxAge"),
        max_count=count,
        max_disk=None if disk is None else parse_size(disk, f"maxDisk in {_WHAT}"),
        move_to=move_to,
        archive_age=_age(fields.get("archiveAge"), "archiveAge"),
        trash_age=_age(fields.get("trashAge"), "trashAge"),
        lost=lost,
    )


def parse_age(text: str) -> float:
    """Seconds, of `7d` and the like."""
    match = re.fullmatch(r"([0-9]+)([smhdw])", text)
    if not match or len(match[1]) > _MOST_DIGITS:
        raise BadInput(f"Not an age: {shown(text)} (a number and s, m, h, d or w, such as 7d)")
    return int(match[1]) * _UNITS[match[2]]


def shown_age(seconds: float) -> str:
    """An age for people, in the largest unit that it is whole numbers of."""
    whole = int(seconds)
    unit = next(unit for unit in reversed(_UNITS) if whole % _UNITS[unit] == 0)
    return f"{whole // _UNITS[unit]}{unit}"


def _age(value: object, field: str) -> float | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise BadInput(f"{field} in {_WHAT} must be an age such as 30d")
    return parse_age(value)
