"""Help: the same for everybody, and every command has it."""

from __future__ import annotations

import pytest

from mas.cli.main import COMMANDS, HIDDEN
from tests.golden import golden
from tests.site import Site

WIDE = {"COLUMNS": "100"}


def test_mas_alone_shows_all_commands_and_is_a_mistake(bare: Site) -> None:
    asked = bare.mas("--help", env=WIDE)
    assert bare.mas(env=WIDE, code=2).stdout == asked.stdout
    assert bare.mas("help", env=WIDE).stdout == asked.stdout
    assert bare.mas("-h", "list", env=WIDE).stdout == asked.stdout
    golden("help/mas.txt", asked.stdout)


@pytest.mark.parametrize("command", [*COMMANDS, *HIDDEN])
def test_the_help_of_a_command_is_as_promised(bare: Site, command: str) -> None:
    asked = bare.mas(command, "--help", env=WIDE)
    assert asked.stderr == ""
    golden(f"help/{command}.txt", asked.stdout)


def test_help_is_reached_in_three_ways(bare: Site) -> None:
    texts = {bare.mas(*words, env=WIDE).stdout for words in (["help", "stop"], ["stop", "--help"], ["stop", "-h"])}
    assert len(texts) == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_an_ordinary_terminal(bare: Site, command: str) -> None:
    lines = bare.mas(command, "--help", env={"COLUMNS": "80"}).stdout.splitlines()
    described = lines[: lines.index("examples:")]
    assert [line for line in described if len(line) > 80 and line.startswith(" ")] == []


def test_help_asks_for_no_workspace_and_makes_nothing(bare: Site) -> None:
    bare.mas("start", "--help")
    assert bare.run(["find", bare.directory]).stdout.split() == [bare.directory, bare.home]


def test_the_version_has_three_spellings(bare: Site) -> None:
    assert len({bare.mas(word).stdout for word in ("version", "--version", "-V")}) == 1
