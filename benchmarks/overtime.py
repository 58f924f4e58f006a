"""A drawing of figures over time: one small field each, above one another, with the same hours below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_WIDTH, _HEIGHT, _GAP, _LEFT, _TOP = 640, 70, 34, 16, 28


class Line(NamedTuple):
    """What is drawn, and its value at each time."""

    name: str
    values: list[float]


def drawing(times: Sequence[float], *lines: Line) -> str:
    """The drawing as SVG; it carries its own colours, fit for a light and a dark page."""
    longest = max(times)
    tall = _TOP + len(lines) * (_HEIGHT + _GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH + 2 * _LEFT} {tall}" role="img"'
        ' font-family="sans-serif" font-size="12" fill="#888">',
        f"<title>{', '.join(line.name for line in lines)} over {longest:.0f} seconds</title>",
    ]
    for number, line in enumerate(lines):
        parts += _field(times, longest, line, _TOP + number * (_HEIGHT + _GAP))
    return "\n".join([*parts, "</svg>", ""])


def _field(times: Sequence[float], longest: float, line: Line, top: int) -> list[str]:
    most = max(line.values) or 1.0
    points = " ".join(
        f"{_LEFT + _WIDTH * at / longest:.1f},{top + _HEIGHT * (1 - value / most):.1f}"
        for at, value in zip(times, line.values, strict=True)
    )
    bottom = top + _HEIGHT
    return [
        f'<text x="{_LEFT}" y="{top - 8}">{line.name}: at most {most:.3g}</text>',
        f'<line x1="{_LEFT}" y1="{bottom}" x2="{_LEFT + _WIDTH}" y2="{bottom}" stroke="#888" stroke-width="0.5"/>',
        f'<polyline points="{points}" fill="none" stroke="#3b82f6" stroke-width="1.5"/>',
        f'<text x="{_LEFT + _WIDTH}" y="{bottom + 14}" text-anchor="end">{longest:.0f} s</text>',
    ]
