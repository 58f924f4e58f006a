"""An agent's event file: whole lines by several writers, bounded, and quick to read from behind."""

from __future__ import annotations

import fcntl
import json
import os
from threading import Thread
from typing import Any

import pytest

from mas.model.state import COMPOSER, SOURCES, fold
from mas.providers import format as providers_format
from mas.store.agent import agentlog
from mas.store.agent.agentlog import AgentLog, Fields, has_spoken, last_run, plain


@pytest.fixture
def path(place: str) -> str:
    return os.path.join(place, "agent-00.events.jsonl")


def add(path: str, event: str, **fields: Any) -> None:
    line: Fields = {"at": "t", "event": event, **fields}
    with AgentLog(path) as log:
        log.add(line)


def say(path: str, source: str, state: str, text: str = "") -> None:
    add(path, "state", source=source, state=state, kind="", text=text)


def lines(path: str) -> list[dict[str, Any]]:
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_the_last_run_is_its_start_the_last_report_of_each_source_and_its_exit(path: str) -> None:
    add(path, "start", pid=1)
    say(path, "osc7501", "error")
    add(path, "exit", status=1)
    add(path, "start", pid=2)
    for number in range(500):
        say(path, "osc7501", "working", f"{number} " + "x" * 500)
        say(path, "title", "idle", str(number))
        add(path, "hook", name="Stop")
    say(path, "hooks", "blocked")
    found = [json.loads(line) for line in last_run(path)]
    assert [(event["event"], event.get("text", "").split(" ")[0]) for event in found] == [
        *(("start", ""), ("state", "499"), ("state", "499"), ("state", "")),
    ]
    assert found[0]["pid"] == 2
    add(path, "exit", status=7)
    assert json.loads(last_run(path)[-1])["status"] == 7


def test_a_run_is_found_whole_however_long_it_is(path: str) -> None:
    """It is read from its end in pieces, and a piece may begin in the middle of the start's line."""
    add(path, "start", pid=1)
    add(path, "start", pid=2)
    start = os.path.getsize(path) // 2
    add(path, "hook", name="x" * ((1 << 16) - start - 60))
    found = set()
    while os.path.getsize(path) < (1 << 16) + 3 * start:
        found.add(json.loads(last_run(path)[0])["pid"])
        with open(path, "ab") as file:
            file.write(b"{}\n")
    assert found == {2}


def test_there_is_no_run_in_what_is_none(path: str) -> None:
    assert last_run(path) == []
    for text in ("", "\n", "nonsense", '{"event":"start"', "\n\n{}\n"):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        assert fold(last_run(path), ("osc7501",)).state == "starting"
    os.remove(path)
    os.mkdir(path)
    assert last_run(path) == []


def test_text_that_looks_like_an_event_is_none(path: str) -> None:
    add(path, "start", pid=1)
    say(path, "osc7501", "idle", '","event":"start","event":"exit","event":"state","source":"hooks"')
    assert len(last_run(path)) == 2
    assert not has_spoken(path, "hooks")
    assert fold(last_run(path), ("hooks", "osc7501")).state == "idle"


def test_a_line_that_is_being_written_does_not_count(path: str) -> None:
    add(path, "start", pid=1)
    say(path, "osc7501", "idle")
    with open(path, "a", encoding="utf-8") as file:
        file.write('{"at":"t","event":"state","source":"osc7501","state":"wor')
    assert fold(last_run(path), ("osc7501",)).state == "idle"


def test_a_file_past_its_largest_size_starts_again_with_what_still_counts(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agentlog, "LARGEST", 4000)
    add(path, "start", pid=1)
    say(path, "hooks", "blocked", "first")
    for number in range(300):
        say(path, "osc7501", "working", str(number))
        assert os.stat(path).st_size < 4200
        state, other = (fold(last_run(path), (source,)) for source in ("osc7501", "hooks"))
        assert (state.text, other.text) == (str(number), "first")
        assert json.loads(last_run(path)[0])["pid"] == 1
    assert sorted(os.listdir(os.path.dirname(path))) == ["agent-00.events.jsonl", "agent-00.events.jsonl.1"]
    assert lines(path)[0]["event"] == "start"
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_several_writers_lose_nothing_when_the_file_starts_again(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agentlog, "LARGEST", 3000)
    monkeypatch.setattr(agentlog, "_PATIENCE", 10_000)
    add(path, "start", pid=1)

    def write(source: str) -> None:
        for number in range(200):
            say(path, source, "working", str(number))

    writers = [Thread(target=write, args=(source,)) for source in ("osc7501", "hooks", "title")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [fold(last_run(path), (source,)).text for source in ("osc7501", "hooks", "title")] == ["199"] * 3
    lines(path)


def test_a_process_that_keeps_the_lock_cannot_stop_events_from_being_written(path: str) -> None:
    add(path, "start", pid=1)
    fd = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        add(path, "exit", status=0)
    finally:
        os.close(fd)
    assert [event["event"] for event in lines(path)] == ["start", "exit"]


def test_a_link_is_not_followed(path: str) -> None:
    os.symlink(f"{path}.target", path)
    with pytest.raises(OSError):
        add(path, "start", pid=1)
    assert not os.path.exists(f"{path}.target")


def test_plain_text_is_bounded_and_harmless() -> None:
    assert plain("a\x1b[2J\r\nb\u202ec\u2066d".encode()) == "a [2J  bcd"
    assert plain(b"\xff\xfe") == "\ufffd\ufffd"
    assert plain("é".encode() * 3, 5) == "éé"


def test_all_rooms_know_the_same_sources() -> None:
    assert SOURCES == providers_format.SOURCES
    # What the launcher says itself is kept too, and who types.
    assert tuple(source.decode() for source in agentlog._SOURCES) == (*SOURCES, COMPOSER, "launcher")
