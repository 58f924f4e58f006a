"""Words: in which order they may stand."""

from __future__ import annotations

import pytest

from mas.cli.main import command_parser, load, parsed
from mas.model.errors import BadInput


@pytest.mark.parametrize(
    "line", ["--force 21 hello", "21 --force hello", "21 hello --force", "21 --force -- hello", "--force -- 21 hello"]
)
def test_options_stand_before_between_or_behind_what_they_are_for(line: str) -> None:
    args = parsed(command_parser("send", load("send")), line.split())
    assert (args.target, args.message, args.force) == ("21", "hello", True)


def test_one_argument_too_many_is_refused_in_any_place() -> None:
    with pytest.raises(BadInput, match="unrecognized arguments: again"):
        parsed(command_parser("send", load("send")), ["21", "--force", "hello", "again"])
