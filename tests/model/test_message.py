"""Messages: what may be typed into a pane, and the steps of a delivery."""

from __future__ import annotations

import unicodedata
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mas.model.errors import BadInput, Conflict
from mas.model.message import (
    LARGEST,
    Box,
    Delivery,
    DeliveryState,
    Message,
    MessageList,
    parse_message,
    parse_message_id,
)
from mas.model.views import wire


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


ALLOWED = {
    ("queued", "typed"), ("queued", "undelivered"),
    ("typed", "acknowledged"), ("typed", "undelivered"),
    ("undelivered", "acknowledged"),
}  # fmt: skip


@pytest.mark.parametrize(("now", "wanted"), [*product(DeliveryState, DeliveryState)])
def test_a_delivery_takes_a_step_exactly_where_the_table_allows_it(now: DeliveryState, wanted: DeliveryState) -> None:
    delivery = Delivery("21", now, "before", "because")
    if (now, wanted) in ALLOWED:
        assert delivery.to(wanted, "later") == Delivery("21", wanted, "later", None)
        assert delivery.to(wanted, "later", "why").reason == "why"
    else:
        with pytest.raises(Conflict, match=f"is {now} and cannot become {wanted}"):
            delivery.to(wanted, "later")


def test_the_words_for_a_delivery_are_a_promise() -> None:
    assert [*DeliveryState] == ["queued", "typed", "acknowledged", "undelivered"]
    assert [*Box] == ["all", "inbox", "sent"]


def test_on_the_wire_the_sender_is_called_from() -> None:
    message = Message("m-0", "21", "all", "text", "then", (Delivery("00", DeliveryState.QUEUED, "now"),))
    assert wire(MessageList((message, message._replace(sender=None)), 7))["messages"][0] == {
        "id": "m-0",
        "from": "21",
        "target": "all",
        "message": "text",
        "createdAt": "then",
        "deliveries": [{"agent": "00", "state": "queued", "at": "now", "reason": None}],
    }


def test_a_message_id_is_taken_unchanged_or_refused() -> None:
    assert parse_message_id("m-0123456789abcdef") == "m-0123456789abcdef"
    for bad in ("", "m-", "m-0123456789abcde", "m-0123456789abcdef0", "M-0123456789abcdef", "m-0123456789ABCDEF"):
        with pytest.raises(BadInput, match="message id"):
            parse_message_id(bad)
    for bad in ("m-0123456789abcdef\n", " m-0123456789abcdef", "../m-0123456789abcdef", "m-0123456789abcde'"):
        with pytest.raises(BadInput, match="message id"):
            parse_message_id(bad)
