"""The recording: any player can replay it, and it shows what tmux showed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mas.pane import cast
from mas.pane.cast import Cast
from tests.pane.pane import Pane, pane, stand_in
from tests.site import Site, short_directory, until

LIMITED = """
import resource, sys
from mas.pane.cast import Cast

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

made = Cast(sys.argv[1], 80, 24, "xterm")
"""
Recorded = list[tuple[float, str, str]]


@pytest.fixture
def path(bare: Site) -> str:
    return os.path.join(bare.directory, "a.cast")


def replay(path: str) -> tuple[dict[str, Any], Recorded]:
    """The header and the events; every line must be JSON, and times must not go back."""
    with open(path, encoding="utf-8", newline="\n") as file:
        header, *lines = [json.loads(line) for line in file]
    events = [(at, code, text) for at, code, text in lines]
    assert [event[0] for event in events] == sorted(event[0] for event in events)
    assert header["version"] == 2
    return header, events


def shown(events: Recorded) -> str:
    return "".join(text for _, code, text in events if code == "o")


def cast_of(one: Pane) -> str:
    return os.path.join(one.session, "logs", f"agent-{one.agent}.cast")


def test_a_recording_says_how_large_the_terminal_was_and_what_was_printed(bare: Site) -> None:
    with pane(bare, "printf", "é \\033[31mred\\n", env={"TERM": "tmux-256color"}) as one:
        assert one.wait() == 0
        header, events = replay(cast_of(one))
        assert (header["width"], header["height"], header["env"]) == (100, 30, {"TERM": "tmux-256color"})
        assert shown(events) == "é \x1b[31mred\r\n"
        assert os.stat(cast_of(one)).st_mode & 0o777 == 0o600


def test_a_change_of_size_is_recorded_between_what_was_printed_before_and_after(bare: Site) -> None:
    with pane(bare, *stand_in("size")) as one:
        one.expect(b"[100x30]")
        one.resize(80, 24)
        one.expect(b"[80x24]")
        one.resize(81, 25)
        one.expect(b"[81x25]")
        one.process.terminate()
        one.wait()
        _, events = replay(cast_of(one))
        assert [event[1:] for event in events] == [
            ("o", "[100x30]"),
            *(("r", "80x24"), ("o", "[80x24]")),
            *(("r", "81x25"), ("o", "[81x25]")),
        ]


def test_what_is_typed_and_what_is_reported_is_not_recorded(bare: Site) -> None:
    piece = b"a\x1b]7501;state=idle\x07b\x1b]7501;?\x07c"
    with pane(bare, *stand_in("teller"), piece.hex()) as one:
        one.expect(b"abc")
        one.send(b"secret")
        one.send(b"q")
        assert one.wait() == 0
        _, events = replay(cast_of(one))
        assert {code for _, code, _ in events} == {"o"}
        assert shown(events) == "abc"


def test_a_recording_shows_what_tmux_shows(bare: Site) -> None:
    """An agent that draws, in a real tmux pane; then its recording, printed into another pane."""
    screen = (
        "\x1b[2J\x1b[H\x1b[1;31mTitle\x1b[0m\r\n"
        + "".join(f"\x1b[{row};{row * 3}H│ café {row} ⠋ 日本\x1b[K" for row in range(3, 12))
        + "\x1b[5;10r\x1b[10;1Hscrolled\r\n\r\n\x1b[r\x1b[15;1H\x1b]2;title\x07\x1b]7501;state=idle\x1b\\done"
    )
    made = Pane(bare, [*stand_in("teller"), screen.encode().hex()], {"PATH": bare.env["PATH"]}, {})
    launcher = [sys.executable, "-ISE", os.path.join(os.path.dirname(cast.__file__), "__main__.py")]
    os.makedirs(os.path.dirname(bare.user_socket), mode=0o700)
    size = ("-x", "90", "-y", "25")
    bare.tmux(
        "-f", "/dev/null", "new-session", "-d", "-s", "one", *size, "-c", made.session, *launcher, made.session, "00"
    )
    until(lambda: "done" in bare.tmux("capture-pane", "-p", "-t", "one"), "the screen")
    until(lambda: os.path.exists(cast_of(made)) and os.path.getsize(cast_of(made)), "a recording")
    until(lambda: "done" in shown(replay(cast_of(made))[1]), "the recording")
    header, events = replay(cast_of(made))
    assert (header["width"], header["height"]) == (90, 25)
    replayed = shown(events).encode().hex()
    bare.tmux("new-session", "-d", "-s", "two", *size, *stand_in("teller"), replayed)
    until(lambda: "done" in bare.tmux("capture-pane", "-p", "-t", "two"), "the replayed screen")
    first, second = (bare.tmux("capture-pane", "-p", "-e", "-t", name) for name in ("one", "two"))
    assert first == second
    assert "日本" in first


def test_each_run_of_an_agent_begins_a_recording_and_keeps_the_one_before(bare: Site) -> None:
    for number in range(3):
        with pane(bare, "echo", f"run {number}") as one:
            assert one.wait() == 0
    assert shown(replay(cast_of(one))[1]) == "run 2\r\n"
    assert shown(replay(f"{cast_of(one)}.1")[1]) == "run 1\r\n"


def test_a_recording_past_its_largest_size_starts_again_with_a_header(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cast, "LARGEST", 2000)
    made = Cast(path, 80, 24, "xterm")
    for number in range(100):
        made.output(f"{number:099d}\n".encode(), number)
        made.flush()
        assert os.stat(path).st_size <= 2000
    made.resize(90, 30, 100)
    made.close()
    before, after = replay(f"{path}.1")[1], replay(path)[1]
    lines = (shown(before) + shown(after)).split()
    assert lines == [f"{number:099d}" for number in range(100 - len(lines), 100)]
    assert after[-1][1:] == ("r", "90x30")
    assert sorted(os.listdir(os.path.dirname(path)))[:2] == ["a.cast", "a.cast.1"]


def test_output_that_comes_close_together_is_one_event(path: str) -> None:
    made = Cast(path, 80, 24, "xterm")
    for number in range(10):
        made.output(b"x", 100 + number / 1000)
    assert made.due == 100.01
    made.flush()
    made.output(b"y", 101.5)
    made.close()
    assert replay(path)[1] == [(0, "o", "x" * 10), (1.5, "o", "y")]


@given(
    st.lists(st.one_of(st.text(max_size=5).map(lambda text: text.encode("utf-8", "replace")), st.binary(max_size=5)))
)
def test_characters_that_reads_cut_apart_are_whole_in_the_recording(pieces: list[bytes]) -> None:
    stream = b"".join(pieces)
    with short_directory() as directory:
        made = Cast(f"{directory}/a.cast", 80, 24, "")
        for byte in stream:
            made.output(bytes([byte]), 1.0)
            made.flush()
        made.close()
        if stream:
            text = shown(replay(f"{directory}/a.cast")[1])
            # Bytes that are no characters may be shown in more or fewer signs; all that are characters are there.
            assert text.replace("\ufffd", "") == stream.decode("utf-8", "replace").replace("\ufffd", "")


def test_of_a_flood_samples_are_kept_and_a_marker_says_what_is_missing(path: str) -> None:
    made = Cast(path, 80, 24, "xterm")
    line = b"%08d\n"
    lines = [line % number for number in range(2_000_000)]
    for number in range(0, len(lines), 500):
        # 18 MB within a third of a second.
        now = 10 + number / 6_000_000
        made.output(b"".join(lines[number : number + 500]), now)
        if made.due is not None and now >= made.due:
            made.flush()
    made.close()
    size = (
        os.stat(path).st_size + os.stat(f"{path}.1").st_size if os.path.exists(f"{path}.1") else os.stat(path).st_size
    )
    assert size < 8 << 20
    _, events = replay(path)
    missing = sum(int(text.split()[0]) for _, code, text in events if code == "m")
    assert missing + len(shown(events)) == 9 * len(lines)
    assert missing > 8 << 20
    assert shown(events).endswith("01999999\n")
    # No line is in two halves.
    assert {len(text) for text in shown(events).split("\n")[:-1]} == {8}


def test_a_full_disk_costs_the_recording_no_more_than_what_did_not_fit(path: str) -> None:
    script = (
        "made.output(b'before', 1.0); made.flush(); limit(200)\n"
        "for number in range(20): made.output(b'x' * 50, 2.0 + number); made.flush()\n"
        "limit(-1); made.output(b'after', 30.0); made.close()"
    )
    subprocess.run([sys.executable, "-c", LIMITED + script, path], check=True, timeout=90)
    _, events = replay(path)
    assert shown(events).startswith("before")
    missing = [text for _, code, text in events if code == "m"]
    recorded = shown(events).count("x")
    assert missing == [f"{1000 - recorded} bytes not recorded"]
    assert events[-1][2] == "after"


def test_a_recording_that_cannot_be_begun_leaves_the_one_before_alone(path: str) -> None:
    script = (
        "limit(10)\nfor number in range(5): made.output(b'lost', 1.0); made.flush()\n"
        "limit(-1); made.output(b'after', 2.0); made.close()"
    )
    first = Cast(path, 80, 24, "xterm")
    first.output(b"first run", 1.0)
    first.close()
    subprocess.run([sys.executable, "-c", LIMITED + script, path], check=True, timeout=90)
    assert shown(replay(f"{path}.1")[1]) == "first run"
    assert [event[1:] for event in replay(path)[1]] == [("m", "20 bytes not recorded"), ("o", "after")]


def test_a_recording_that_is_a_link_is_not_followed(path: str) -> None:
    target = f"{path}.target"
    os.symlink(target, path)
    made = Cast(path, 80, 24, "xterm")
    made.output(b"x", 1.0)
    made.close()
    assert not os.path.exists(target)


def test_a_full_disk_does_not_stop_an_agent_that_is_recorded(bare: Site) -> None:
    with pane(bare, *stand_in("flood"), "200000", before="ulimit -f 16") as one:
        assert one.wait() == 0
        assert len(one.output) > 200_000
        replay(cast_of(one))
