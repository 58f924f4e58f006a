"""Launch files: the launcher reads exactly what was written for it."""

from __future__ import annotations

import os

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mas.store.agent.launch import launch_path, read_launch, read_resume, write_launch
from tests.site import short_directory
from tests.store.samples import mode, put, read, umask

TEXT = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12),
    st.binary(max_size=12).map(lambda data: os.fsdecode(data.replace(b"\0", b""))),
    st.sampled_from(["", "=", "==", "\n", "a=b", "-x", "'"]),
)
ARGV = st.lists(TEXT, min_size=1, max_size=6)
VARIABLES = st.dictionaries(st.from_regex(r"[A-Za-z_][A-Za-z0-9_]*", fullmatch=True), TEXT, max_size=4)


@given(ARGV, VARIABLES, VARIABLES)
@example([""], {}, {})
@example(["", "", ""], {"A": ""}, {"B": ""})
def test_a_launch_reads_back_as_it_was_written(argv: list[str], env: dict[str, str], options: dict[str, str]) -> None:
    with short_directory() as directory:
        path = os.path.join(directory, "launch")
        write_launch(path, argv, env, options)
        assert read_launch(path) == (argv, env, options)


@given(ARGV, VARIABLES, ARGV)
@example(["sh"], {}, [""])
def test_what_to_go_on_with_is_kept_beside_it(argv: list[str], options: dict[str, str], resume: list[str]) -> None:
    with short_directory() as directory:
        path = os.path.join(directory, "launch")
        write_launch(path, argv, {}, options)
        assert read_resume(path) == []
        write_launch(path, argv, {}, options, resume)
        assert read_launch(path) == (argv, {}, options)
        assert read_resume(path) == resume


def test_a_shorter_launch_leaves_nothing_of_a_longer_one(place: str) -> None:
    path = os.path.join(place, "launch")
    write_launch(path, ["sh", "x" * 5000], {"A": "y" * 5000}, {})
    write_launch(path, ["sh"], {}, {})
    assert read_launch(path) == (["sh"], {}, {})


def test_a_launch_is_private_and_never_written_through_a_link(place: str) -> None:
    path = os.path.join(place, "launch")
    with umask(0):
        write_launch(path, ["sh"], {}, {})
    assert mode(path) == 0o600
    other = put(place, "other", "mine")
    os.unlink(path)
    os.symlink(other, path)
    with pytest.raises(OSError):
        write_launch(path, ["sh"], {}, {})
    assert read(other) == b"mine"


def test_each_agent_has_its_own_launch() -> None:
    assert launch_path("/s", "00") == "/s/.mas/launch/00"
