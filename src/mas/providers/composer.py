"""The composer: a program's input line on a screen, and what is in it, as the provider's file describes it.

Nothing is typed to a program whose input line is not seen, and no Enter is pressed behind anything but our own text:
the same key that submits a message gives a permission if a dialog has come up.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING
from unicodedata import normalize

if TYPE_CHECKING:
    from mas.model.launch import Sign
    from mas.model.screen import Screen
    from mas.providers.format import Composer

# An input line of this many rows may show no more than the end of a text.
_TALL = 4
# Above a text that is taller than the screen, so many rows may stay of what is in front of it, such as a list of files.
_STAY = 12
_CONTROLS = bytes(range(0x21)) + b"\x7f"
_LAST_ROWS = 12
_LONGEST = 200
_FRAME = " \t│┃║|╭╮╰╯─━❯›>•●*"


class Seen(StrEnum):
    """What a screen shows in respect of a text that is typed, or about to be."""

    REST = "rest"
    """The input line, empty."""
    OURS = "ours"
    """The input line with that text, as far as the program shows it."""
    DRAFT = "draft"
    """The input line with another text."""
    DIALOG = "dialog"
    """No input line: a dialog, a menu, or something never seen before."""


def seen_on(composer: Composer, screen: Screen, text: str) -> Seen:
    """What the screen shows in respect of `text`."""
    rows = input_rows(composer, screen)
    if rows is None:
        return Seen.OURS if _is_end_shown(composer, screen, text) else Seen.DIALOG
    shown = " ".join(rows).strip()
    if not shown or (composer.rest and _compiled(composer.rest).fullmatch(shown)):
        return Seen.REST
    return Seen.OURS if _is_shown(composer, rows, text) else Seen.DRAFT


def input_rows(composer: Composer, screen: Screen) -> list[str] | None:
    """The text in the input line, row by row; None if there is no input line with the cursor in it."""
    if not 0 <= screen.row < len(screen.rows):
        return None
    prompt, margin = _compiled(composer.prompt), _compiled(composer.margin)
    text: list[str] = []
    for row in range(screen.row, -1, -1):
        line = screen.rows[row]
        begins = prompt.match(line)
        if begins and _is_framed(composer, screen, row):
            return [screen.bright[row][begins.end() :], *reversed(text)]
        further = margin.match(line)
        if line and not further:
            return None
        text.append(screen.bright[row][further.end() if further else 0 :])
    return None


def dialog_on(screen: Screen, known: tuple[Sign, ...]) -> tuple[str, str]:
    """The kind of a dialog and a line about it: that of a known one, or the last question on the screen."""
    text = screen.text
    for sign in known:
        if match := re.search(sign.match, text):
            line = text[text.rfind("\n", 0, match.end()) + 1 :].partition("\n")[0]
            return sign.kind, "; ".join(word for word in (_words(line), sign.hint) if word)
    last = [words for line in text.split("\n")[-_LAST_ROWS:] if (words := _words(line))]
    asked = [words for words in last if words.endswith(("?", "…", "..."))]
    return Seen.DIALOG, (asked or last or [""])[-1]


def _is_end_shown(composer: Composer, screen: Screen, text: str) -> bool:
    """Whether the rows down to the cursor are the end of `text`, which fills the screen: its frame is out of sight."""
    margin = _compiled(composer.margin)
    found = [margin.match(row) for row in screen.rows[: screen.row + 1]]
    top = next((row for row, begins in enumerate(found) if begins), len(found))
    rows = [line[begins.end() :] for line, begins in zip(screen.bright, found, strict=False) if begins and begins[0]]
    return (
        top <= _STAY
        and _TALL <= len(rows) == screen.row + 1 - top
        and _is_above(composer, screen)
        and _shows_end(rows, text)
    )


def _is_framed(composer: Composer, screen: Screen, top: int) -> bool:
    """Whether an input line that begins in row `top` and has the cursor in its last row stands where it should."""
    above = "\n".join(screen.rows[:top])
    is_below = not composer.above or re.search(f"(?m:{composer.above})\\Z", above)
    return bool(is_below) and _is_above(composer, screen)


def _is_above(composer: Composer, screen: Screen) -> bool:
    """Whether the cursor's row stands above what should follow an input line."""
    below = "\n".join(screen.rows[screen.row + 1 :])
    return not composer.below or bool(re.match(f"(?m:{composer.below})", below))


def _is_shown(composer: Composer, rows: list[str], text: str) -> bool:
    """Whether the rows are `text`, or what the program shows for it.

    Programs break lines where they like, and terminals draw rare characters as they can: what counts is all of ASCII
    but blanks. That is enough, for every message begins with a line that is its own.
    """
    shown, ours = _squashed("".join(rows)), _squashed(text)
    if shown in {_squashed(drawn) for drawn in _drawn(text)}:
        return True
    pasted = list(_compiled(composer.pasted.replace(" ", "")).finditer(shown)) if composer.pasted else []
    if not pasted:
        return len(rows) >= _TALL and _shows_end(rows, text)
    begin, end = shown[: pasted[0].start()], shown[pasted[-1].end() :]
    whole = not begin and not end and len(pasted) == 1
    return (
        ours.startswith(begin)
        and ours.endswith(end)
        and len(begin) + len(end) <= len(ours)
        and all(_counts(match, text, whole) for match in pasted)
    )


def _counts(pasted: re.Match[str], text: str, whole: bool) -> bool:
    """Whether what stands for a paste can stand for `text`: for the `whole` of it, or for a part."""
    newlines = text.count("\n")
    # To programs in JavaScript a character is a unit of UTF-16, of which an emoji is two.
    characters = {len(text), len(text.encode("utf-16-le")) // 2}
    sizes = {"newlines": {newlines}, "lines": {newlines + 1}, "characters": characters}
    counted = [(int(value), sizes[name]) for name, value in pasted.groupdict().items() if value and name in sizes]
    return all(shown in size if whole else shown <= max(size) for shown, size in counted)


def _drawn(text: str) -> tuple[str, ...]:
    """The text as programs draw it: some show a tab as the key that it is on a keyboard."""
    return (text, text.replace("\t", "^I")) if "\t" in text else (text,)


def _shows_end(rows: list[str], text: str) -> bool:
    shown = _squashed("".join(rows))
    return bool(shown) and any(_squashed(drawn).endswith(shown) for drawn in _drawn(text))


def _squashed(text: str) -> str:
    if not text.isascii():
        # Some programs join a letter and its accent, which are two characters.
        text = normalize("NFC", text)
    return text.encode("ascii", "ignore").translate(None, _CONTROLS).decode()


def _words(line: str) -> str:
    return " ".join(line.strip(_FRAME).split())[:_LONGEST]


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
