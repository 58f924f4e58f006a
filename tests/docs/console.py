"""The console blocks of a page, run as a reader would: one shell, one command after the other."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tests.site import REPOSITORY, Site

_BLOCK = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
_HERE = "<<'END'\n"
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LEFT_OUT = "…"
# What differs from run to run, and from machine to machine.
_PLAIN = (
    # A page shows what a terminal does; here nothing is one, so times are in UTC.
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\d+ (?:s|min) ago"), "TIME"),
    (re.compile(r"(?<=[A-Z]) \(UTC\)"), ""),
    (re.compile(r"\b(lost|stopped) TIME"), r"\1"),
    (re.compile(r"\bm-[0-9a-f]{16}\b"), "MESSAGE"),
    (re.compile(r"\[[0-9a-f]{6} by "), "[WORK by "),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
    (re.compile(r"code=[0-9a-f]+"), "code=CODE"),
    (re.compile(r"-[0-9a-f]{6}\.service"), "-UNIT.service"),
    (re.compile(r"^mas \d+\.\d+\.\d+\S*$", re.MULTILINE), "mas VERSION"),
    # Columns are as wide as the longest path in them.
    (re.compile(r"(?<=\S) {2,}"), "  "),
)


class Step(NamedTuple):
    """A command of a page, and what the page shows of its output."""

    command: str
    shown: str


def steps_of(*page: str) -> list[Step]:
    """All commands in the console blocks of a page of the documentation, in order."""
    with open(os.path.join(REPOSITORY, *page), encoding="utf-8") as file:
        text = "".join(_BLOCK.findall(file.read()))
    return [_step(piece) for piece in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]]


def _step(piece: str) -> Step:
    if _HERE in piece:
        command, shown = piece.split("\nEND\n", 1)
        return Step(f"{command}\nEND", shown)
    return Step(*piece.split("\n", 1))


class Reader:
    """Somebody who types a page's commands, with other ids than those it shows."""

    def __init__(self, site: Site, shell: subprocess.Popen[str]) -> None:
        self._site = site
        self._shell = shell
        self._ids: dict[str, str] = {}
        self.last = ""

    def types(self, command: str) -> str:
        """What a command prints, with the page's ids; it is run with this reader's."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        end = f"--{os.urandom(8).hex()}--"
        self._shell.stdin.write(f"{self.mine(command)}\necho {end}\n")
        self._shell.stdin.flush()
        lines: list[str] = []
        for line in self._shell.stdout:
            text, ended, _ = line.partition(end)
            lines.append(text)
            if ended:
                return self._as_shown("".join(lines))
        raise AssertionError(f"the shell ended: {command}: {''.join(lines)}")

    def mine(self, text: str) -> str:
        """`text` with this reader's ids and home in place of the page's."""
        for shown, real in self._ids.items():
            text = text.replace(shown, real).replace(shown[:8], real[:8])
        return text.replace("/home/you", self._site.home)

    def _as_shown(self, printed: str) -> str:
        for shown, real in self._ids.items():
            printed = printed.replace(real, shown).replace(real[:8], shown[:8])
        return printed.replace(self._site.home, "/home/you")

    def sees(self, step: Step) -> bool:
        """Whether a command prints what the page shows; the ids of a new session are learnt from it."""
        self.last = printed = self.types(step.command)
        new = [(shown, real) for shown, real in zip(_ids(step.shown), _ids(printed), strict=False) if shown != real]
        for shown, real in new:
            if shown not in self._ids:
                self._ids[shown] = real
                printed = self._as_shown(printed)
        wanted = [re.escape(line) for line in plain(step.shown).split("\n")]
        pattern = "\n".join(wanted).replace(f"{_LEFT_OUT}\n", "(?:.*\n)*?")
        return re.fullmatch(pattern, plain(printed)) is not None


def _ids(text: str) -> list[str]:
    return list(dict.fromkeys(_ID.findall(text)))


def plain(text: str) -> str:
    """Output without what differs from run to run."""
    text = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
    for pattern, word in _PLAIN:
        text = pattern.sub(word, text)
    return text


@contextmanager
def reading(site: Site) -> Iterator[Reader]:
    """A shell in the repository, as it is after a log-in of a user whose home is the site's."""
    shell = subprocess.Popen(
        ["bash"],
        # As on a terminal: every line is written when it is printed.
        env=site.env | {"PYTHONUNBUFFERED": "1"},
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield Reader(site, shell)
    finally:
        shell.communicate(timeout=60)
