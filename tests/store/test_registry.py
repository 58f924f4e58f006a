"""The registry: no entry is ever lost, no reader sees a torn file, unreadable is never empty."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mas.model.errors import Corrupt
from mas.model.session import Gone, Status
from mas.store.files.fingerprint import is_settled, stamp_of
from mas.store.layout import Layout
from mas.store.workspace.registry import Change, IndexEntry, Registry, entry_of, parse_journal
from mas.store.workspace.workspace import Workspace
from tests.site import short_directory, until
from tests.store.samples import NOW, a_session, an_entry, mode, new_id, next_line, program, put, read, rest_of

IDS = [f"{number:08x}-5b7d-4e8f-9a0b-c1d2e3f4a5b6" for number in range(6)]
TEXT = st.text(max_size=10) | st.sampled_from(
    ['"', "\\", ",\n", "},\n{", '\n{"sessionId":"' + IDS[0] + '"', '"]}', "日本"]
)
ENTRIES = st.builds(
    IndexEntry,
    session_id=st.sampled_from(IDS),
    status=st.sampled_from(Status),
    created_at=st.just(NOW),
    last_activity=st.just("2026-01-01T00:00:00Z"),
    name=st.none() | TEXT,
    agents=st.integers(0, 99),
    socket=st.none() | TEXT,
)
OPERATIONS = st.lists(
    st.tuples(st.just("put"), ENTRIES)
    | st.tuples(st.sampled_from(Gone), st.sampled_from(IDS))
    | st.tuples(st.just("rewritten"), st.sampled_from([{"indent": 4}, {"indent": None}, {"sort_keys": True}])),
    max_size=12,
)

_PUTS = """
import sys
from mas.bootstrap import random_id, utc_now
from mas.model.session import Status
from mas.store.layout import Layout
from mas.store.workspace.registry import IndexEntry, Registry
layout = Layout(sys.argv[1])
registry = Registry(layout, utc_now)
for _ in range(int(sys.argv[2])):
    entry = IndexEntry(random_id(), Status.ACTIVE, utc_now(), utc_now())
    registry.put(entry)
    print(entry.session_id, flush=True)
"""


@pytest.fixture
def registry(layout: Layout) -> Registry:
    return made(layout)


def made(layout: Layout) -> Registry:
    found = Registry(layout, lambda: NOW)
    found.rebuild(list)
    return found


@given(OPERATIONS)
@settings(max_examples=60)
def test_any_sequence_of_changes_reads_back_as_a_dictionary_would(operations: list[tuple[str, Any]]) -> None:
    with short_directory() as directory:
        layout = Layout(directory)
        Workspace(layout).prepare()
        registry = made(layout)
        wanted: dict[str, IndexEntry] = {}
        journal: list[Change] = []
        for verb, what in operations:
            if verb == "rewritten":
                body = json.loads(read(layout.registry_index))
                put(layout.sessions, ".sessions.index", json.dumps(body, **what))
            elif isinstance(what, IndexEntry):
                registry.put(what)
                wanted[what.session_id] = what
                journal.append(Change(what.session_id, what.status, NOW))
            else:
                registry.drop(what, Gone(verb))
                wanted.pop(what, None)
                journal.append(Change(what, verb, NOW))
            assert registry.read() == list(wanted.values())
        assert registry.changes() == journal
        assert registry.journal_is_sound(may_be_empty=not wanted)


def test_the_index_is_the_json_that_was_promised(layout: Layout, registry: Registry) -> None:
    session = a_session(new_id(), Status.ACTIVE)
    registry.put(entry_of(session))
    body = json.loads(read(layout.registry_index))
    assert {key: body[key] for key in ("version", "lastUpdated")} == {"version": "1.0", "lastUpdated": NOW}
    (entry,) = body["sessions"]
    assert {
        key: entry[key] for key in ("sessionId", "tmuxSession", "status", "createdAt", "lastActivity", "workingDir")
    } == {
        "sessionId": session.id,
        "tmuxSession": f"mas-{session.id[:8]}",
        "status": "active",
        "createdAt": NOW,
        "lastActivity": NOW,
        "workingDir": layout.session(session.id).root,
    }
    assert read(layout.journal) == f"{session.id}:active:{NOW}\n".encode()
    assert mode(layout.registry_index) == mode(layout.journal) == 0o600


def test_no_change_is_missed_by_a_process_that_has_read_the_index_before(layout: Layout, registry: Registry) -> None:
    entry = an_entry(new_id())
    registry.put(entry)
    until(lambda: registry.read() and is_settled(stamp_of(layout.registry_index)), "an index that can be remembered")
    assert registry.read() == [entry]
    other = Registry(layout, lambda: NOW)
    for number in range(30):
        # As long as the one before it, in a file that may have the number of the one before that.
        other.put(entry._replace(name=f"{number:03d}"))
        assert [found.name for found in registry.read()] == [f"{number:03d}"]
    until(lambda: is_settled(stamp_of(layout.registry_index)), "the same again")
    assert len(registry.read()) == 1
    before = os.stat(layout.registry_index)
    with open(layout.registry_index, "r+b") as file:
        data = file.read()
        file.seek(0)
        file.write(data.replace(b'"029"', b'"old"'))
    os.utime(layout.registry_index, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert [found.name for found in registry.read()] == ["old"]
    os.unlink(layout.registry_index)
    with pytest.raises(Corrupt):
        registry.read()


def test_a_file_another_program_wrote_is_understood_and_keeps_its_entries(layout: Layout, registry: Registry) -> None:
    foreign = {
        "lastUpdated": "some time",
        "sessions": [
            {"status": "stopped", "sessionId": one, "createdAt": "t", "lastActivity": "t", "x": 1} for one in IDS
        ],
    }
    put(layout.sessions, ".sessions.index", json.dumps(foreign, indent=4))
    assert [entry.session_id for entry in registry.read()] == IDS
    registry.put(an_entry(IDS[2]))
    registry.drop(IDS[0], Gone.DELETED)
    assert [(entry.session_id, entry.status) for entry in registry.read()] == [
        (one, "active" if one == IDS[2] else "stopped") for one in IDS[1:]
    ]


def test_an_entry_edited_by_hand_is_still_the_same_entry(layout: Layout, registry: Registry) -> None:
    for one in IDS:
        registry.put(an_entry(one))
    edited = read(layout.registry_index).replace(
        b'{"sessionId":"' + IDS[3].encode(), b'{ "sessionId": "' + IDS[3].encode()
    )
    put(layout.sessions, ".sessions.index", edited)
    registry.put(an_entry(IDS[3], Status.STOPPED))
    assert [entry.session_id for entry in registry.read()] == IDS
    put(layout.sessions, ".sessions.index", edited)
    registry.drop(IDS[3], Gone.DELETED)
    assert IDS[3] not in {entry.session_id for entry in registry.read()}


WRONG: list[dict[str, object]] = [
    {"sessionId": "../x"},
    {"sessionId": None},
    {"sessionId": IDS[0].upper()},
    {"status": "gone"},
    {"status": None},
    {"agents": None},
    {"agents": "many"},
    {"agents": []},
    {"name": 7},
    {"name": []},
    {"tmuxSocket": {}},
    {"tmuxSocket": 1},
]
RIGHT = {"sessionId": IDS[0], "status": "active", "createdAt": "", "lastActivity": ""}
DAMAGED = [
    b"",
    b"\n",
    b"null",
    b"[]",
    b"{}",
    b"7",
    b'"text"',
    b"garbage",
    b"\x00" * 512,
    b"\xff\xfe\xfd",
    b'{"version":"1.0","sessions":[',
    b'{"sessions":null}',
    b'{"sessions":{}}',
    b'{"sessions":""}',
    b'{"sessions":[null]}',
    b'{"sessions":["x"]}',
    b'{"sessions":[{}]}',
    b'{"sessions":[[]]}',
    *(json.dumps({"sessions": [{**RIGHT, **wrong}]}).encode() for wrong in WRONG),
]


@pytest.mark.parametrize("data", DAMAGED)
def test_what_cannot_be_read_is_kept_aside_and_rebuilt_and_never_taken_for_empty(
    layout: Layout, registry: Registry, data: bytes
) -> None:
    registry.put(an_entry(IDS[0]))
    put(layout.sessions, ".sessions.index", data)
    with pytest.raises(Corrupt) as refused:
        registry.read()
    assert refused.value.path == layout.registry_index
    (aside,) = registry.rebuild(lambda: [an_entry(one) for one in IDS])
    assert ".sessions.index.corrupt-" in aside
    assert read(aside) == data
    assert [entry.session_id for entry in registry.read()] == IDS
    assert {change.session_id for change in registry.changes()} == set(IDS)


def test_a_quick_look_distinguishes_a_sound_registry_from_all_others(layout: Layout, registry: Registry) -> None:
    assert registry.looks_sound()
    registry.put(an_entry(IDS[0]))
    assert registry.looks_sound()
    whole = read(layout.registry_index)
    for data in (*DAMAGED, whole[:-1], whole[: len(whole) // 2], whole.replace(b"\n", b"")):
        put(layout.sessions, ".sessions.index", data)
        assert not registry.looks_sound()
    put(layout.sessions, ".sessions.index", whole)
    put(layout.sessions, ".index", b"")
    assert not registry.looks_sound()
    os.unlink(layout.registry_index)
    assert not registry.looks_sound()


def test_every_torn_index_is_seen(layout: Layout, registry: Registry) -> None:
    for one in IDS[:3]:
        registry.put(an_entry(one))
    whole = read(layout.registry_index).rstrip()
    for cut in range(0, len(whole), 7):
        put(layout.sessions, ".sessions.index", whole[:cut])
        with pytest.raises(Corrupt):
            registry.read()


@pytest.mark.parametrize("verb", ["put", "drop"])
def test_a_missing_or_garbled_index_is_not_written_over(layout: Layout, registry: Registry, verb: str) -> None:
    changes: dict[str, Callable[[], None]] = {
        "put": lambda: registry.put(an_entry(IDS[0])),
        "drop": lambda: registry.drop(IDS[0], Gone.DELETED),
    }
    put(layout.sessions, ".sessions.index", b"garbage")
    with pytest.raises(Corrupt):
        changes[verb]()
    assert read(layout.registry_index) == b"garbage"
    os.unlink(layout.registry_index)
    with pytest.raises(Corrupt):
        changes[verb]()
    assert not os.path.exists(layout.registry_index)
    assert read(layout.journal) == b""


@pytest.mark.parametrize("name", [".sessions.index", ".index"])
def test_a_link_or_directory_in_place_of_a_file_is_kept_aside_and_not_followed(
    layout: Layout, registry: Registry, place: str, name: str
) -> None:
    path = os.path.join(layout.sessions, name)
    other = put(place, "other", "mine")
    os.unlink(path)
    os.symlink(other, path)
    (aside,) = registry.rebuild(lambda: [an_entry(IDS[0])])
    assert os.readlink(aside) == other
    os.unlink(path)
    os.mkdir(path)
    (aside,) = registry.rebuild(lambda: [an_entry(IDS[0])])
    assert os.path.isdir(aside)
    assert registry.read() == [an_entry(IDS[0])]
    assert [change.session_id for change in registry.changes()] == [IDS[0]]
    assert read(other) == b"mine"


def test_after_a_rebuild_the_last_lines_of_the_journal_are_true(registry: Registry) -> None:
    registry.put(an_entry(IDS[0]))
    registry.put(an_entry(IDS[1]))
    registry.drop(IDS[2], Gone.ARCHIVED)
    assert registry.rebuild(lambda: [an_entry(IDS[0], Status.STOPPED), an_entry(IDS[3])]) == []
    last = {change.session_id: change.status for change in registry.changes()}
    assert last == {IDS[0]: "stopped", IDS[1]: "deleted", IDS[2]: "archived", IDS[3]: "active"}
    before = registry.changes()
    registry.rebuild(registry.read)
    assert registry.changes() == before


@pytest.mark.parametrize("tail", [b"x", f"{IDS[1]}:active:2026".encode(), b"\x00\x00", b"garbage\n", b"\n", b"\xff\n"])
def test_a_damaged_journal_is_seen_kept_aside_and_keeps_its_good_lines(
    layout: Layout, registry: Registry, tail: bytes
) -> None:
    registry.put(an_entry(IDS[0]))
    damaged = read(layout.journal) + tail
    put(layout.sessions, ".index", damaged)
    assert not registry.journal_is_sound(may_be_empty=False)
    with pytest.raises(Corrupt):
        registry.changes()
    (aside,) = registry.rebuild(registry.read)
    assert read(aside) == damaged
    assert registry.changes() == [Change(IDS[0], "active", NOW)]
    assert registry.journal_is_sound(may_be_empty=False)


def test_nothing_is_added_to_a_torn_line(layout: Layout, registry: Registry) -> None:
    put(layout.sessions, ".index", f"{IDS[0]}:active:20")
    with pytest.raises(Corrupt, match="cut off"):
        registry.put(an_entry(IDS[1]))
    assert read(layout.journal) == f"{IDS[0]}:active:20".encode()
    assert registry.read() == []


def test_an_empty_or_missing_journal_is_only_sound_for_no_sessions(layout: Layout, registry: Registry) -> None:
    assert registry.journal_is_sound(may_be_empty=True)
    assert not registry.journal_is_sound(may_be_empty=False)
    os.unlink(layout.journal)
    assert not registry.journal_is_sound(may_be_empty=True)
    with pytest.raises(Corrupt):
        registry.changes()


STAMPS = st.from_regex(r"[0-9TZ:.-]{1,30}", fullmatch=True)
CHANGES = st.builds(Change, st.uuids(version=4).map(str), st.sampled_from([*map(str, Status), *map(str, Gone)]), STAMPS)
GARBAGE = (
    st.binary(max_size=40)
    .map(lambda data: data.replace(b"\n", b" "))
    .filter(lambda line: not (len(line) > 36 and line[36:37] == b":"))
)


@given(st.lists(CHANGES | GARBAGE, max_size=12), st.booleans())
@example([Change(IDS[0], "active", "2026-01-02T03:04:05.678Z")], False)
def test_the_journal_reads_back_and_counts_what_it_cannot_read(lines: list[Change | bytes], torn: bool) -> None:
    data = b"".join((line if isinstance(line, bytes) else ":".join(line).encode()) + b"\n" for line in lines)
    wanted = [line for line in lines if isinstance(line, Change)]
    good, bad = parse_journal(data + b"torn" * torn)
    assert good == wanted
    assert bad == len(lines) - len(wanted) + torn


@given(st.binary(max_size=200))
def test_any_bytes_can_be_a_journal(data: bytes) -> None:
    good, bad = parse_journal(data)
    assert len(good) + bad == data.count(b"\n") + (not data.endswith(b"\n") and data != b"")


@pytest.mark.parametrize(
    "line",
    [
        f"{IDS[0]}:active",
        f"{IDS[0]}:running:{NOW}",
        f"{IDS[0].upper()}:active:{NOW}",
        f"{IDS[0]}:active:{NOW}\r",
        f" {IDS[0]}:active:{NOW}",
        f"{IDS[0]}:active:",
        f"{'-' * 36}:active:{NOW}",
        f"{IDS[0]}:active:٢٠٢٦",
        f"{IDS[0].replace('0', '٠')}:active:{NOW}",
    ],
)
def test_a_line_that_is_nearly_right_is_garbage(line: str) -> None:
    assert parse_journal(line.encode() + b"\n") == ([], 1)


def test_writers_at_once_lose_nothing_and_readers_never_see_a_torn_file(layout: Layout, registry: Registry) -> None:
    seen = 0
    with ExitStack() as writers:
        running = [writers.enter_context(program(_PUTS, layout.root, "25")) for _ in range(8)]
        while any(writer.poll() is None for writer in running):
            body = json.loads(read(layout.registry_index))
            assert len(body["sessions"]) >= seen
            seen = len(registry.read())
        assert [writer.returncode for writer in running] == [0] * 8
        made = {line for writer in running for line in rest_of(writer).split()}
    assert len(made) == 200
    assert {entry.session_id for entry in registry.read()} == made
    assert len(registry.read()) == 200
    assert sorted(change.session_id for change in registry.changes()) == sorted(made)


def test_what_was_acknowledged_is_there_whenever_the_writer_is_killed(layout: Layout, registry: Registry) -> None:
    made = set()
    for count in range(1, 6):
        with program(_PUTS, layout.root, "1000000") as writer:
            made |= {next_line(writer) for _ in range(count)}
            writer.kill()
            made |= {*rest_of(writer).split()}
        found = [entry.session_id for entry in registry.read()]
        assert made <= set(found)
        assert len(found) == len(set(found))
        assert made <= {change.session_id for change in registry.changes()}
