"""The input lines of the real programs, on screens that they have shown: found, empty, with our text, or not there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from mas.model.screen import Screen, screen_in
from mas.providers.composer import Seen, dialog_on, input_rows, seen_on
from mas.providers.format import Composer
from mas.providers.provider import Providers

HEADER = "[MAS from=person to=00 id=m-0123456789abcdef]\n"
# What was pasted into the input line where a screen is called by this name.
TEXTS = {
    "one": f"{HEADER}hello",
    "tab": f"{HEADER}a\tb",
    "emoji": HEADER + "word " * 130 + "🙂",
    "no-completion": f"{HEADER}update role ",
    "no-picker": f"{HEADER}please look at \\@note ",
    "three": f"{HEADER}l1\nl2\nl3",
    "long": HEADER + "word " * 150,
    "many": HEADER + "\n".join(f"line {number}" for number in range(40)),
    "rare": f"{HEADER}tab\there é 日本 🙂 n\u0303 [x] C:\\path \u2028 end",
    "huge": HEADER + "A line of a long text, of which there are many.\n" * 60,
    "pasted": "First line: RUNTOOL please\nSecond line with 'quotes' and $VARS `ticks`\n\n  indented fourth line\n"
    "last line é 日本",
}
OTHER = f"{HEADER}another text"
REAL = ("aider", "claude", "codex", "gemini")


class Recorded(NamedTuple):
    """The end of a screen of a real program, with what it means for a message."""

    program: str
    name: str
    seen: Seen
    screen: Screen

    @property
    def text(self) -> str:
        return TEXTS.get(self.name, OTHER)


def recorded() -> Iterator[Recorded]:
    directory = os.path.join(os.path.dirname(__file__), "composers")
    for file_name in sorted(os.listdir(directory)):
        with open(os.path.join(directory, file_name), encoding="utf-8", newline="\n") as file:
            for part in file.read().split("=== ")[1:]:
                head, _, drawn = part.partition("\n")
                name, seen, cursor = re.fullmatch(r"(\S+): (\w+) (\d+,\d+)", head).groups()  # type: ignore[union-attr]
                row, column = map(int, cursor.split(","))
                yield Recorded(file_name.split("-")[0], name, Seen(seen), screen_in(drawn, row, column))


SCREENS = list(recorded())


def composer_of(program: str) -> Composer:
    return Providers("/nowhere", {}).get(program).composer


@pytest.mark.parametrize("one", SCREENS, ids=[f"{one.program} {one.name}" for one in SCREENS])
def test_a_screen_of_a_real_program_shows_what_it_did(one: Recorded) -> None:
    assert seen_on(composer_of(one.program), one.screen, one.text) is one.seen
    if one.seen is Seen.OURS:
        # A text that is not the message is not taken for it, however alike.
        composer = composer_of(one.program)
        stranger = Seen.DIALOG if input_rows(composer, one.screen) is None else Seen.DRAFT
        for other in (OTHER, f"{one.text}\nx"):
            assert seen_on(composer, one.screen, other) is stranger


@pytest.mark.parametrize("name", REAL)
def test_every_real_program_has_shown_its_input_line_and_what_comes_in_its_place(name: str) -> None:
    seen = [one.seen for one in SCREENS if one.program == name]
    assert set(seen) >= {Seen.REST, Seen.OURS, Seen.DIALOG}


@pytest.mark.parametrize(
    "one", [one for one in SCREENS if one.seen is Seen.REST], ids=lambda one: f"{one.program} {one.name}"
)
def test_no_cursor_elsewhere_is_an_input_line(one: Recorded) -> None:
    composer = composer_of(one.program)
    elsewhere = [row for row in range(-1, len(one.screen.rows) + 2) if row != one.screen.row]
    seen = {row: seen_on(composer, one.screen._replace(row=row), one.text) for row in elsewhere}
    assert Seen.REST not in seen.values()
    assert Seen.OURS not in seen.values()


def test_geminis_dialog_about_a_file_elsewhere_is_known_by_name() -> None:
    (screen,) = (one.screen for one in SCREENS if one.name == "outside-workspace")
    known = composer_of("gemini").dialogs
    assert dialog_on(screen, known) == (
        "dialog",
        "The following files are outside your workspace:; attach and answer it",
    )


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (("│ Really delete? │", "│ ● 1. Yes │", ""), "Really delete?"),
        (("Press any key to continue...",), "Press any key to continue..."),
        (("a", "b", ""), "b"),
        (("", ""), ""),
    ],
)
def test_an_unknown_dialog_is_described_by_its_question_or_its_last_words(rows: tuple[str, ...], words: str) -> None:
    assert dialog_on(Screen(rows, rows, 0, 0), ()) == ("dialog", words)


@pytest.mark.parametrize(
    ("old", "new", "row"),
    [
        ("> line 20", "other", 29),
        ("> line 20", ">", 29),
        ("Readonly: ROLE.md", "> line 9", 29),
        ("> line 39", "> line 39\n", 30),
        ("> line 39", "> line 39\n\nAdd main.py to the chat?", 29),
        # The text begins too far down for a screen that it fills, or has too few rows.
        *(("\n".join(f"> line {row}" for row in range(11, end)), "\n" * (end - 12), 29) for end in (35, 37)),
    ],
)
def test_only_a_screen_full_of_the_text_is_the_end_of_one_that_is_taller(old: str, new: str, row: int) -> None:
    (tall,) = (one for one in SCREENS if (one.program, one.name) == ("aider", "many"))
    drawn = "\n".join(tall.screen.rows)
    assert old in drawn
    screen = screen_in(drawn.replace(old, new, 1), row, 9)
    assert seen_on(composer_of("aider"), screen, tall.text) is Seen.DIALOG


@pytest.mark.parametrize(
    ("end", "seen"), [("[Pasted Text: 2{} chars]", Seen.OURS), ("[Pasted Text: 22 chars]", Seen.DRAFT)]
)
def test_an_emoji_is_one_character_or_two(end: str, seen: Seen) -> None:
    for units in (0, 1):
        rows = ["────", " hints", "", f" > {end.format(units)}", "", " workspace"]
        assert seen_on(composer_of("gemini"), screen_in("\n".join(rows), 3, 9), "a" * 19 + "🙂") is seen


@pytest.mark.parametrize("mode", ["", "ask", "architect multi", "multi"])
def test_every_row_of_a_text_has_aiders_prompt_in_any_of_its_modes(mode: str) -> None:
    drawn = f"────\nReadonly: ../ROLE.md\n{mode}> one long\n{mode}> line\n{mode}> two"
    assert seen_on(composer_of("aider"), screen_in(drawn, 4, 9), "one long line\ntwo") is Seen.OURS


LINED = Composer(prompt="> ?", margin="  ", above="^─+", below="─+", pasted=r"\[(?P<lines>\d+) lines\]")


@pytest.mark.parametrize(
    ("inside", "text", "seen"),
    [
        (["> "], "a", Seen.REST),
        (["> \x1b[2msay something\x1b[22m"], "a", Seen.REST),
        (["> \x1b[38;5;2mgreen\x1b[39m"], "green", Seen.OURS),
        (["> a b", "  c"], "ab c", Seen.OURS),
        (["> a b"], "a", Seen.DRAFT),
        # No more than the end, where a program has no room for more.
        (["> 2", "  3", "  4", "  5"], "1\n2\n3\n4\n5", Seen.OURS),
        (["> 4", "  5"], "1\n2\n3\n4\n5", Seen.DRAFT),
        (["> [3 lines]"], "1\n2\n3", Seen.OURS),
        (["> [4 lines]"], "1\n2\n3", Seen.DRAFT),
        (["> 1 [2 lines]"], "1\n2\n3", Seen.OURS),
        (["> x [2 lines]"], "1\n2\n3", Seen.DRAFT),
        (["> [3", "  lines]"], "1\n2\n3", Seen.OURS),
        (["1. Yes"], "1. Yes", Seen.DIALOG),
        (["> a", "b"], "a b", Seen.DIALOG),
    ],
)
def test_what_is_in_an_input_line(inside: list[str], text: str, seen: Seen) -> None:
    drawn = "\n".join(["before", "────", *inside, "────", "hints"])
    screen = screen_in(drawn, 1 + len(inside), 2)
    assert seen_on(LINED, screen, text) is seen
    for gone in ("────\n> ", "\n────\nhints"):
        frameless = screen_in(drawn.replace(gone, "\n> " if gone.endswith(" ") else "\nhints\n"), 1 + len(inside), 2)
        assert seen_on(LINED, frameless, text) is Seen.DIALOG
