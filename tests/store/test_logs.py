"""Logs: one line each, and an agent's output made readable."""

from __future__ import annotations

import os
from unicodedata import category

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mas.store.layout import Layout
from mas.store.session.logs import Logs, plain_text
from tests.store.samples import NOW, new_id, put, read

ID = new_id()
PIECES = st.sampled_from(
    [b"\x1b", b"\x1b[", b"\x1b]", b"\x1bP", b"\x1b\\", b"\x07", b"\xc2", b"\x9b", b"0;", b"m", b" ", b"\n"]
)


@pytest.fixture
def logs(layout: Layout) -> Logs:
    os.makedirs(layout.session(ID).logs)
    os.makedirs(layout.at("logs"))
    return Logs(layout, lambda: NOW)


def test_every_entry_is_one_line_with_its_time(layout: Layout, logs: Logs) -> None:
    logs.session(ID, "two\nlines")
    logs.session(ID, "\udcff")
    logs.workspace("here")
    lines = read(layout.session(ID).session_log()).decode().splitlines()
    assert lines[0] == f"{NOW} two lines"
    assert len(lines) == 2
    assert read(layout.at("logs", "mas.log")) == f"{NOW} here\n".encode()


def test_a_log_that_cannot_be_written_never_stops_the_work(layout: Layout, logs: Logs, place: str) -> None:
    logs.session(new_id(), "no such session")
    other = put(place, "other", "mine")
    os.symlink(other, layout.session(ID).session_log())
    logs.session(ID, "through a link")
    assert read(other) == b"mine"


def test_the_last_lines_are_found_in_a_log_of_any_length(place: str, logs: Logs) -> None:
    log = put(place, "log", "".join(f"line {number}\n" for number in range(50_000)))
    assert logs.tail(log, 2) == "line 49998\nline 49999"
    assert len(logs.tail(log, 40_000).split("\n")) == 40_000
    assert logs.tail(log, 0) == ""
    assert logs.tail(put(place, "short", "one\ntwo"), 10) == "one\ntwo"
    assert logs.tail(put(place, "empty"), 10) == ""
    assert logs.tail(os.path.join(place, "missing"), 10) == ""


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x1b[31mred\x1b[0m", "red"),
        (b"\x1b]0;title\x07text", "text"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1b(B\x1b=\x1b>text", "text"),
        (b"\x1bP1$r\x1b\\text", "text"),
        (b"a\x07b\x08c\x00d\r\n", "abcd"),
        (b"a\tb", "a\tb"),
        (b"\x1b[?2004htext\x1b[?2004l", "text"),
        ("日本 é".encode(), "日本 é"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"\x1b]unfinished", "unfinished"),
    ],
)
def test_escape_sequences_are_taken_out_and_text_is_kept(data: bytes, text: str) -> None:
    assert plain_text(data, 10) == text


@given(st.lists(st.binary(max_size=9) | PIECES, max_size=20).map(b"".join), st.integers(0, 5))
@example(b"\x1b\x1b[m[2J", 1)
@example(b"\xc2\x1b[m\x9b2J", 1)
@settings(max_examples=300)
def test_no_output_can_reach_the_readers_terminal_as_anything_but_text(data: bytes, lines: int) -> None:
    text = plain_text(data, lines)
    assert len(text.split("\n")) <= max(lines, 1)
    assert not {character for character in text if category(character) == "Cc"} - {"\n", "\t"}


@pytest.mark.parametrize("unit", [b"\x1b]", b"\x1b[", b"\x1bP0", b"\x1b]0;\x1b", b"\x1b "])
def test_output_made_to_be_slow_to_read_is_read(unit: bytes) -> None:
    """A pattern that looks ahead from every escape to the end would take minutes: the time limit of a test."""
    plain_text(unit * 200_000, 10)
