"""A pane as bytes: what makes a fresh terminal of its size show what the pane shows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mas.runtime.panes import OWNER
from mas.runtime.runtime import Snapshot
from mas.runtime.tmux import Command

_FLAGS = (
    "alternate_on",
    "cursor_flag",
    "insert_flag",
    "keypad_cursor_flag",
    "keypad_flag",
    "mouse_all_flag",
    "mouse_button_flag",
    "mouse_sgr_flag",
    "mouse_standard_flag",
    "mouse_utf8_flag",
    "origin_flag",
    "wrap_flag",
)
_NUMBERS = (
    "pane_width",
    "pane_height",
    "history_size",
    "cursor_x",
    "cursor_y",
    "scroll_region_upper",
    "scroll_region_lower",
)
# Only newer servers report it.
_PASTES = "bracket_paste_flag"
_TOLD = ",".join((OWNER, *(f"#{{{name}}}" for name in (*_NUMBERS, *_FLAGS, _PASTES))))
_COLOURS = re.compile(rb"\x1b\[([0-9;:]*)m")
# Besides resets, the codes of a background: eight colours, eight bright ones, one of many.
_BACKGROUND = re.compile(r"(?:^|;)(0?(?=;|$)|4[0-79]|10[0-7]|48[;:][0-9;:]+)")
_RESET = b"\x1bc"
_PLAIN = b"\x1b[0m\x0f"


def asking(pane: str, history: int) -> list[Command]:
    """The commands whose output `drawn` reads; run in one step, so that all output is of one moment."""
    look = ["capture-pane", "-p", "-e", "-N", "-t", pane]
    return [
        ["display-message", "-p", "-t", pane, _TOLD],
        # The screen that a full-screen program has saved; empty if there is none.
        [*look, "-a", "-q"],
        [*look, "-S", f"-{history}" if history else "0"],
    ]


def drawn(printed: str, history: int) -> tuple[str, Snapshot]:
    """Whose pane it is, and its snapshot."""
    head, _, rest = printed.partition("\n")
    owner, *fields = head.split(",")
    number = dict(zip(_NUMBERS, map(int, fields), strict=False))
    flag = {name: value == "1" for name, value in zip(_FLAGS, fields[len(_NUMBERS) :], strict=False)}
    rows = number["pane_height"]
    above = min(history, number["history_size"])
    lines = rest.encode("utf-8", "surrogateescape").removesuffix(b"\n").split(b"\n")
    # A line of nothing stands for no screen put aside.
    aside, lines = lines[: -(above + rows)], lines[-(above + rows) :]
    if flag["alternate_on"]:
        screen = _RESET + _scrolled([*lines[:above], *aside[:rows]]) + _PLAIN + b"\x1b[?1049h"
        screen += _placed(lines[above:])
    else:
        screen = _RESET + _scrolled(lines)
    data = screen + _PLAIN + b"".join(_modes(flag)) + _cursor(number, flag)
    return owner, Snapshot(data, number["pane_width"], rows, {"1": True, "0": False}.get(fields[-1]))


def _scrolled(lines: list[bytes]) -> bytes:
    """The lines one below the other. A terminal fills a new line with the background in force, so none may be."""
    out, background = [], b""
    for line in lines:
        out.append(background + line)
        background = _background(line, background)
        if background:
            out[-1] += b"\x1b[49m"
    return b"\r\n".join(out)


def _placed(lines: list[bytes]) -> bytes:
    return b"".join(b"\x1b[%d;1H" % row + line for row, line in enumerate(lines, 1))


def _background(line: bytes, before: bytes) -> bytes:
    """The background in force after a line, as the sequence that sets it."""
    for match in _COLOURS.finditer(line):
        for code in _BACKGROUND.findall(match[1].decode()):
            before = b"" if code in ("", "0", "49") else b"\x1b[%bm" % code.encode()
    return before


def _modes(flag: dict[str, bool]) -> Iterator[bytes]:
    wanted = {
        b"\x1b[4h": flag["insert_flag"],
        b"\x1b[?1h": flag["keypad_cursor_flag"],
        b"\x1b=": flag["keypad_flag"],
        b"\x1b[?1000h": flag["mouse_standard_flag"],
        b"\x1b[?1002h": flag["mouse_button_flag"],
        b"\x1b[?1003h": flag["mouse_all_flag"],
        b"\x1b[?1005h": flag["mouse_utf8_flag"],
        b"\x1b[?1006h": flag["mouse_sgr_flag"],
        b"\x1b[?7l": not flag["wrap_flag"],
        b"\x1b[?25l": not flag["cursor_flag"],
    }
    return (sequence for sequence, on in wanted.items() if on)


def _cursor(number: dict[str, int], flag: dict[str, bool]) -> bytes:
    """The region that scrolls, which moves the cursor, and then the cursor."""
    upper, lower = number["scroll_region_upper"], number["scroll_region_lower"]
    row, column = number["cursor_y"] + 1, min(number["cursor_x"] + 1, number["pane_width"])
    out = b""
    if (upper, lower) != (0, number["pane_height"] - 1):
        out += b"\x1b[%d;%dr" % (upper + 1, lower + 1)
    if flag["origin_flag"]:
        out += b"\x1b[?6h"
        row -= upper
    return out + b"\x1b[%d;%dH" % (row, column)
