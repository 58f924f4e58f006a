"""A screen as a person sees it: its rows, which of them the program itself wrote faintly, and where the cursor is."""

import re
from typing import NamedTuple

_ESCAPE = re.compile(r"\x1b\[([0-9;:]*)m|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x0e\x0f]")
# A colour of many, whose numbers are none of the codes looked for.
_COLOUR = re.compile(r"[345]8[;:](?:5[;:]\d*|2[;:][\d;:]*)")
_NORMAL, _FAINT, _NOT_FAINT = ("", "0"), "2", "22"


class Screen(NamedTuple):
    """The rows of a pane, and the cursor's row and column.

    `bright` are the same rows with blanks in place of faint text. Programs draw like this what is not input: a hint in
    an empty input line, a suggestion behind the cursor.
    """

    rows: tuple[str, ...]
    bright: tuple[str, ...]
    row: int
    column: int

    @property
    def text(self) -> str:
        return "\n".join(self.rows).strip("\n")


def screen_in(printed: str, row: int, column: int) -> Screen:
    """The screen that tmux has printed with its colours."""
    rows, bright = [], []
    is_faint = False
    for line in printed.removesuffix("\n").split("\n"):
        plain, kept, start = "", "", 0
        for escape in _ESCAPE.finditer(line):
            piece = line[start : escape.start()]
            plain, kept, start = plain + piece, kept + _shown(piece, is_faint), escape.end()
            is_faint = _is_faint(escape[1], is_faint)
        piece = line[start:]
        # The blank that does not break a line is one to the eye.
        rows.append((plain + piece).replace("\xa0", " ").rstrip())
        bright.append((kept + _shown(piece, is_faint)).replace("\xa0", " ").rstrip())
    return Screen(tuple(rows), tuple(bright), row, column)


def _shown(piece: str, is_faint: bool) -> str:
    return " " * len(piece) if is_faint else piece


def _is_faint(codes: str | None, before: bool) -> bool:
    if codes is None:
        return before
    for code in _COLOUR.sub("", codes).split(";") if codes else [""]:
        if code == _FAINT:
            before = True
        elif code == _NOT_FAINT or (code in _NORMAL and (code or not codes)):
            before = False
    return before
