"""The demo agent: its line editor, and the program on a terminal."""

from __future__ import annotations

import os
import sys
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mas.providers import demo
from mas.providers.demo import Editor
from tests.pane.pane import pane
from tests.site import Site, until

START, END = b"\x1b[200~", b"\x1b[201~"
TEXT = "erste Zeile\n\tzweite: 日本 🙂\n\nlast".encode()


def feed(*parts: bytes) -> list[bytes]:
    """The messages that typing the parts one after the other submits."""
    editor = Editor()
    return [message for part in parts for message in editor.feed(part)]


@pytest.mark.parametrize("enter", [b"\r", b"\n"])
def test_enter_submits_a_line(enter: bytes) -> None:
    assert feed(b"hello" + enter) == [b"hello"]
    assert feed(b"one" + enter + b"two" + enter) == [b"one", b"two"]
    assert feed(b"not yet") == []


def test_a_paste_is_one_message_however_many_lines_it_has() -> None:
    assert feed(START + TEXT + END + b"\r") == [TEXT]
    assert feed(b"before " + START + TEXT + END + b" after\r") == [b"before " + TEXT + b" after"]
    assert feed(START + END + b"\r") == [b""]


def test_a_paste_split_at_any_byte_is_the_same_message() -> None:
    typed = START + TEXT + END + b"\r"
    for cut in range(len(typed) + 1):
        assert feed(typed[:cut], typed[cut:]) == [TEXT], cut


def test_a_paste_that_comes_byte_by_byte_is_the_same_message() -> None:
    typed = b"a" + START + TEXT + END + b"b\r" + START + TEXT + END + b"\r"
    assert feed(*(bytes([value]) for value in typed)) == [b"a" + TEXT + b"b", TEXT]


@settings(deadline=None, database=None)
@given(st.lists(st.binary(max_size=40), max_size=5), st.lists(st.integers(0, 250), max_size=12))
def test_pastes_of_any_bytes_cut_anywhere_arrive_exactly(texts: list[bytes], cuts: list[int]) -> None:
    texts = [text.replace(END, b"") for text in texts]
    texts = [text for text in texts if END not in text + END[:-1]]
    typed = b"".join(START + text + END + b"\r" for text in texts)
    edges = [0, *sorted(min(cut, len(typed)) for cut in cuts), len(typed)]
    assert feed(*(typed[start:end] for start, end in pairwise(edges))) == texts


def test_what_looks_like_the_end_of_a_paste_is_text() -> None:
    for almost in (b"\x1b", b"\x1b[201", b"\x1b[2010~", b"\x1b[200~", b"[201~"):
        text = b"x" + almost + b"y"
        for cut in range(len(text)):
            assert feed(START + text[:cut], text[cut:] + END + b"\r") == [text]


def test_enter_and_control_characters_inside_a_paste_are_text() -> None:
    text = b"a\rb\nc\x03d\x04e\x15f\x7fg"
    assert feed(START + text + END + b"\r") == [text]


def test_keys_edit_the_line() -> None:
    assert feed("grün🙂\x7f\x08x\r".encode()) == ["grüx".encode()]
    assert feed(b"\x7f\x7fa\r") == [b"a"]
    assert feed(b"wrong\x15right\r") == [b"right"]
    assert feed(b"a\x04b\r") == [b"ab"]
    assert feed(b"tab\x01\x02bed\r") == [b"tabbed"]


def test_ctrl_c_and_ctrl_d_end_the_agent() -> None:
    with pytest.raises(KeyboardInterrupt):
        feed(b"some text\x03")
    with pytest.raises(EOFError):
        feed(b"\x04")


def test_what_is_being_typed_can_be_shown_at_any_time() -> None:
    editor = Editor()
    half = "ü".encode()
    editor.feed(b"gr" + half[:1])
    assert editor.tail() == "gr"
    editor.feed(half[1:] + b"n")
    assert editor.tail() == "grün"


def test_answers_say_what_arrived() -> None:
    assert "2 lines, 4 bytes" in demo.answer("ü\nx")
    assert "1 line, 1 bytes" in demo.answer("x")
    assert "/quit" in demo.answer("/help")


def test_the_demo_agent_takes_a_paste_keeps_it_and_quits(bare: Site) -> None:
    program = (sys.executable, "-ISE", demo.__file__)
    with pane(bare, *program, agent_env={"MAS_AGENT_ID": "00", "MAS_SESSION_ID": "an-id"}) as one:
        one.expect(b"no model behind it")
        one.expect(b"\x1b[?2004h00> ")
        one.send(START + TEXT + END + b"\r")
        one.expect(f"(demo) got 4 lines, {len(TEXT)} bytes".encode())
        inbox = one.path("inbox.md")
        until(lambda: os.path.exists(inbox), "the inbox")
        with open(inbox, "rb") as file:
            assert file.read() == TEXT + b"\n\n"
        one.send(b"/env\r")
        one.expect(b"MAS_SESSION_ID=an-id")
        one.send(b"\r/quit\r")
        assert one.wait() == 0
        assert b"\x1b[?2004l" in one.output


@pytest.mark.parametrize("keys", [b"\x03", b"\x04", b"/exit\r"])
def test_the_demo_agent_ends_in_good_order(bare: Site, keys: bytes) -> None:
    with pane(bare, sys.executable, "-ISE", demo.__file__) as one:
        one.expect(b"??> ")
        one.send(keys)
        assert one.wait() == 0
        assert b"Traceback" not in one.output


def test_a_message_of_one_mebibyte_arrives_whole(bare: Site) -> None:
    text = b"".join(b"%07d\n" % number for number in range(1 << 17))
    with pane(bare, sys.executable, "-ISE", demo.__file__) as one:
        one.expect(b"?2004h")
        one.send(START + text + END + b"\r")
        one.expect(b"%d bytes; kept" % len(text))
        with open(one.path("inbox.md"), "rb") as file:
            assert file.read() == text + b"\n\n"


def test_arrow_keys_type_nothing() -> None:
    editor = Editor()
    assert editor.feed(b"a\x1b[Ab\x1bOC\x1b[1;5Dc\r") == [b"abc"]
