"""Plots: one dot for each side on a logarithmic axis, as small text that a browser draws in light and in dark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from benchmarks.peers.sides import MAS, SIDES
from benchmarks.peers.table import Line
from benchmarks.peers.words import number

_WIDTH, _LEFT, _RIGHT = 760, 90, 90
_STEP, _TITLE, _GAP = 17, 22, 12
_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #57606a }
.work { font-weight: 600; fill: #24292f }
.grid { stroke: #d0d7de }
.dot { fill: #8c959f } .line { stroke: #8c959f; stroke-opacity: .45; stroke-width: 2 }
.ours .dot { fill: #0969da } .ours .line { stroke: #0969da } .ours text { fill: #0969da; font-weight: 600 }
@media (prefers-color-scheme: dark) {
  text { fill: #9198a1 } .work { fill: #e6edf3 } .grid { stroke: #3d444d }
  .ours .dot { fill: #4493f8 } .ours .line { stroke: #4493f8 } .ours text { fill: #4493f8 }
}
"""


def picture(title: str, lines: Sequence[Line]) -> str:
    """Lines of one unit, drawn below each other over one axis."""
    drawn = [(line.work, _numbers(line.cells)) for line in lines]
    scale = _Scale([value for _, found in drawn for value in found.values()])
    height = 24 + sum(_TITLE + _STEP * len(found) + _GAP for _, found in drawn)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
    ]
    for value in scale.decades:
        at = scale.x(value)
        label = escape(number(value, lines[0].unit))
        parts.append(f'<line class="grid" x1="{at}" y1="18" x2="{at}" y2="{height}"/>')
        parts.append(f'<text x="{at}" y="12" text-anchor="middle">{label}</text>')
    top = 24
    for work, found in drawn:
        parts.append(f'<text class="work" x="0" y="{top + 14}">{escape(work)}</text>')
        top += _TITLE
        for side, value in found.items():
            parts.append(_dot(side, number(value, lines[0].unit), scale.x(value), top + _STEP // 2))
            top += _STEP
        top += _GAP
    return "\n".join([*parts, "</svg>", ""])


class _Scale:
    """Where values stand between the decades round the smallest and the largest."""

    def __init__(self, values: Sequence[float]) -> None:
        some = [value for value in values if value > 0] or [1.0]
        self._low = math.floor(math.log10(min(some)))
        self._high = max(math.ceil(math.log10(max(some))), self._low + 1)
        self.decades = [10.0**power for power in range(self._low, self._high + 1)]

    def x(self, value: float) -> float:
        """What is nothing stands at the very left."""
        share = (math.log10(value) - self._low) / (self._high - self._low) if value > 0 else 0.0
        return round(_LEFT + max(share, 0.0) * (_WIDTH - _LEFT - _RIGHT), 1)


def _numbers(cells: Mapping[str, float | str]) -> dict[str, float]:
    found = {side: cells[side] for side in SIDES}
    return {side: float(value) for side, value in found.items() if not isinstance(value, str)}


def _dot(side: str, label: str, x: float, y: int) -> str:
    ours = ' class="ours"' if side == MAS else ""
    return (
        f'<g{ours}><text x="{_LEFT - 10}" y="{y + 4}" text-anchor="end">{escape(side)}</text>'
        f'<line class="line" x1="{_LEFT}" y1="{y}" x2="{x}" y2="{y}"/><circle class="dot" cx="{x}" cy="{y}" r="5"/>'
        f'<text x="{x + 10}" y="{y + 4}">{escape(label)}</text></g>'
    )
