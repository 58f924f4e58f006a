"""Messages: what may be typed into a pane."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mas.model.errors import BadInput
from mas.model.message import LARGEST, parse_message


def pasteable(text: str) -> bool:
    if any(unicodedata.category(character) == "Cs" for character in text):
        return False
    controls = {character for character in text if unicodedata.category(character) == "Cc"}
    return 0 < len(text.encode()) <= LARGEST and controls <= {"\n", "\t"}


@given(st.text(alphabet=st.one_of(st.characters(), st.characters(categories=["Cc", "Cs"]))))
@settings(max_examples=300)
def test_a_message_is_taken_unchanged_or_refused(text: str) -> None:
    if pasteable(text):
        assert parse_message(text) == text
    else:
        with pytest.raises(BadInput):
            parse_message(text)


@pytest.mark.parametrize("control", [*map(chr, range(32)), "\x7f", "\x9b", "\x85"])
def test_every_control_character_but_newline_and_tab_is_named_and_refused(control: str) -> None:
    if control in "\n\t":
        assert parse_message(f"a{control}b") == f"a{control}b"
        return
    with pytest.raises(BadInput) as refused:
        parse_message(f"a{control}b")
    assert repr(control) in refused.value.message
    assert "position 1" in refused.value.message


@pytest.mark.parametrize("character", ["a", "é", "日", "🙂"])
def test_the_limit_is_one_mebibyte_of_utf8(character: str) -> None:
    width = len(character.encode())
    fits = character * (LARGEST // width)
    assert parse_message(fits) == fits
    with pytest.raises(BadInput, match="1 MiB"):
        parse_message(fits + character)


def test_an_empty_message_is_refused() -> None:
    with pytest.raises(BadInput, match="empty"):
        parse_message("")
