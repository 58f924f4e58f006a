"""The only room that prints: data on stdout, talk on stderr."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mas.model.views import wire
from mas.settings import wants_colour

if TYPE_CHECKING:
    from mas.model.errors import MasError

_COLOURS = {
    "active": "32",
    "stopped": "33",
    "error": "31",
    "exited": "31",
    "ok": "32",
    "failed": "31",
    "dim": "2",
}
_BAR = 30
_BETWEEN_UPDATES = 0.1


class Render:
    """Says what a command did: as text for people, or with `as_json` as what the API would answer."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self._colour = wants_colour(sys.stdout.isatty())
        self._bar_shown = 0.0

    def result(self, value: object, text: Callable[[], object]) -> None:
        """The answer of a command: `value` as JSON, or whatever `text` prints."""
        if self.as_json:
            print(json.dumps(wire(value), indent=2, ensure_ascii=False))
        else:
            text()

    def line(self, text: str = "") -> None:
        print(text)

    def raw(self, text: str) -> None:
        sys.stdout.write(text)

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Columns as wide as their content; nothing is cut off where output is not a terminal."""
        cells = [list(headings), *(list(row) for row in rows)]
        widths = [max(len(row[column]) for row in cells) for column in range(len(headings))]
        for number, row in enumerate(cells):
            text = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            print(self._paint(text, "dim") if number == 0 else self._paint_words(text, row))

    def talk(self, text: str) -> None:
        """Something for people, beside the data."""
        print(text, file=sys.stderr)

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
        if not sys.stdin.isatty():
            return False
        print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    def progress(self, label: str) -> Callable[[int, int], None] | None:
        """A bar for long work, where somebody is looking."""
        if self.as_json or not sys.stderr.isatty():
            return None

        def show(done: int, total: int) -> None:
            now = time.monotonic()
            if now - self._bar_shown < _BETWEEN_UPDATES and done < total:
                return
            self._bar_shown = now
            filled = _BAR * done // total if total else 0
            bar = "█" * filled + "░" * (_BAR - filled)
            end = "\n" if done >= total else ""
            print(f"\r{label} {bar} {size(done)} of {size(total)} ", end=end, file=sys.stderr, flush=True)

        return show

    def _paint(self, text: str, word: str) -> str:
        return f"\x1b[{_COLOURS[word]}m{text}\x1b[0m" if self._colour and word in _COLOURS else text

    def _paint_words(self, text: str, row: Sequence[str]) -> str:
        for cell in row:
            if cell in _COLOURS:
                return text.replace(cell, self._paint(cell, cell), 1)
        return text

    def mark(self, ok: bool) -> str:
        return self._paint("ok" if ok else "failed", "ok" if ok else "failed")


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
    return shutil.get_terminal_size().columns
