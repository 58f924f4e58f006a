"""States: what follows from what was written down."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mas.model.state import SOURCES, AgentState, State, fold

ALL = ("osc7501", "hooks", "title")
SEEN = (*ALL, "screen")


def line(event: str, **fields: Any) -> str:
    return json.dumps({"at": "t", "event": event, **fields})


def said(source: str, state: str, kind: str = "", text: str = "") -> str:
    return line("state", source=source, state=state, kind=kind, text=text)


START = line("start", pid=1)
EXIT = line("exit", status=3)
SILENT = said("launcher", "unknown", text="has said nothing")


@pytest.mark.parametrize(
    ("lines", "sources", "state", "source", "words"),
    [
        ([], ALL, "starting", "launcher", "launched"),
        ([START], ALL, "starting", "launcher", "launched"),
        ([], (), "unknown", "none", "running; reports no state"),
        ([START, said("osc7501", "idle")], (), "unknown", "none", "running; reports no state"),
        ([START, said("osc7501", "idle")], ALL, "idle", "osc7501", ""),
        ([START, said("osc7501", "idle"), said("osc7501", "working")], ALL, "working", "osc7501", ""),
        ([START, said("osc7501", "idle"), said("title", "working")], ALL, "idle", "osc7501", ""),
        ([START, said("title", "working")], ALL, "working", "title", ""),
        ([START, said("title", "working"), said("hooks", "idle")], ALL, "idle", "hooks", ""),
        ([START, said("screen", "idle")], ALL, "starting", "launcher", "launched"),
        ([START, said("screen", "blocked", "trust", "x; y")], SEEN, "blocked", "screen", "trust: x; y"),
        ([START, said("screen", "blocked"), said("screen", "starting")], SEEN, "starting", "launcher", "launched"),
        ([START, said("screen", "idle"), said("osc7501", "working")], SEEN, "working", "osc7501", ""),
        ([START, said("osc7501", "working"), said("screen", "idle")], SEEN, "working", "osc7501", ""),
        ([START, SILENT], ALL, "unknown", "launcher", "has said nothing"),
        ([START, SILENT], (), "unknown", "none", "running; reports no state"),
        ([START, SILENT, said("hooks", "idle")], ALL, "idle", "hooks", ""),
        ([START, said("hooks", "idle"), SILENT], ALL, "idle", "hooks", ""),
        ([START, SILENT, said("screen", "blocked", "auth")], SEEN, "blocked", "screen", "auth"),
        ([START, SILENT, said("screen", "starting")], SEEN, "unknown", "launcher", "has said nothing"),
        ([START, said("screen", "starting"), SILENT], SEEN, "unknown", "launcher", "has said nothing"),
        ([START, SILENT, START], ALL, "starting", "launcher", "launched"),
        ([START, SILENT, EXIT], ALL, "exited", "launcher", "exit status 3"),
        ([START, said("launcher", "idle")], (*ALL, "launcher"), "starting", "launcher", "launched"),
        ([START, said("title", "unknown")], ALL, "starting", "launcher", "launched"),
        ([START, said("osc7501", "blocked", "permission", "rm x")], ALL, "blocked", "osc7501", "permission: rm x"),
        ([START, said("osc7501", "blocked", "auth")], ALL, "blocked", "osc7501", "auth"),
        ([START, said("osc7501", "idle"), EXIT], ALL, "exited", "launcher", "exit status 3"),
        ([START, EXIT, said("osc7501", "idle")], ALL, "exited", "launcher", "exit status 3"),
        ([START, EXIT], (), "exited", "launcher", "exit status 3"),
        ([START, line("exit", status=-9)], ALL, "exited", "launcher", "signal 9"),
        ([line("exit", status=127, reason="no unit")], ALL, "exited", "launcher", "no unit"),
        ([START, line("exit")], ALL, "exited", "launcher", "ended"),
        ([START, said("osc7501", "error"), EXIT, START], ALL, "starting", "launcher", "launched"),
        ([START, said("osc7501", "idle"), START, said("title", "working")], ALL, "working", "title", ""),
        ([START, line("hook", name="Stop")], ALL, "starting", "launcher", "launched"),
        ([START, said("osc7501", "exited")], ALL, "starting", "launcher", "launched"),
        ([START, said("osc7501", "sleepy"), said("osc7501", "")], ALL, "starting", "launcher", "launched"),
        ([START, said("osc7501", "idle"), '{"at":"t","event":"sta'], ALL, "idle", "osc7501", ""),
        ([START, said("osc7501", "idle"), "", "null", "[]", "{}", "[" * 100_000, '"x"'], ALL, "idle", "osc7501", ""),
        ([START, line("state", source=1, state=["idle"], kind=2)], ALL, "starting", "launcher", "launched"),
        ([START, line("state", source="hooks", state="error", kind=2, text=None)], ALL, "error", "hooks", ""),
    ],
)
def test_the_state_that_lines_report(
    lines: list[str], sources: tuple[str, ...], state: str, source: str, words: str
) -> None:
    found = fold(lines, sources)
    assert (found.state, found.source, found.words) == (state, source, words)
    assert fold([line.encode() for line in lines], sources) == found


STATES = st.sampled_from(["starting", "idle", "working", "blocked", "error"])
REPORTS = st.tuples(st.sampled_from(SOURCES), STATES, st.text(max_size=3))


@given(st.lists(st.one_of(REPORTS, st.just("start")), max_size=30), st.permutations(SOURCES), st.integers(0, 5))
def test_in_any_order_of_reports_the_best_source_decides_by_its_last_one(
    happened: list[Any], order: list[str], count: int
) -> None:
    sources = tuple(order[:count])
    last: dict[str, tuple[str, str]] = {}
    lines = [START]
    for what in happened:
        if what == "start":
            last = {}
            lines.append(START)
        else:
            source, state, text = what
            last[source] = (state, text)
            if (source, state) == ("screen", "starting"):
                del last[source]
            lines.append(said(source, state, text=text))
    found = fold(lines, sources)
    decides = next((source for source in sources if source in last), None)
    if decides:
        assert (found.source, (found.state, found.text)) == (decides, last[decides])
    else:
        assert found.state is (State.STARTING if sources else State.UNKNOWN)
    assert fold([*lines, EXIT], sources).state is State.EXITED


def test_a_state_is_as_it_is_written_in_the_specification() -> None:
    assert AgentState(State.IDLE) == (State.IDLE, "", "", "none", "")
    assert [*State] == ["starting", "idle", "working", "blocked", "error", "exited", "unknown"]


def test_an_idle_program_without_its_input_line_is_blocked_until_there_is_news() -> None:
    def line(source: str, state: str, kind: str = "") -> str:
        return json.dumps({"event": "state", "source": source, "state": state, "kind": kind})

    start, idle, dialog = '{"event":"start"}', line("title", "idle"), line("composer", "blocked", "dialog")

    def folded(*lines: str) -> tuple[str, str]:
        found = fold([start, *lines], ("title",))
        return found.state, found.source

    assert folded(idle, dialog) == ("blocked", "composer")
    assert folded(line("title", "error"), dialog) == ("blocked", "composer")
    assert folded(idle, dialog, line("composer", "starting")) == ("idle", "title")
    assert folded(dialog, idle) == ("idle", "title")
    assert folded(idle, dialog, line("title", "working")) == ("working", "title")
    assert folded(line("title", "working"), dialog) == ("working", "title")
    assert folded(dialog) == ("starting", "launcher")
