"""The only room that prints: data on stdout, talk on stderr."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from typing import TextIO

from mas.cli import entry
from mas.model.errors import Disk, MasError
from mas.model.views import wire
from mas.settings import wants_colour

_COLOURS = {
    "active": "32",
    "stopped": "33",
    "lost": "31",
    "error": "31",
    "exited": "31",
    "ok": "32",
    "failed": "31",
    "dim": "2",
}
_LONGEST_BAR = 30
_BESIDE_BAR = 50
_BETWEEN_UPDATES = 0.1


class Render:
    """Says what a command did: as text for people, or with `as_json` as what the API would answer."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
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

    def raw(self, text: str) -> None:
        with _written():
            print(text, end="")

    def flush(self) -> None:
        """See to it that all data has been taken; else `Disk`, or `BrokenPipeError` where the reader has gone."""
        if sys.stdout is not None:
            with _written():
                sys.stdout.flush()

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Columns as wide as their content; nothing is cut off where output is not a terminal."""
        cells = [list(headings), *(list(row) for row in rows)]
        widths = [max(len(row[column]) for row in cells) for column in range(len(headings))]
        for number, row in enumerate(cells):
            text = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            self.line(self._paint(text, "dim") if number == 0 else self._paint_words(text, row))

    def talk(self, text: str) -> None:
        """Something for people, beside the data. Work never stops because nobody listens."""
        try:
            if self._bar_open:
                print(file=sys.stderr)
                self._bar_open = False
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
            self.talk(f"hint:  {error.hint}")

    def ask(self, question: str) -> bool:
        """Ask a person; where there is none, the answer is no."""
        if not _is_terminal(sys.stdin):
            return False
        print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
        return entry.line().strip().lower() in ("y", "yes")

    def progress(self, label: str) -> Callable[[int, int], None] | None:
        """A bar for long work, where somebody is looking."""
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

    def _paint_words(self, text: str, row: Sequence[str]) -> str:
        for cell in row:
            if cell in _COLOURS:
                return text.replace(cell, self._paint(cell, cell), 1)
        return text

    def mark(self, ok: bool, width: int = 0) -> str:
        word = "ok" if ok else "failed"
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


def _give_up(stream: TextIO) -> None:
    """Let a stream lead nowhere, so that nothing is tried again at the exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _is_terminal(stream: TextIO | None) -> bool:
    """Whether somebody looks at the stream; one that was closed before we came is None."""
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


def short_path(path: str) -> str:
    """A path as people would type it here."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(path) else path


def terminal_width() -> int:
    from shutil import get_terminal_size

    return get_terminal_size().columns
