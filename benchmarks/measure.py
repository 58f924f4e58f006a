"""Timing: medians of work done in turns, and the rows made of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

Work = Callable[[], float]
"""Does something once and answers how many seconds of it count; what it tidies up afterwards does not."""


class Effort(NamedTuple):
    """How much a run may do."""

    share: float
    crowd: int
    listed: tuple[int, ...]
    witnesses: bool = True

    def repeats(self, usual: int) -> int:
        return max(3, round(usual * self.share))


QUICK = Effort(share=0.25, crowd=20, listed=(1, 50), witnesses=False)
USUAL = Effort(share=1.0, crowd=300, listed=(1, 50, 300))


class Row(NamedTuple):
    """One line of the table: some work, what it took, and what it is held against. Times in seconds, unless said."""

    work: str
    took: float
    floor_is: str = ""
    floor: float | None = None
    bound: str = ""
    limit: float | None = None
    unit: str = ""

    @property
    def ratio(self) -> float | None:
        return self.took / self.floor if self.floor else None

    @property
    def held(self) -> bool | None:
        return None if self.limit is None else self.took <= self.limit


class Group(NamedTuple):
    """The rows of one subject, and what a reader must know to trust them."""

    title: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()


def times(work: str, took: float, floor_is: str, floor: float, most: float) -> Row:
    """A row that may take at most `most` times its floor."""
    return Row(work, took, floor_is, floor, f"{most:g} × floor", most * floor)


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def in_turns(repeats: int, *works: Work) -> list[float]:
    """The median of each, done in turns (A B A B …) so that a slow moment of the machine hits all alike.

    The first round warms caches and is not counted.
    """
    rounds = [[work() for work in works] for _ in range(repeats + 1)][1:]
    return [median(column) for column in zip(*rounds, strict=True)]
