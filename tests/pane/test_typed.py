"""What the launcher notes of messages: their first line and their Enter, however the bytes come."""

from __future__ import annotations

import pytest

from mas.pane.typed import Typed
from mas.store.agent.agentlog import MARK_END, MARK_START

ONE, TWO = "m-0123456789abcdef", "m-fedcba9876543210"
MARK = MARK_START + b"00ff" + MARK_END


def header(name: str) -> bytes:
    return f"[MAS from=person to=design id={name}]\n".encode()


def pasted(name: str, text: bytes = b"hello") -> bytes:
    return b"\x1b[200~" + header(name) + text + b"\x1b[201~"


class Notes(list[tuple[str, str]]):
    """A launcher's notes, and what of the typed bytes it passed on."""

    def __init__(self) -> None:
        super().__init__()
        self.typed = Typed(lambda what, name: self.append((what, name)))
        self.passed = b""

    def feed(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.passed += self.typed.feed(piece)
            self.typed.tell()

    def work(self) -> None:
        self.typed.begins_to_work()
        self.typed.tell()


@pytest.fixture
def notes() -> Notes:
    return Notes()


def test_a_message_and_its_enter_are_noted_in_their_order(notes: Notes) -> None:
    notes.feed(pasted(ONE))
    assert notes == [("typed", ONE)]
    notes.feed(b"\r")
    notes.feed(pasted(TWO) + b"\r")
    assert notes == [("typed", ONE), ("entered", ONE), ("typed", TWO), ("entered", TWO)]


def test_however_the_bytes_are_cut_they_say_and_pass_the_same(notes: Notes) -> None:
    whole = b"ls\r" + pasted(ONE, "größe\n[MAS\n".encode()) + b"\r" + MARK + b"# " + header(TWO) + b"echo\r"
    for size in range(1, 40):
        cut = Notes()
        cut.feed(*(whole[place : place + size] for place in range(0, len(whole), size)))
        assert cut.passed == whole.replace(MARK, b""), size
        assert cut == [("typed", ONE), ("entered", ONE), ("mark", "00ff"), ("typed", TWO), ("entered", TWO)], size


def test_a_message_that_is_typed_once_more_before_enter_is_noted_again(notes: Notes) -> None:
    notes.feed(pasted(ONE, b"lost"), pasted(ONE, b"lost [MAS from="), b"\r")
    assert notes == [("typed", ONE), ("typed", ONE), ("entered", ONE)]


def test_a_message_that_was_given_up_before_enter_does_not_stand_for_the_next(notes: Notes) -> None:
    both = pasted(ONE, b"lost") + pasted(TWO, b"heard")
    notes.feed(*(both[place : place + 1] for place in range(len(both))), b"\r")
    assert notes == [("typed", ONE), ("typed", TWO), ("entered", TWO)]


def test_what_a_message_quotes_is_not_taken_for_another(notes: Notes) -> None:
    notes.feed(pasted(ONE, header(TWO) + b"said he"), b"\r")
    assert notes == [("typed", ONE), ("entered", ONE)]


@pytest.mark.parametrize(
    "text",
    [
        b"[MAS from=person to=00 id=m-0123]",
        b"[MAS from=person to=00 id=m-0123456789abcdeF]",
        b"[MAS from=person\nto=00 id=m-0123456789abcdef]",
        b"[MAS from=" + b"x" * 1000 + b" id=m-0123456789abcdef]",
        b"[MAS to=00 id=m-0123456789abcdef]",
    ],
)
def test_what_only_looks_like_a_first_line_is_none(notes: Notes, text: bytes) -> None:
    notes.feed(text, b"\r", pasted(ONE))
    assert notes == [("typed", ONE)]


def test_a_mark_is_for_the_launcher_alone_and_comes_behind_what_was_typed(notes: Notes) -> None:
    notes.feed(pasted(ONE) + MARK + b"x" + MARK)
    assert notes == [("typed", ONE), ("mark", "00ff"), ("mark", "00ff")]
    assert notes.passed == pasted(ONE) + b"x"


@pytest.mark.parametrize("keys", [b"\x1b", b"\x1b]", b"\x1b[A", b"\x1bOP", b"a"])
def test_no_key_waits_for_the_next(notes: Notes, keys: bytes) -> None:
    notes.feed(keys)
    assert notes.passed == keys


def test_what_may_become_a_mark_passes_if_it_does_not_in_time(notes: Notes) -> None:
    notes.feed(b"x\xff")
    assert (notes.passed, notes.typed.due is None) == (b"x", False)
    assert (notes.typed.release(), notes.typed.due) == (b"\xff", None)
    notes.feed(MARK)
    assert notes == [("mark", "00ff")]
    assert notes.typed.due is None


def test_what_begins_like_a_mark_and_is_none_passes(notes: Notes) -> None:
    notes.feed(MARK_START, b"x" * 100, b"\xff", b"after")
    assert notes.passed == MARK_START + b"x" * 100 + b"\xffafter"
    assert notes == []


def test_the_first_sign_of_work_after_enter_says_that_a_message_was_taken(notes: Notes) -> None:
    notes.work()
    notes.feed(pasted(ONE))
    notes.work()
    assert notes == [("typed", ONE)]
    notes.feed(b"\r")
    notes.work()
    notes.work()
    assert notes[1:] == [("entered", ONE), ("taken", ONE)]
