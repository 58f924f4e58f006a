"""Resizes one pane of a window."""

from collections.abc import Callable
from typing import NamedTuple

from mas.model.errors import BadInput

_COLUMNS = range(20, 501)
_ROWS = range(5, 201)


class _Frame(NamedTuple):
    """A pane in its window; named as tmux names them."""

    pane_width: int
    pane_height: int
    window_width: int
    window_height: int
    window_panes: int
    pane_at_left: int
    pane_at_right: int
    pane_at_top: int
    pane_at_bottom: int


# How a pane lies in its window.
FRAME = ",".join(f"#{{{name}}}" for name in _Frame._fields)


def check_size(columns: int, rows: int) -> None:
    """`BadInput` if no terminal has that size."""
    if columns not in _COLUMNS or rows not in _ROWS:
        wanted = f"{_COLUMNS[0]}x{_ROWS[0]} to {_COLUMNS[-1]}x{_ROWS[-1]}"
        raise BadInput(f"A terminal cannot be {columns}x{rows} (columns x rows, {wanted})")


def resizing(pane: str, columns: int, rows: int, sizes: list[int], grid: Callable[[int], tuple[int, int]]) -> str:
    """The commands that give a pane its size; none if it has it.

    A window follows a pane that fills it; otherwise it grows as much as the other panes need, and never shrinks.
    """
    frame = _Frame(*sizes)
    if (columns, rows) == (frame.pane_width, frame.pane_height):
        return ""
    across, down = grid(frame.window_panes)
    width = max(frame.window_width, columns + (across - 1) * (_COLUMNS[0] + 1))
    height = max(frame.window_height, rows + 1 + (down - 1) * (_ROWS[0] + 2))
    if frame.pane_at_left and frame.pane_at_right:
        width = columns
    if frame.pane_at_top and frame.pane_at_bottom:
        height = frame.window_height + rows - frame.pane_height
    commands = []
    if (width, height) != (frame.window_width, frame.window_height):
        commands.append(f"resize-window -t {pane} -x {width} -y {height}")
    if frame.window_panes > 1:
        commands.append(f"resize-pane -t {pane} -x {columns} -y {rows}")
    return " ; ".join(commands)
