"""Status reports are found however a stream is cut up, and all else passes byte for byte."""

from __future__ import annotations

import base64
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mas.model.launch import Sign
from mas.pane import osc
from mas.pane.osc import Report, ReportFilter, Titles
from mas.store.agent.agentlog import LONGEST_TEXT

IDLE = b"\x1b]7501;state=idle\x1b\\"
QUERY = b"\x1b]7501;?\x1b\\"
# What the filter does, written once more: slow, and for the whole stream at once.
WHOLE = re.compile(rb"\x1b\]7501;([^\x00-\x1f\x7f]{0,5000})(?:\x07|\x1b\\)", re.DOTALL)

FRAGMENTS = st.sampled_from(
    [
        *(
            b"\x1b",
            b"]",
            b"\x1b]",
            b"7501",
            b"\x1b]7501;",
            b";",
            b"?",
            b"state=",
            b"idle",
            b":",
            b"\x07",
            b"\x1b\\",
            b"\\",
        ),
        *(IDLE, QUERY, b"\x1b]7501;state=working:kind=x\x07", b"\x1b]0;title\x07", b"\x1b]75010;x\x07", b"\x1b[31m"),
        *(b"\n", b"\x18", b"\x1a", b"\x00", b"\x9c", b"\xc3\xa9", b"text", b"x" * 2600),
    ]
)
STREAMS = st.lists(st.one_of(FRAGMENTS, st.binary(max_size=4)), max_size=30).map(b"".join)


def through(pieces: list[bytes]) -> tuple[bytes, list[Report], list[bytes]]:
    """What passes the filter, the reports and the queries."""
    made = ReportFilter()
    passed = b"".join(map(made.feed, pieces)) + made.rest()
    return passed, made.reports, made.queries


def reference(stream: bytes) -> tuple[bytes, list[Report], list[bytes]]:
    reports, queries = [], []
    for match in WHOLE.finditer(stream):
        if match[1] == b"?":
            queries.append(match[0])
        elif report := osc._report(match[1]):
            reports.append(report)
    return WHOLE.sub(b"", stream), reports, queries


@given(STREAMS, st.data())
def test_any_stream_cut_up_anyhow_passes_as_the_whole_does(stream: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert through(pieces) == reference(stream)


@pytest.mark.parametrize("end", [b"\x07", b"\x1b\\"])
def test_a_report_is_read_wherever_it_is_cut_in_two(end: bytes) -> None:
    report = b"\x1b]7501;state=blocked:kind=permission:app=x:msg=aGVsbG8=" + end
    stream = b"before\x1b[0m" + report + b"after"
    for cut in range(len(stream) + 1):
        passed, reports, _ = through([stream[:cut], stream[cut:]])
        assert passed == b"before\x1b[0mafter"
        assert reports == [("blocked", "permission", "x", "hello")]
    assert through([bytes([byte]) for byte in stream])[:2] == (b"before\x1b[0mafter", reports)


def test_a_query_is_given_back_with_its_own_bytes() -> None:
    assert through([QUERY, b"\x1b]7501;?\x07"]) == (b"", [], [QUERY, b"\x1b]7501;?\x07"])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"state=idle", ("idle", "", "", "")),
        (b"state=done", ("idle", "", "", "")),
        (b"state=working:progress=50", ("working", "", "", "")),
        (b"state=error:msg=bm8=", ("error", "", "", "no")),
        (b"state=error:msg=bm8", ("error", "", "", "no")),
        (b"app=a:state=idle", ("idle", "", "a", "")),
        (b"state=idle:state=error", ("idle", "", "", "")),
        (b"state=blocked:kind=" + b"k" * 33, ("blocked", "", "", "")),
        (b"state=blocked:kind=Not A Word", ("blocked", "", "", "")),
        (b"state=idle:msg=%%%", ("idle", "", "", "")),
        (b"state=idle:msg=a", ("idle", "", "", "")),
        (b"state=clear", None),
        (b"state=other", None),
        (b"state", None),
        (b"", None),
    ],
)
def test_what_a_report_says(body: bytes, said: Report | None) -> None:
    assert through([b"\x1b]7501;" + body + b"\x07"]) == (b"", [said] if said else [], [])


def test_the_text_of_a_report_is_one_harmless_line() -> None:
    text = "a\x1b[2J\nb\x07\u009b31m\u202ec é"
    ((*_, said),) = through([b"\x1b]7501;state=idle:msg=" + base64.b64encode(text.encode()) + b"\x07"])[1]
    assert said == "a [2J b  31mc é"
    assert said.isprintable()


def test_the_text_of_a_report_is_bounded_and_ends_with_a_whole_character() -> None:
    text = base64.b64encode(("x" + "é" * 1200).encode())
    ((*_, said),) = through([b"\x1b]7501;state=idle:msg=" + text + b"\x07"])[1]
    assert said == "x" + "é" * ((LONGEST_TEXT - 1) // 2)


def test_what_is_too_long_for_a_report_passes() -> None:
    stream = b"\x1b]7501;state=idle:x=" + b"y" * 6000 + b"\x07"
    made = ReportFilter()
    assert made.feed(stream[:4000]) == b""
    assert made.feed(stream[4000:]) == stream
    assert made.reports == []


@pytest.mark.parametrize(
    "stream",
    [
        b"\x1b]7501;state=idle",
        b"\x1b",
        b"\x1b]75",
        b"\x1b]7501;state=idle\x1b",
        b"\x1b]7501;state=idle\x18\x07",
        b"\x1b]7501;state=id\nle\x07",
        b"\x1b]7501;state=idle\x1b[0m",
        b"\x1b]75010;state=idle\x07",
        b"\x1bPtmux;\x1b\x1b]7501;state=idle\x1b\x1b\\\x1b\\",
    ],
)
def test_what_is_no_whole_report_passes(stream: bytes) -> None:
    assert through([stream]) == (stream, [], [])


def test_a_report_inside_an_unfinished_one_is_read() -> None:
    assert through([b"\x1b]7501;state=wor" + IDLE]) == (b"\x1b]7501;state=wor", [("idle", "", "", "")], [])


MAP = (
    Sign(match="^◇", state="idle"),
    Sign(match="^[✦⠀-⣿]", state="working"),
    Sign(match="Action Required", state="blocked", kind="permission"),
    Sign(match="x", state="nonsense"),
    Sign(match="(", state="error"),
)


def titles(pieces: list[bytes], title_map: tuple[Sign, ...] = MAP) -> list[tuple[str, str, str]]:
    made = Titles(title_map)
    return [(state, kind, text) for piece in pieces for state, kind, _, text in made.feed(piece)]


def test_titles_mean_what_the_map_says() -> None:
    stream = (
        "a\x1b]0;◇ Ready\x07b\x1b]2;⠋ x\x1b\\\x1b]1;◇ icon\x07\x1b]2;✋ Action Required\x07\x1b]2;other\x07".encode()
    )
    said = [("idle", "", "◇ Ready"), ("working", "", "⠋ x"), ("blocked", "permission", "✋ Action Required")]
    for cut in range(len(stream) + 1):
        assert titles([stream[:cut], stream[cut:]]) == said
    assert titles([bytes([byte]) for byte in stream]) == said


@given(st.lists(STREAMS, max_size=5))
def test_no_stream_upsets_the_reader_of_titles(pieces: list[bytes]) -> None:
    titles(pieces)


def test_an_endless_title_is_not_kept() -> None:
    made = Titles(MAP)
    for _ in range(100):
        made.feed(b"\x1b]2;" + b"x" * 1000)
        made.feed(b"x" * 1000)
    assert len(made._held) <= 1024
    assert [state for state, *_ in made.feed("\x07\x1b]2;◇\x07".encode())] == ["idle"]
