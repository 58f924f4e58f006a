"""Bytes to try on a parser: anything at all, and its sound samples with something wrong in them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

# What numbers, names and depths a reader may not have thought of.
_ODD_TEXT = ["", "\0", "\n", "\ud800", "../../etc", "/", "٣", "x" * 5000, "NaN", "é", "\x1b]0;x\x07", "=", "m-", "‮"]
_ODD_JSON: list[Any] = [
    *(None, True, False, 0, -1, 1, 1 << 63, 10**30, 0.5, -0.0, float("inf"), float("nan"), [], {}, [[]], {"": None}),
    *_ODD_TEXT,
]
DEEP = 100_000
_SHOWN = 500
_ODD_BYTES = [
    *(
        b"",
        b"\0",
        b"\n",
        b"\r\n",
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\x1b",
        b"{}",
        b"[]",
        b"null",
        b'""',
        b"''",
        b"=",
    ),
    *(b"[" * DEEP, b'{"a":' * DEEP, b"a=" + b"[" * DEEP, b"1" * 5000, b"1e999", b"\x28\xb5\x2f\xfd", b" " * 5000),
]

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(_ODD_JSON) | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)


class Input(bytes):
    """Bytes that are shown in bounded length."""

    def __repr__(self) -> str:
        whole = bytes(self)
        return repr(whole) if len(whole) <= _SHOWN else f"{whole[:_SHOWN]!r} … {whole[-_SHOWN:]!r} ({len(whole)} bytes)"


def bytes_for(samples: tuple[bytes, ...]) -> st.SearchStrategy[bytes]:
    """What a parser with these samples is tried on."""
    sound = st.sampled_from(samples)
    kinds = [sound, damaged(sound), damaged(sound), st.sampled_from(_ODD_BYTES), st.binary(max_size=300)]
    values = [value for value in map(_value, samples) if value is not None]
    if values:
        changed = st.sampled_from(values).flatmap(changed_value)
        # The values matter more than the bytes: most damage to the text of JSON is no JSON.
        kinds += [changed.map(_dumped)] * 4 + [VALUES.map(_dumped)]
    return st.one_of(kinds).map(Input)


@st.composite
def damaged(draw: st.DrawFn, sound: st.SearchStrategy[bytes]) -> bytes:
    """Sound bytes with some of them cut out, doubled, replaced or put in."""
    data = draw(sound)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.sampled_from([0, 1, 2, 8, 64, 1 << 20])))
        put = draw(st.sampled_from(_ODD_BYTES) | st.binary(max_size=6) | st.just(data[start:end] * 2))
        data = data[:start] + put + data[end:]
    return data


@st.composite
def changed_value(draw: st.DrawFn, value: Any) -> Any:
    """The same JSON with one value in it, however deep, another; or without it."""
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 3)) == 0:
        return draw(VALUES)
    if isinstance(value, list):
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], draw(changed_value(value[place])), *value[place + 1 :]]
    key = draw(st.sampled_from(sorted(value)))
    if draw(st.integers(0, 5)) == 0:
        return {name: inner for name, inner in value.items() if name != key} | draw(
            st.just({}) | st.dictionaries(st.sampled_from(_ODD_TEXT), VALUES, max_size=1)
        )
    return {**value, key: draw(changed_value(value[key]))}


def _value(sample: bytes) -> Any:
    try:
        return json.loads(sample)
    except ValueError:
        return None


def _dumped(value: Any) -> bytes:
    return json.dumps(value).encode()
