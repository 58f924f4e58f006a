"""Shell files: a shell and MAS read back the same bytes, and nothing is ever run."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mas.model.errors import BadInput
from mas.store.files.shellfile import parse_pairs, quote_pairs
from tests.site import short_directory

NASTY = [
    "", "'", "''", '"', "\\", "\\'", "'\\''", "a'b'c", "~", "~root", "*", "?", "[a]", "$HOME", "${x:=y}", "$(touch x)",
    "`touch x`", "'; touch x; '", "'\"'\"'", "; touch x", "& touch x", "| touch x", "#x", "a #x", "!x", "-n", "%s",
    "\t", " a ", "=", "a=b", "\x81\x82\x88", "\x1b[31m", "é", "日本", "\udc81\udcff", "a\x0bb\x0c", "/tmp/a b/c",
]  # fmt: skip
LINES = st.characters(codec="utf-8", exclude_characters="\n\r\0")
BYTES = st.binary(max_size=12).map(lambda data: os.fsdecode(bytes(byte for byte in data if byte not in b"\n\r\0")))
VALUES = st.lists(st.one_of(st.text(LINES, max_size=12), BYTES, st.sampled_from(NASTY)), min_size=1, max_size=30)
SHELLS = [shell for shell in ("sh", "bash") if shutil.which(shell)]


def named(values: list[str]) -> dict[str, str]:
    return {f"KEY_{number}": value for number, value in enumerate(values)}


@pytest.mark.parametrize("shell", SHELLS)
@given(VALUES)
@example(NASTY)
@settings(max_examples=40)
def test_a_shell_reads_back_every_byte_and_runs_nothing(shell: str, values: list[str]) -> None:
    pairs = named(values)
    words = " ".join(f'"$KEY_{number}"' for number in range(len(values)))
    with short_directory() as directory:
        with open(os.path.join(directory, "file"), "wb") as file:
            file.write(quote_pairs(pairs))
        script = f". ./file; printf '%s\\0' {words}"
        done = subprocess.run([shell, "-c", script], cwd=directory, capture_output=True, check=True)
        assert done.stdout == b"".join(os.fsencode(value) + b"\0" for value in values)
        assert done.stderr == b""
        assert os.listdir(directory) == ["file"]


@given(VALUES)
@example(NASTY)
def test_mas_reads_back_what_it_wrote(values: list[str]) -> None:
    data = quote_pairs(named(values))
    assert parse_pairs(data) == named(values)
    assert data.count(b"\n") == len(values)


@pytest.mark.parametrize("value", ["a\nb", "a\r", "\0"])
def test_a_value_that_needs_more_than_a_line_is_refused(value: str) -> None:
    with pytest.raises(BadInput):
        quote_pairs({"KEY": value})


@pytest.mark.parametrize("key", ["", "a", "1A", "A B", "A=B", "Ä", "A\n", "A;B", "_A", "A٣"])
def test_a_key_is_an_upper_case_variable(key: str) -> None:
    with pytest.raises(BadInput):
        quote_pairs({key: "x"})


@pytest.mark.parametrize(
    "data",
    [
        b"", b"A=b", b"A", b"\n", b"A=b\n\n", b"# note\n", b"export A=b\n", b" A=b\n", b"a=b\n", b"A=$HOME\n",
        b"A=a b\n", b"A='b\n", b"A='b'c\n", b"A=b'c'\n", b"A='''\n", b'A="b"\n', b"A=$(id)\n", b"A=`id`\n", b"A=b\r\n",
        b"A=b;id\n", b"A=~\n", b"A=*\n", b"A='a';id;'b'\n", b"A\xd9\xa3=b\n", b"A=\xc3\xa9\n",
    ],
)  # fmt: skip
def test_what_mas_would_not_have_written_is_not_read(data: bytes) -> None:
    with pytest.raises(ValueError):
        parse_pairs(data)


@given(st.binary(max_size=60))
def test_reading_any_bytes_gives_pairs_or_a_value_error(data: bytes) -> None:
    try:
        pairs = parse_pairs(data)
    except ValueError:
        return
    assert parse_pairs(quote_pairs(pairs)) == pairs
