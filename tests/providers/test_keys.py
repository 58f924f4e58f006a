"""Keys: what a terminal sends for each name that tmux knows."""

from __future__ import annotations

import pytest

from mas.providers.keys import bytes_of


@pytest.mark.parametrize(
    ("key", "sent"),
    [
        ("q", b"q"), ("Q", b"Q"), ("5", b"5"), ("C-c", b"\x03"), ("C-C", b"\x03"), ("C-q", b"\x11"), ("M-x", b"\x1bx"),
        ("S-a", b"A"), ("Enter", b"\r"), ("Escape", b"\x1b"), ("Up", b"\x1b[A"), ("F10", b"\x1b[21~"),
    ],
)  # fmt: skip
def test_a_key_is_typed_as_a_terminal_sends_it(key: str, sent: bytes) -> None:
    assert bytes_of(key) == sent


@pytest.mark.parametrize("key", ["Hyper", "C-1", "S-1", "X-a", ""])
def test_a_key_that_cannot_be_typed_is_refused(key: str) -> None:
    with pytest.raises(ValueError):
        bytes_of(key)
