"""The only module that prints: data on stdout, messages on stderr."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import TextIO

from mas.cli import entry
from mas.model.errors import Disk, MasError
from mas.model.ids import PREFIX_LENGTH, UUID4
from mas.model.views import wire
from mas.settings import wants_colour

# A session's id in a hint, where it is not part of a path: people need only type its start.
_LONE_ID = re.compile(rf"(?<![/\w-]){UUID4}(?![/\w-])")
_COLOURS = {
    "active": "32",
    "stopped": "33",
    "lost": "31",
    "error": "31",
    "exited": "31",
    "blocked": "33",
    "ok": "32",
    "failed": "31",
    "refused": "31",
    "absent": "2",
    "dim": "2",
}
# The columns whose first word has a colour.
_COLOURED = ("STATUS", "STATE", "RESULT")
_NARROWEST = 8
_DAYS_BEFORE = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
_CLOCKS_DIFFER = 5
_LONGEST_BAR = 30
_BESIDE_BAR = 50
_BETWEEN_UPDATES = 0.1


class Render:
    """Prints what a command did: as text for people, or with `as_json` as the API's JSON."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.is_wide = False
        self.utc = False
        self.is_terminal = _is_terminal(sys.stdout)
        self._colour = wants_colour(self.is_terminal)
        self._bar_shown = 0.0
        self._bar_open = False
        if isinstance(sys.stdout, TextIOWrapper):
            # Where the terminal knows fewer characters than we do, an escape is better than no answer.
            sys.stdout.reconfigure(errors="backslashreplace")

    def result(self, value: object, text: Callable[[], object]) -> None:
        """The answer of a command: `value` as JSON, or whatever `text` prints."""
        if self.as_json:
            self.line(json.dumps(wire(value), indent=2, ensure_ascii=not _is_unicode(sys.stdout)))
        else:
            text()

    def line(self, text: str = "") -> None:
        self.raw(f"{text}\n")

    def text(self, text: str) -> None:
        """Lines from an agent or a log; no lines print nothing, not an empty line."""
        if text:
            self.line(text)

    def raw(self, text: str) -> None:
        with _written():
            print(text, end="")

    def flush(self) -> None:
        """See to it that all data has been taken; else `Disk`, or `BrokenPipeError` where the reader has gone."""
        if sys.stdout is not None:
            with _written():
                sys.stdout.flush()

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Columns as wide as their content. On a terminal the widest are cut to fit, unless `-o wide` was asked for."""
        cells = [tuple(headings), *(tuple(map(_one_line, row)) for row in rows)]
        widths = [max(_columns(row[column]) for row in cells) for column in range(len(headings))]
        if self.is_terminal and not self.is_wide:
            _fit(widths, terminal_width())
        cut = "…" if _is_unicode(sys.stdout) else "~"
        for number, row in enumerate(cells):
            fitted = [_padded(cell, width, cut) for cell, width in zip(row, widths, strict=True)]
            if number:
                fitted = [self._paint_word(*pair) for pair in zip(fitted, headings, strict=True)]
            line = "  ".join(fitted).rstrip()
            self.line(line if number else self._paint(line, "dim"))

    def wrapped(self, start: str, indent: int, text: str) -> None:
        """Text beside `start`, which takes `indent` columns; on a terminal that is too narrow, in several lines."""
        room = terminal_width() - indent if self.is_terminal else 0
        if room < _NARROWEST or len(text) <= room:
            self.line(start + text)
            return
        from textwrap import wrap

        first, *rest = wrap(text, room, break_long_words=False, break_on_hyphens=False)
        self.line(start + first)
        for line in rest:
            self.line(" " * indent + line)

    def heading(self, word: str) -> str:
        """The heading over a column of times."""
        return word if self.is_relative else f"{word} (UTC)"

    def time(self, stamp: str) -> str:
        """A time for a table: how long ago on a terminal, else in UTC."""
        return ago(stamp, time.time()) if self.is_relative else when(stamp)

    @property
    def is_relative(self) -> bool:
        return self.is_terminal and not self.is_wide and not self.utc

    def talk(self, text: str) -> None:
        """A message for people, apart from the data. Work never stops because stderr is closed."""
        try:
            if self._bar_open:
                print(file=sys.stderr)
                self._bar_open = False
            _push(sys.stdout)
            print(text, file=sys.stderr)
        except OSError:
            _give_up(sys.stderr)

    def warn(self, text: str) -> None:
        self.talk(f"warning: {text}")

    def error(self, error: MasError) -> None:
        """A refusal: the sentence and the next command, or with JSON one object."""
        if self.as_json:
            self.talk(json.dumps({"code": error.code, "message": error.message, "hint": error.hint}))
            return
        self.talk(f"error: {error.message}")
        if error.hint:
            self.talk(f"hint:  {_LONE_ID.sub(_start, error.hint)}")

    @property
    def can_ask(self) -> bool:
        """Whether a person is there to be asked."""
        return _is_terminal(sys.stdin) and _is_terminal(sys.stderr)

    def ask(self, question: str) -> bool:
        """Ask the person at the terminal; without one, the answer is no."""
        if not self.can_ask:
            return False
        print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
        return entry.line().strip().lower() in ("y", "yes")

    def progress(self, label: str) -> Callable[[int, int], None] | None:
        """A progress bar for long work, on a terminal only."""
        if self.as_json or not _is_terminal(sys.stderr):
            return None
        full, empty = ("█", "░") if _is_unicode(sys.stderr) else ("#", "-")
        length = max(min(_LONGEST_BAR, terminal_width() - _BESIDE_BAR), 1)

        def show(done: int, total: int) -> None:
            now = time.monotonic()
            if now - self._bar_shown < _BETWEEN_UPDATES and done < total:
                return
            self._bar_shown = now
            self._bar_open = done < total
            filled = length * done // total if total else 0
            bar = full * filled + empty * (length - filled)
            end = "" if self._bar_open else "\n"
            print(f"\r{label} {bar} {size(done)} of {size(total)} ", end=end, file=sys.stderr, flush=True)

        return show

    def _paint(self, text: str, word: str) -> str:
        return f"\x1b[{_COLOURS[word]}m{text}\x1b[0m" if self._colour and word in _COLOURS else text

    def _paint_word(self, cell: str, heading: str) -> str:
        """The cell, with its first word in colour if the column shows states."""
        word = cell.partition(" ")[0]
        return self._paint(word, word) + cell[len(word) :] if heading in _COLOURED else cell

    def mark(self, word: str, width: int = 0) -> str:
        return self._paint(word, word) + " " * (width - len(word))


@contextmanager
def _written() -> Iterator[None]:
    """Turns the refusals of standard output into ours; `BrokenPipeError` stays what it is."""
    try:
        yield
    except OSError as error:
        _give_up(sys.stdout)
        if isinstance(error, BrokenPipeError):
            raise
        raise Disk(f"The output could not be written: {error.strerror}", "df -h") from None


def _push(stream: TextIO | None) -> None:
    """Flush stdout before the next message, so that both keep their order in one pipe. Errors are raised later."""
    if stream is not None:
        with suppress(OSError):
            stream.flush()


def _start(found: re.Match[str]) -> str:
    return found[0][:PREFIX_LENGTH]


def _give_up(stream: TextIO) -> None:
    """Let a stream lead nowhere, so that nothing is tried again at the exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _is_terminal(stream: TextIO | None) -> bool:
    """Whether the stream is a terminal; a stream that was closed before we started is None."""
    return stream is not None and stream.isatty()


def _is_unicode(stream: TextIO | None) -> bool:
    return stream is not None and stream.encoding.lower().startswith("utf")


def size(count: int) -> str:
    """Bytes for people."""
    number = float(count)
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} GiB"


def count(number: int, thing: str) -> str:
    """`1 agent`, `13 agents`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def when(stamp: str) -> str:
    """A time to the second, for tables."""
    return stamp[:19].replace("T", " ") if stamp else "-"


def ago(stamp: str, now: float) -> str:
    """How long before `now` a time was, in words; unchanged if it is not a time or is in the future."""
    try:
        year, month, day, hour, minute, second = (int(stamp[at : at + 2]) for at in (2, 5, 8, 11, 14, 17))
        before = _DAYS_BEFORE[month - 1] + (1 if month > 2 and year % 4 == 0 else 0)
    except (ValueError, IndexError):
        return when(stamp)
    # Days since 1970, for the years 2000 to 2099; the standard modules would cost more than the whole table.
    days = 10957 + 365 * year + (year + 3) // 4 + before + day - 1
    passed = int(now) - (((days * 24 + hour) * 60 + minute) * 60 + second)
    if passed < -_CLOCKS_DIFFER:
        return when(stamp)
    for length, unit in ((86400, "day"), (3600, "h"), (60, "min"), (1, "s")):
        if passed >= length:
            plural = "s" if unit == "day" and passed >= 2 * length else ""
            return f"{passed // length} {unit}{plural} ago"
    return "now"


def short_path(path: str) -> str:
    """A path as people would type it here."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(path) else path


def terminal_width() -> int:
    from shutil import get_terminal_size

    return get_terminal_size().columns


def _one_line(text: str) -> str:
    """A cell's text: what an agent wrote moves no cursor and takes no second line."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else " " for character in text)


def _columns(text: str) -> int:
    """How many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(sign) else 2 if east_asian_width(sign) in "WF" else 1 for sign in text)


def _padded(text: str, width: int, cut: str) -> str:
    """The text in exactly so many columns; what does not fit ends in `cut`."""
    taken = _columns(text)
    if taken <= width:
        return text + " " * (width - taken)
    while _columns(text) >= width:
        text = text[:-1]
    return text + cut + " " * (width - 1 - _columns(text))


def _fit(widths: list[int], available: int) -> None:
    """Narrow the widest columns until all fit; the first is what people copy, and stays."""
    while (over := sum(widths) + 2 * (len(widths) - 1) - available) > 0 and len(widths) > 1:
        widest = max(range(1, len(widths)), key=lambda column: widths[column])
        if widths[widest] <= _NARROWEST:
            return
        second = max((width for column, width in enumerate(widths) if column not in (0, widest)), default=0)
        widths[widest] = max(widths[widest] - over, min(second, widths[widest] - 1), _NARROWEST)
