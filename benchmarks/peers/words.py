"""Numbers and tables as people read them, for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.peers.sides import CAO, MAS, RAW, SIDES
from benchmarks.peers.table import Cell, Line, Table

HEADINGS = ("work", *SIDES, f"{MAS} ÷ {RAW}", f"{CAO} ÷ {MAS}")


def number(value: float, unit: str) -> str:
    """A value with its unit; seconds are told in milliseconds as long as those are few."""
    if unit != "s":
        return f"{value:.0f} {unit}" if value >= 100 or value == 0 else f"{value:.2g} {unit}"
    if value >= 1:
        return f"{value:.3g} s"
    return f"{1000 * value:.3g} ms"


def cells(line: Line) -> tuple[str, ...]:
    """What stands in a table for a line: each side, then what MAS is to tmux alone and the peer to MAS."""
    shown = [_shown(line.cells[side], line.unit) for side in SIDES]
    return line.work, *shown, _ratio(line, MAS, RAW), _ratio(line, CAO, MAS)


def text(table: Table) -> str:
    """A table with aligned columns."""
    rows = [HEADINGS, *(cells(line) for line in table.lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join([table.title, *(line.rstrip() for line in lines)]) + "\n"


def grid(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as Markdown has it."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def _shown(cell: Cell, unit: str) -> str:
    return f"({cell})" if isinstance(cell, str) else number(cell, unit)


def _ratio(line: Line, above: str, below: str) -> str:
    numerator, denominator = line.cells[above], line.cells[below]
    if isinstance(numerator, str) or isinstance(denominator, str) or not denominator:
        return ""
    return f"{numerator / denominator:.2f}" if numerator < 10 * denominator else f"{numerator / denominator:.0f}"
