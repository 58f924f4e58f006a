"""What a comparison found: one number or one word for each side, in lines and tables."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from statistics import median
from typing import NamedTuple

from benchmarks.peers.server import UNREACHABLE
from benchmarks.peers.sides import SIDES

Cell = float | str
"""A number, or why there is none."""
FAILURES = (RuntimeError, AssertionError, subprocess.SubprocessError, *UNREACHABLE)
"""What comes of a tool that refuses, or does not do in time what it was asked for."""
Numbers = Mapping[str, float]
"""What one piece of work took, by the names of what was looked at."""


class Line(NamedTuple):
    """One work, done by each side. Times are in seconds, unless a unit is given."""

    work: str
    cells: Mapping[str, Cell]
    unit: str = "s"


class Table(NamedTuple):
    """The lines of one subject, and what a reader must know to trust them."""

    title: str
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()


def line(work: str, *cells: Cell, unit: str = "s") -> Line:
    """A line whose cells stand in the order of the sides."""
    return Line(work, dict(zip(SIDES, cells, strict=True)), unit)


class Effort(NamedTuple):
    """How much a run may do."""

    share: float
    crowd: int
    idle_seconds: float

    def repeats(self, usual: int) -> int:
        return max(2, round(usual * self.share))


USUAL = Effort(share=1.0, crowd=50, idle_seconds=20.0)
QUICK = Effort(share=0.1, crowd=3, idle_seconds=2.0)


def in_turns(what: str, repeats: int, works: Mapping[str, Callable[[], Numbers]]) -> dict[str, dict[str, float]]:
    """The medians of each work, done in turns (A B C A B C …); the first round warms caches and is not counted.

    A tool that fails at one turn is measured by its others, and that it failed is said.
    """
    rounds: dict[str, list[Numbers]] = {name: [] for name in works}
    for turn in range(repeats + 1):
        say(f"{what}: round {turn} of {repeats}")
        for name, work in works.items():
            try:
                found = work()
            except FAILURES as error:
                say(f"{name} failed: {error}")
            else:
                rounds[name] += [found] if turn else []
    if dumb := [name for name, numbers in rounds.items() if not numbers]:
        raise RuntimeError(f"{what}: nothing of {', '.join(dumb)}")
    return {
        name: {key: median(turn[key] for turn in numbers) for key in numbers[0]} for name, numbers in rounds.items()
    }


def say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)
