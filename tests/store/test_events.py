"""The event store: every event once and in order, whatever process writes, rolls, prunes or dies meanwhile."""

from __future__ import annotations

import fcntl
import functools
import itertools
import os
import shutil
import signal
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mas.model.event import Event, EventPage, event_fields
from mas.model.session import Gone, Status
from mas.store.files.atomic import locked
from mas.store.layout import Layout
from mas.store.workspace import eventlog
from mas.store.workspace.events import OLDEST, Events
from mas.store.workspace.registry import Registry
from mas.store.workspace.workspace import Workspace
from tests.site import short_directory, until
from tests.store.samples import NOW, an_entry, mode, new_id, next_line, ordinary_user, program, put, read

ID = new_id()
_ADDS = """
import sys
from mas.bootstrap import utc_now
from mas.store.workspace import eventlog
from mas.store.workspace.events import Events
from mas.store.layout import Layout
eventlog.SEGMENT_SIZE, eventlog.KEPT = 3000, 10_000
events = Events(Layout(sys.argv[1]), utc_now)
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[3])):
    events.add("message", writer=sys.argv[2], number=number)
"""
# Lines as they might be found in a segment, some of them events.
LINES = st.sampled_from(
    [
        b'{"at":"t","event":"session","status":"active"}',
        b'{"at":"t","event":"agent","sessionId":"s","agent":"00"}',
        b'{"at":"t","event":"warning","agent":null,"x":[1]}',
        b'{"at":"t","event":"unheard of"}',
        b'{"at":1,"event":"session"}',
        b'{"at":"t","event":"session","agent":7}',
        b'{"at":"t","event":["session"]}',
        b'{"at":"t","ev',
        b'{"at":"t","event":"session"}' * 2,
        b"[" * 100_000,
        b'["at","event"]',
        b'"at"',
        b"null",
        b"1" * 5000,
        b"\xff\xfe{\x00",
        b"",
    ]
)


@pytest.fixture
def events(layout: Layout) -> Events:
    return Events(layout, lambda: NOW)


def everything(events: Events, after: str = OLDEST, most: int = 1000) -> list[Event]:
    """All events after `after`, page by page."""
    found: list[Event] = []
    while True:
        page = events.read(after, most)
        found += page.events
        if not page.events:
            return found
        after = page.last


def has_news(events: Events, last: str) -> bool:
    return bool(events.read(last, 1).events)


def numbers(found: list[Event] | tuple[Event, ...]) -> list[Any]:
    return [event.details.get("number") for event in found]


def place_of(event: Event) -> tuple[int, ...]:
    return tuple(map(int, event.id.split(".")))


def segment_of(layout: Layout, position: int = -1) -> str:
    return eventlog.segment_path(layout.events, eventlog.segments(layout.events)[position])


def small_segments(monkeypatch: pytest.MonkeyPatch, size: int = 300, kept: int = 8) -> None:
    monkeypatch.setattr(eventlog, "SEGMENT_SIZE", size)
    monkeypatch.setattr(eventlog, "KEPT", kept)


def test_an_event_reads_back_as_it_was_written(layout: Layout, events: Events) -> None:
    events.add("agent", ID, "00", state="exited", state_text='a "line"\n日本\udcff', exit_status=0)
    (event,) = events.read(OLDEST, 10).events
    assert event_fields(event) == {
        "id": event.id,
        "at": NOW,
        "event": "agent",
        "sessionId": ID,
        "agent": "00",
        "state": "exited",
        "stateText": 'a "line"\n日本\udcff',
        "exitStatus": 0,
    }
    assert mode(layout.events) == 0o700
    assert mode(segment_of(layout)) == mode(os.path.join(layout.events, "lock")) == 0o600


def test_what_does_not_concern_a_session_or_an_agent_names_none(events: Events) -> None:
    events.add("warning", text="hm")
    (event,) = events.read(OLDEST, 10).events
    assert event_fields(event) == {"id": event.id, "at": NOW, "event": "warning", "text": "hm"}


def test_a_detail_cannot_pass_for_the_event_s_own(events: Events) -> None:
    events.add("message", ID, "00", id="mine", at="never", sessionId="another")
    (event,) = events.read(OLDEST, 10).events
    assert (event.at, event.session_id) == (NOW, ID)
    assert event_fields(event)["id"] == event.id != "mine"


def test_details_too_long_to_be_news_are_left_out(events: Events) -> None:
    events.add("warning", ID, text="x" * 1_000_000)
    assert [(event.session_id, event.details) for event in everything(events)] == [(ID, {})]


def test_from_now_on_means_nothing_of_before_and_everything_after(events: Events) -> None:
    nothing = events.read(None, 10)
    assert nothing == EventPage((), OLDEST, False)
    events.add("warning", number=1)
    now = events.read(None, 10)
    assert (now.events, now.gap) == ((), False)
    events.add("warning", number=2)
    assert numbers(events.read(now.last, 10).events) == [2]
    assert numbers(events.read(nothing.last, 10).events) == [1, 2]


def test_going_on_from_any_event_gives_exactly_the_rest(events: Events, monkeypatch: pytest.MonkeyPatch) -> None:
    small_segments(monkeypatch, kept=100)
    for number in range(40):
        events.add("warning", number=number)
    for most in (1, 7, 1000):
        found = everything(events, most=most)
        assert numbers(found) == list(range(40))
        for number, event in enumerate(found):
            page = events.read(event.id, most)
            assert not page.gap
            assert numbers(page.events) == list(range(number + 1, 40))[:most]


def test_segments_roll_and_only_the_newest_are_kept(
    layout: Layout, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_segments(monkeypatch, kept=3)
    first = None
    for number in range(50):
        events.add("warning", number=number)
        first = first or events.read(OLDEST, 1).last
    assert len(eventlog.segments(layout.events)) == 3
    assert first
    page = events.read(first, 1000)
    assert page.gap
    kept = numbers(page.events)
    assert kept == list(range(50))[-len(kept) :]
    assert 3 < len(kept) < 50
    # From the oldest kept is what was asked for, and no gap.
    assert events.read(OLDEST, 1000) == page._replace(gap=False)
    assert not events.read(page.last, 1000).gap


@pytest.mark.parametrize("after", ["", "x", "1", "-1.0", "0.0", "9999999999.0", "0000000001.7", "१.१", "0000000001.01"])
def test_an_unknown_id_is_a_gap_before_everything_kept(events: Events, after: str) -> None:
    events.add("warning", number=1)
    page = events.read(after, 10)
    assert (page.gap, numbers(page.events)) == (True, [1])


def test_an_id_in_the_middle_of_a_line_or_past_the_end_is_unknown(events: Events) -> None:
    for number in range(2):
        events.add("warning", number=number)
    segment, end = place_of(everything(events)[-1])
    for offset in (end - 2, end + 1, end * 2):
        page = events.read(f"{segment:010d}.{offset}", 10)
        assert (page.gap, numbers(page.events)) == (True, [0, 1])


def test_an_unknown_place_in_a_known_segment_repeats_no_more_than_that_segment(
    layout: Layout, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_segments(monkeypatch)
    for number in range(12):
        events.add("warning", number=number)
    first, second, _ = eventlog.segments(layout.events)
    of_first = [event for event in everything(events) if place_of(event)[0] == first]
    page = events.read(f"{second:010d}.99999", 100)
    assert (page.gap, numbers(page.events)) == (True, list(range(len(of_first), 12)))


def test_a_log_that_was_removed_is_a_gap_as_soon_as_there_is_news(layout: Layout, events: Events) -> None:
    events.add("warning", number=1)
    # As if it were of another day.
    os.rename(segment_of(layout), eventlog.segment_path(layout.events, 5))
    last = events.read(None, 1).last
    shutil.rmtree(layout.events)
    assert events.read(last, 10) == EventPage((), last, False)
    assert events.read("nonsense", 10) == EventPage((), OLDEST, True)
    events.add("warning", number=2)
    page = events.read(last, 10)
    assert (page.gap, numbers(page.events)) == (True, [2])


def test_a_segment_missing_in_the_middle_is_a_gap_just_there(
    layout: Layout, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_segments(monkeypatch)
    for number in range(12):
        events.add("warning", number=number)
    assert len(eventlog.segments(layout.events)) == 3
    os.unlink(segment_of(layout, 1))
    before = events.read(OLDEST, 100)
    after = events.read(before.last, 100)
    assert (before.gap, after.gap) == (False, True)
    assert numbers(before.events) == list(range(len(before.events)))
    assert numbers(after.events) == list(range(12))[-len(after.events) :]


def test_many_writers_a_reader_and_rolling_lose_nothing_and_mix_nothing(layout: Layout, events: Events) -> None:
    writers, each = 8, 300
    with ExitStack() as stack:
        processes = [stack.enter_context(program(_ADDS, layout.root, str(name), str(each))) for name in range(writers)]
        for process in processes:
            assert next_line(process) == "ready"
        for process in processes:
            assert process.stdin
            process.stdin.write(b"\n")
            process.stdin.flush()
        # Read while it is written and rolled.
        found: list[Event] = []
        after = OLDEST

        def all_read() -> bool:
            nonlocal after
            page = events.read(after, 17)
            after = page.last
            assert not page.gap
            found.extend(page.events)
            return len(found) >= writers * each

        until(all_read, "all events")
        assert [process.wait(60) for process in processes] == [0] * writers
    for name in range(writers):
        assert numbers([event for event in found if event.details["writer"] == str(name)]) == list(range(each))
    places = [place_of(event) for event in found]
    assert all(one < next_ for one, next_ in itertools.pairwise(places))
    assert everything(events) == found
    *full, _ = (eventlog.segment_path(layout.events, segment) for segment in eventlog.segments(layout.events))
    assert len(full) > 30
    assert min(map(os.path.getsize, full)) >= 3000


def test_a_reader_overtaken_by_pruning_learns_it_and_misses_nothing_else(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    pruning = _ADDS.replace("3000, 10_000", "300, 2")
    events = Events(layout, lambda: NOW)
    with program(pruning, layout.root, "it", "2000") as process:
        assert process.stdin
        process.stdin.write(b"\n")
        process.stdin.flush()
        after, expected, gaps = OLDEST, 0, 0
        while expected < 2000:
            page = events.read(after, 3)
            after = page.last
            for number in numbers(page.events):
                assert number == expected or (number > expected and (page.gap or expected == 0))
                expected = number + 1
            gaps += page.gap
        assert process.wait(60) == 0


def test_a_writer_killed_at_any_moment_hides_nothing_of_others(layout: Layout, events: Events) -> None:
    for round_ in range(10):
        with program(_ADDS, layout.root, str(round_), "1000000") as process:
            assert next_line(process) == "ready"
            assert process.stdin
            process.stdin.write(b"\n")
            process.stdin.flush()
            last = events.read(None, 1).last
            until(functools.partial(has_news, events, last), "its first event")
            process.send_signal(signal.SIGKILL)
            process.wait()
        events.add("warning", writer="us")
    found = everything(events)
    for round_ in range(10):
        written = numbers([event for event in found if event.details["writer"] == str(round_)])
        assert written == list(range(len(written)))
    assert len([event for event in found if event.details["writer"] == "us"]) == 10


@pytest.mark.parametrize("torn", [b'{"at":"t","event":"war', b'\n{"at":"t","event":"war', b"\xff", b"\n"])
def test_a_torn_line_hides_no_later_event(layout: Layout, events: Events, torn: bytes) -> None:
    events.add("warning", number=1)
    last = events.read(None, 1).last
    with open(segment_of(layout), "ab") as file:
        file.write(torn)
    from_now = events.read(None, 1).last
    assert events.read(last, 10).events == ()
    events.add("warning", number=2)
    for after in (last, from_now):
        page = events.read(after, 10)
        assert (page.gap, numbers(page.events)) == (False, [2])
    assert numbers(everything(events)) == [1, 2]


def test_a_full_disk_drops_events_and_no_more(layout: Layout, events: Events) -> None:
    full = """
import resource, sys
from mas.store.workspace.events import Events
from mas.store.layout import Layout
events = Events(Layout(sys.argv[1]), lambda: "now")
events.add("warning", number=1)
for room in (200, 210, 400):
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, -1))
    for _ in range(10):
        events.add("warning", number=room, text="x" * 40)
resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
events.add("warning", number=2)
"""
    with program(full, layout.root) as process:
        assert process.wait(60) == 0
    found = numbers(everything(events))
    assert (found[0], found[-1]) == (1, 2)
    assert 4 <= len(found) <= 7


def test_a_disk_that_refuses_drops_events_and_no_more(layout: Layout, events: Events, place: str) -> None:
    events.add("warning", number=1)
    os.chmod(layout.events, 0)
    with ordinary_user(place):
        events.add("warning", number=2)
    os.chmod(layout.events, 0o700)
    events.add("warning", number=3)
    assert numbers(everything(events)) == [1, 3]


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink(f"{path}.aside", path)])
def test_something_else_in_a_segment_s_place_is_left_alone(
    layout: Layout, events: Events, make: Callable[[str], None]
) -> None:
    events.add("warning", number=1)
    path = segment_of(layout)
    os.rename(path, f"{path}.aside")
    make(path)
    events.add("warning", number=2)
    assert events.read(None, 10).events == events.read(OLDEST, 10).events == ()
    (os.rmdir if os.path.isdir(path) else os.unlink)(path)
    os.rename(f"{path}.aside", path)
    events.add("warning", number=3)
    assert numbers(everything(events)) == [1, 3]


def test_a_file_in_the_directory_s_place_drops_events(layout: Layout, events: Events) -> None:
    put(layout.private, "events")
    events.add("warning")
    assert read(layout.events) == b""


def test_a_workspace_without_its_private_directory_drops_events(layout: Layout, events: Events) -> None:
    shutil.rmtree(layout.private)
    events.add("warning")
    assert not os.path.exists(layout.private)
    assert events.read(OLDEST, 10) == EventPage((), OLDEST, False)


def test_a_lock_that_a_process_keeps_delays_no_other(layout: Layout, events: Events) -> None:
    events.add("warning", number=1)
    with locked(os.path.join(layout.events, "lock")):
        events.add("warning", number=2)
    events.add("warning", number=3)
    assert numbers(everything(events)) == [1, 3]


def test_a_writer_that_stands_still_keeps_no_other_from_writing(
    layout: Layout, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_segments(monkeypatch)
    with open(os.path.join(layout.private, "standing"), "w", encoding="utf-8"):
        events.add("warning", number=0)
    with open(os.path.join(layout.events, "lock"), "rb") as still:
        fcntl.flock(still, fcntl.LOCK_SH)
        for number in range(1, 20):
            events.add("warning", number=number)
        # Whoever stands there may still be about to write to it.
        assert len(eventlog.segments(layout.events)) == 1
    events.add("warning", number=20)
    assert len(eventlog.segments(layout.events)) == 2
    assert numbers(everything(events)) == list(range(21))


@given(st.lists(LINES | st.binary(max_size=20), max_size=8), st.lists(LINES, max_size=3), st.integers(1, 4))
@settings(max_examples=100)
def test_any_bytes_in_the_files_read_the_same_from_wherever_one_goes_on(
    first: list[bytes], second: list[bytes], most: int
) -> None:
    with short_directory() as directory:
        layout = Layout(directory)
        Workspace(layout).prepare()
        os.mkdir(layout.events)
        for number, lines in ((7, first), (8, second)):
            put(layout.events, f"{number:010d}.jsonl", b"\n".join(lines))
        events = Events(layout, lambda: NOW)
        found = everything(events)
        assert everything(events, most=most) == found
        places = [place_of(event) for event in found]
        assert places == sorted(set(places))
        for number, event in enumerate(found):
            assert everything(events, event.id, most) == found[number + 1 :]
            assert not events.read(event.id, most).gap
        assert events.read(None, most).events == ()
        events.add("warning", number=1)
        assert numbers(everything(events))[-1:] == [1]


def test_every_line_of_the_registry_s_journal_is_an_event_in_its_order(layout: Layout, events: Events) -> None:
    registry = Registry(layout, lambda: NOW, events.status)
    registry.rebuild(list)
    one, two = new_id(), new_id()
    registry.put(an_entry(one))
    registry.put(an_entry(two)._replace(status=Status.STOPPED))
    registry.drop(two, Gone.ARCHIVED)
    registry.retract(two, Gone.ARCHIVED)
    registry.rebuild(lambda: [an_entry(two)._replace(status=Status.ERROR)])
    found = [event for event in everything(events) if event.event == "session"]
    assert [(event.session_id, event.details["status"]) for event in found] == [
        (change.session_id, change.status) for change in registry.changes()
    ]
    assert [(event.session_id, event.details) for event in everything(events) if event.event == "warning"] == [
        (two, {"text": f"Session {two} is damaged: mas repair"})
    ]


def test_a_failed_change_of_the_registry_is_no_event(layout: Layout, events: Events) -> None:
    registry = Registry(layout, lambda: NOW, events.status)
    registry.rebuild(list)
    os.mkdir(os.path.join(layout.sessions, ".sessions.index.tmp"))
    with pytest.raises(OSError):
        registry.put(an_entry(new_id()))
    assert everything(events) == []
