"""Looking at a screen: when that is done, what it costs, and that nothing waits for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from mas.model.launch import Sign, StatePlan
from mas.pane.logs import AgentLogs
from mas.pane.screen import ScreenReader
from mas.pane.states import States
from tests.pane.pane import pane, stand_in
from tests.pane.test_reports import news, told, workspace
from tests.site import Site, short_directory, until

DIALOGS = (
    Sign(match="who are you", state="blocked", kind="trust", hint="say it"),
    Sign(match="broken", state="error"),
)
MAP = (Sign(match=r"ready\Z", state="idle"), Sign(match=r"y/n\Z", state="blocked"))


class Looker:
    """A screen under a clock of its own, and a `tmux` that shows what is in a file."""

    def __init__(self, place: str, **states: Any) -> None:
        self.shows = os.path.join(place, "shows")
        self.show("")
        with open(os.path.join(place, "tmux"), "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\nexec cat {self.shows}\n")
        os.chmod(os.path.join(place, "tmux"), 0o755)
        self.said: list[tuple[str, str, str]] = []
        self.looks: list[float] = []
        self.now = 0.0
        self.screen = ScreenReader(("/s", "%1"), StatePlan(**states), lambda *said: self.said.append(said), 0.0)

    def show(self, text: str) -> None:
        with open(self.shows, "w", encoding="utf-8") as file:
            file.write(text)

    def hide(self) -> None:
        os.remove(self.shows)

    def run(self, seconds: float, output: bool = False) -> list[float]:
        """Let time pass, with output every moment or none; answers when there was a look."""
        before = len(self.looks)
        for _ in range(round(seconds * 20)):
            self.now = round(self.now + 0.05, 2)
            if output:
                self.screen.stir(self.now)
            if self.screen.due is not None and self.screen.due <= self.now:
                self.looks.append(self.now)
                self.screen.look(self.now)
                self.screen.ended(*os.waitpid(-1, 0), self.now)
        return self.looks[before:]


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with short_directory() as directory:
        monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
        yield directory


def test_output_that_flows_is_looked_into_ever_less_often(place: str) -> None:
    seen = Looker(place, dialogs=DIALOGS)
    looks = seen.run(120, output=True)
    pauses = [after - before for before, after in pairwise(looks)]
    assert looks[0] == 0.5
    assert pauses == sorted(pauses)
    assert pauses[0] <= 1
    assert len(looks) <= 20


def test_a_screen_at_rest_is_looked_at_a_few_times_and_then_no_more(place: str) -> None:
    seen = Looker(place, dialogs=DIALOGS)
    looks = seen.run(300)
    assert looks[0] <= 0.5
    assert 2 <= len(looks) <= 6
    assert seen.screen.due is None
    seen.screen.stir(seen.now)
    assert seen.run(1)


def test_output_now_and_then_for_ever_does_not_cost_a_look_each_time(place: str) -> None:
    seen = Looker(place, dialogs=DIALOGS)
    for _ in range(300):
        seen.screen.stir(seen.now)
        seen.run(0.4)
    assert len(seen.looks) < 60


def test_a_tmux_that_fails_reports_nothing_and_is_asked_less_and_less_often(place: str) -> None:
    seen = Looker(place, dialogs=DIALOGS)
    seen.show("who are you?")
    seen.run(2)
    seen.hide()
    looks = seen.run(300, output=True)
    assert seen.said == [("blocked", "trust", "who are you?; say it")]
    assert len(looks) <= 12
    seen.show("welcome")
    seen.run(100)
    assert seen.said[1:] == [("starting", "", "")]


def test_a_dialog_is_reported_once_and_so_is_its_end(place: str) -> None:
    seen = Looker(place, dialogs=DIALOGS)
    for text in ("who are you?\n\n", "|  who are you?  |", "all is\nbroken!", "", "fine"):
        seen.show(text)
        seen.run(3, output=True)
        seen.run(20)
    assert seen.said == [("blocked", "trust", "who are you?; say it"), ("error", "", "broken!"), ("starting", "", "")]


def test_a_state_is_read_from_a_screen_at_rest_alone(place: str) -> None:
    seen = Looker(place, screen_map=MAP, quiet=2.0)
    seen.show("ready")
    assert seen.run(60, output=True) == []
    assert seen.run(1.9) == []
    seen.run(0.2)
    assert seen.said == [("idle", "", "")]
    seen.screen.stir(seen.now)
    assert seen.said[1:] == [("working", "", "")]
    seen.show("thinking")
    seen.run(10)
    assert len(seen.said) == 2
    seen.show("who are you?\nsure? y/n")
    seen.screen.stir(seen.now)
    seen.run(3)
    assert seen.said[2:] == [("blocked", "question", "sure? y/n")]
    # Nothing has moved, and yet it is another screen than tmux had drawn at first.
    seen.show("ready")
    seen.run(30)
    assert seen.said[3:] == [("idle", "", "")]


def test_an_idle_program_is_idle_while_something_is_typed_to_it_and_works_from_enter_on(place: str) -> None:
    seen = Looker(place, screen_map=MAP, quiet=1.0)
    seen.show("ready")
    seen.run(5)
    assert seen.said == [("idle", "", "")]
    # Text that was pasted, and its echo.
    seen.screen.hear(b"[MAS from=user to=00]\nhello", seen.now)
    seen.run(0.2, output=True)
    seen.show("ready hello")
    seen.run(60)
    assert len(seen.said) == 1
    # Not an echo any more.
    seen.screen.stir(seen.now)
    assert seen.said[1:] == [("working", "", "")]
    seen.run(60)
    assert len(seen.said) == 2
    seen.show("ready")
    seen.screen.stir(seen.now)
    seen.run(5)
    assert seen.said[2:] == [("idle", "", "")]
    seen.screen.hear(b"hello", seen.now)
    seen.screen.stir(seen.now)
    seen.screen.hear(b"\r", seen.now)
    # At once, before anything is printed: it must not be taken for idle.
    assert seen.said[3:] == [("working", "", "")]
    seen.show("hello!")
    seen.run(30)
    assert len(seen.said) == 4
    seen.screen.hear(b"\r", seen.now)
    seen.show("ready")
    seen.run(5)
    assert seen.said[4:] == [("idle", "", "")]
    seen.show("sure? y/n")
    seen.screen.stir(seen.now)
    seen.run(5)
    seen.screen.hear(b"y", seen.now)
    seen.screen.stir(seen.now)
    assert [state for state, _, _ in seen.said[5:]] == ["working", "blocked", "working"]


def test_a_program_is_starting_until_its_screen_is_known(place: str) -> None:
    seen = Looker(place, screen_map=MAP, quiet=1.0, dialogs=DIALOGS)
    for text in ("loading", "who are you?", "loading"):
        seen.show(text)
        seen.run(2, output=True)
        seen.run(5)
    assert [state for state, _, _ in seen.said] == ["blocked", "starting"]
    seen.show("who are you? ready")
    seen.screen.stir(seen.now)
    seen.run(5)
    seen.show("ready")
    seen.screen.stir(seen.now)
    seen.run(5)
    seen.show("who are you?")
    seen.screen.stir(seen.now)
    seen.run(5)
    assert [state for state, _, _ in seen.said[2:]] == ["blocked", "starting", "idle", "working"]


def due(states: States) -> float | None:
    return states.due


def test_silence_is_reported_once_and_only_if_no_source_reported(bare: Site) -> None:
    workspace(bare)
    session = os.path.join(bare.directory, "session")
    os.makedirs(os.path.join(session, "logs"))
    for source, state, silent in (
        ("", "", "it started"),
        ("title", "working", ""),
        ("screen", "blocked", ""),
        ("screen", "starting", "its dialog closed"),
        ("osc7501", "idle", "it started"),
    ):
        logs = AgentLogs(session, "00")
        logs.event("start", pid=1, sources=["title", "screen"])
        states = States(logs, ("title", "screen"), 0.0, 60.0)
        assert due(states) == 60.0
        if source:
            states.say(source, state, "", "", 10.0)
        for now in (59.9, 60.0, 69.9, 70.0, 1000.0):
            if (due(states) or now) <= now:
                states.look(now)
        assert due(states) is None
        with open(os.path.join(session, "logs", "agent-00.events.jsonl"), encoding="utf-8") as file:
            lines = [line for line in file if '"source":"launcher"' in line]
        assert [f"for 60 s since {silent}" in line for line in lines] == ([True] if silent else [])
        os.remove(os.path.join(session, "logs", "agent-00.events.jsonl"))


def test_no_tmux_at_all_stops_no_byte_and_no_state(bare: Site) -> None:
    workspace(bare)
    plan = {"states": StatePlan(sources=("osc7501", "screen"), dialogs=DIALOGS, start_timeout=1.0)}
    pieces = (b"who are you?".hex(), "@go", b"\x1b]7501;state=idle\x1b\\welcome".hex())
    environ = {"TMUX": "/nowhere/socket,1,0", "TMUX_PANE": "%0"}
    with pane(bare, *stand_in("teller"), *pieces, plan=plan, env=environ, before="PATH=/nowhere") as one:
        one.expect(b"who are you?")
        until(lambda: [state[:2] for state in told(one)] == [("launcher", "unknown")], "the silence")
        with open(one.path("go"), "w", encoding="ascii"):
            pass
        one.expect(b"welcome")
        until(lambda: [state[1] for state in told(one)] == ["unknown", "idle"], "the state")
        assert [event["state"] for event in news(one)] == ["starting", "unknown", "idle"]
