"""Records: what a session's own files say, and what is still known when they are damaged."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mas.model.errors import Corrupt, NoSession
from mas.model.run import Run, parse_run
from mas.model.session import AgentRun, Session, Status
from mas.model.team import team_named
from mas.store.files.shellfile import parse_pairs
from mas.store.layout import Layout
from mas.store.session import session_files
from mas.store.session.session_files import Records
from tests.model.policies import ISOLATIONS, SESSION_LIMITS
from tests.site import short_directory, until
from tests.store.samples import NOW, a_session, mode, new_id, put, read

ID = new_id()
# No name, model, account or reason holds a NUL: none is let in.
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=10)
FILE_TEXT = st.binary(max_size=10).map(lambda data: os.fsdecode(data.translate(None, b"\0\n\r")))
AGENTS = st.integers(0, 99).map("{:02d}".format)
SESSIONS = st.builds(
    Session,
    id=st.just(ID),
    status=st.sampled_from(Status),
    created_at=st.just(NOW),
    started_at=st.just(NOW),
    last_activity=st.just(NOW),
    name=st.none() | TEXT,
    socket=st.none() | FILE_TEXT,
    agents=st.lists(
        st.builds(AgentRun, AGENTS, TEXT, TEXT, TEXT, st.none() | FILE_TEXT, st.none() | TEXT), max_size=3
    ).map(tuple),
    origin=st.none() | FILE_TEXT,
    isolation=st.none() | ISOLATIONS,
    limits=SESSION_LIMITS,
    reason=st.none() | TEXT,
    stopped_at=st.none() | TEXT,
)


@pytest.fixture
def records(layout: Layout) -> Records:
    os.mkdir(layout.session(ID).root, 0o700)
    return Records(layout)


@given(SESSIONS)
@settings(max_examples=50)
def test_a_session_reads_back_as_it_was_saved(session: Session) -> None:
    with short_directory() as directory:
        layout = Layout(directory)
        os.makedirs(layout.session(ID).root)
        records = Records(layout)
        records.save(session)
        assert records.load(ID) == session
        assert records.is_whole(ID)
        assert records.pairs(ID)["STATUS"] == session.status


@given(FILE_TEXT, FILE_TEXT)
@settings(max_examples=50)
def test_a_run_reads_back_also_with_bytes_that_are_no_text(command: str, value: str) -> None:
    with short_directory() as directory:
        layout = Layout(directory)
        os.makedirs(layout.session(ID).root)
        run = Run(command=command, env=(("A", value),)).settled("shell")
        Records(layout).save_run(ID, run)
        assert Records(layout).load_run(ID) == run


def test_the_files_hold_what_was_promised(layout: Layout, records: Records) -> None:
    session = a_session(ID, Status.ACTIVE)
    records.save(session)
    records.save_run(ID, Run(team=team_named("solo")).settled("shell"))
    paths = layout.session(ID)
    pairs = parse_pairs(read(paths.record))
    assert {
        key: pairs[key] for key in ("SESSION_ID", "TMUX_SESSION", "STATUS", "CREATED_AT", "UNIT_DIR", "WORKFLOWS_DIR")
    } == {
        "SESSION_ID": ID,
        "TMUX_SESSION": f"mas-{ID[:8]}",
        "STATUS": "active",
        "CREATED_AT": NOW,
        "UNIT_DIR": os.path.join(paths.root, "unit"),
        "WORKFLOWS_DIR": os.path.join(paths.root, "workflows"),
    }
    metadata = json.loads(read(paths.metadata))
    assert {key: metadata[key] for key in ("sessionId", "sessionName", "workingDir", "startedAt", "status")} == {
        "sessionId": ID,
        "sessionName": f"mas-{ID[:8]}",
        "workingDir": paths.root,
        "startedAt": NOW,
        "status": "active",
    }
    assert parse_run(json.loads(read(paths.config))).team == records.load_run(ID).team
    assert [oct(mode(path)) for path in (paths.record, paths.metadata, paths.config)] == ["0o600"] * 3


def test_no_directory_is_no_session_and_no_metadata_is_damage(layout: Layout, records: Records) -> None:
    with pytest.raises(NoSession):
        records.load(new_id())
    with pytest.raises(Corrupt, match="missing"):
        records.load(ID)
    assert not records.is_whole(ID)
    assert not records.is_whole(new_id())


GARBAGE = [b"", b"\n", b"null", b"[]", b"{}", b"7", b"garbage", b"\0" * 600, b"\xff\xfe", b'{"version": 1}']


@pytest.mark.parametrize("data", GARBAGE)
def test_invalid_metadata_is_damage_and_not_whole(layout: Layout, records: Records, data: bytes) -> None:
    records.save(a_session(ID))
    put(layout.session(ID).root, "metadata.json", data)
    with pytest.raises(Corrupt) as refused:
        records.load(ID)
    assert refused.value.path == layout.session(ID).metadata
    assert not records.is_whole(ID)


@pytest.mark.parametrize(
    "wrong",
    [
        {"version": 2},
        {"sessionId": str(new_id())},
        {"status": "running"},
        {"status": None},
        {"agents": None},
        {"agents": [{"id": "00"}]},
        {"agents": [7]},
        {"agents": [{"surprise": 1}]},
    ],
)
def test_metadata_with_a_field_that_cannot_be_is_damage(
    layout: Layout, records: Records, wrong: dict[str, object]
) -> None:
    records.save(a_session(ID))
    body = {**json.loads(read(layout.session(ID).metadata)), **wrong}
    put(layout.session(ID).root, "metadata.json", json.dumps(body))
    with pytest.raises(Corrupt):
        records.load(ID)


@pytest.mark.parametrize("field", ["version", "sessionId", "status", "createdAt", "name", "agents", "tmuxSocket"])
def test_a_missing_field_is_named(layout: Layout, records: Records, field: str) -> None:
    records.save(a_session(ID))
    body = json.loads(read(layout.session(ID).metadata))
    del body[field]
    put(layout.session(ID).root, "metadata.json", json.dumps(body))
    with pytest.raises(Corrupt, match=f"{field} is missing"):
        records.load(ID)


def test_every_torn_file_is_damage_and_not_whole(layout: Layout, records: Records) -> None:
    records.save(a_session(ID))
    paths = layout.session(ID)
    metadata, record = read(paths.metadata), read(paths.record)
    for cut in range(0, len(metadata) - 2, 5):
        put(paths.root, "metadata.json", metadata[:cut])
        assert not records.is_whole(ID)
        with pytest.raises(Corrupt):
            records.load(ID)
    put(paths.root, "metadata.json", metadata)
    for cut in range(len(record)):
        put(paths.root, ".session", record[:cut])
        if record[cut - 1 : cut] != b"\n":
            assert not records.is_whole(ID)
        assert records.damage(a_session(ID))[0].path == paths.record


def test_files_that_were_found_whole_twice_are_not_read_a_third_time(
    layout: Layout, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    records.save(a_session(ID))
    reads: list[str] = []

    def noted(path: str) -> bytes:
        reads.append(path)
        return read(path)

    monkeypatch.setattr(session_files, "read_file", noted)
    looked = Records(layout)

    def nothing_was_read() -> bool:
        reads.clear()
        return looked.is_whole(ID) and not reads

    assert not nothing_was_read()
    until(nothing_was_read, "files that are remembered")
    for path in (layout.session(ID).metadata, layout.session(ID).record):
        os.chmod(path, 0o640)
        assert not nothing_was_read()
        until(nothing_was_read, "files that are remembered again")


def _overwritten(path: str, data: bytes) -> None:
    put(os.path.dirname(path), path, data)


def _replaced(path: str, data: bytes) -> None:
    os.replace(put(os.path.dirname(path), "other", data), path)


def _removed(path: str, data: bytes) -> None:
    os.unlink(path)


def _linked(path: str, data: bytes) -> None:
    os.rename(path, f"{path}.real")
    os.symlink(f"{path}.real", path)


@pytest.mark.parametrize("damage", [_overwritten, _replaced, _removed, _linked])
@pytest.mark.parametrize("remember", [False, True])
def test_damage_to_files_that_are_remembered_is_seen_though_size_and_time_are_the_same(
    layout: Layout, records: Records, remember: bool, damage: Callable[[str, bytes], None]
) -> None:
    records.save(a_session(ID))
    looked = Records(layout, remember)
    for path in (layout.session(ID).metadata, layout.session(ID).record):
        until(lambda: looked.is_whole(ID) and looked._seen[ID], "files that are remembered")
        before, content = os.lstat(path), read(path)
        damage(path, b"garbage" + content[len(b"garbage") :])
        if os.path.isfile(path):
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert not looked.is_whole(ID)
        assert not looked.is_whole(ID)
        _replaced(path, content)
        assert looked.is_whole(ID)


def test_a_process_that_remembers_what_it_read_misses_no_change(layout: Layout, records: Records) -> None:
    session, paths = a_session(ID), layout.session(ID)
    records.save(session)
    remembering = Records(layout, remember=True)
    until(lambda: remembering.is_whole(session.id) and remembering.just_seen(session.id), "files it can remember")
    assert remembering.load(session.id) == session
    for number in range(30):
        changed = session._replace(name=f"{number:03d}")
        records.save(changed)
        assert remembering.load(session.id) == changed
        assert remembering.is_whole(session.id)
    for path in (paths.metadata, paths.record):
        until(lambda: remembering.is_whole(session.id) and remembering.just_seen(session.id), "the same again")
        before, content = os.stat(path), read(path)
        put(paths.root, path, b"garbage" + content[len(b"garbage") :])
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert not remembering.is_whole(session.id)
        put(paths.root, path, content)
        assert remembering.is_whole(session.id)


def test_a_link_in_place_of_a_file_is_damage_and_is_not_followed(layout: Layout, records: Records, place: str) -> None:
    records.save(a_session(ID))
    paths = layout.session(ID)
    os.rename(paths.metadata, os.path.join(place, "elsewhere"))
    os.symlink(os.path.join(place, "elsewhere"), paths.metadata)
    assert not records.is_whole(ID)
    with pytest.raises(Corrupt):
        records.load(ID)


def test_disagreements_are_reported_by_file(layout: Layout, records: Records) -> None:
    session = a_session(ID)
    records.save(session)
    records.save_run(ID, Run())
    paths = layout.session(ID)
    assert records.damage(session) == []
    put(paths.root, ".session", read(paths.record).replace(b"STATUS=stopped", b"STATUS=active"))
    put(paths.root, "config.json", b"{")
    assert [error.path for error in records.damage(session)] == [paths.record, paths.config]
    assert "STATUS disagrees" in records.damage(session)[0].message
    os.unlink(paths.record)
    os.unlink(paths.config)
    assert [error.path for error in records.damage(session)] == [paths.record, paths.config]


@pytest.mark.parametrize(
    "data", [*GARBAGE[:1], b"null", b"[]", b"garbage", b'{"version": 7}', b'{"surprise": 1}', b'{"team": "x"}']
)
def test_an_invalid_configuration_is_damage(layout: Layout, records: Records, data: bytes) -> None:
    put(layout.session(ID).root, "config.json", data)
    with pytest.raises(Corrupt) as refused:
        records.load_run(ID)
    assert refused.value.path == layout.session(ID).config


def test_a_session_without_metadata_is_rebuilt_from_its_other_files(layout: Layout, records: Records) -> None:
    session = a_session(ID, Status.ACTIVE)
    records.save(session)
    records.save_run(ID, Run(team=team_named("pair"), name="mine").settled("shell"))
    os.unlink(layout.session(ID).metadata)
    rebuilt = records.rebuild(ID, {}, "later")
    assert (rebuilt.status, rebuilt.created_at, rebuilt.socket, rebuilt.name) == (
        Status.ACTIVE,
        NOW,
        session.socket,
        "mine",
    )
    assert [(agent.id, agent.provider) for agent in rebuilt.agents] == [("21", "shell"), ("23", "shell")]
    assert rebuilt.last_activity == "later"


def test_a_session_without_any_file_is_rebuilt_from_the_registry_and_its_directory(records: Records) -> None:
    rebuilt = records.rebuild(ID, {"createdAt": NOW, "tmuxSocket": "/s", "status": "error"}, "later")
    assert (rebuilt.created_at, rebuilt.socket, rebuilt.status) == (NOW, "/s", Status.ERROR)
    bare = records.rebuild(ID, {}, "later")
    assert (bare.socket, bare.status, bare.agents) == (None, Status.STOPPED, ())
    assert bare.created_at.endswith("Z")


def test_an_invalid_status_is_not_believed(layout: Layout, records: Records) -> None:
    records.save(a_session(ID))
    put(layout.session(ID).root, ".session", b"STATUS=whatever\n")
    assert records.rebuild(ID, {}, "later").status is Status.STOPPED


def test_what_a_killed_save_left_can_be_removed(layout: Layout, records: Records) -> None:
    records.save(a_session(ID))
    before = sorted(os.listdir(layout.session(ID).root))
    for name in (".metadata.json.tmp", ".session.tmp", ".config.json.tmp"):
        put(layout.session(ID).root, name, "half")
    records.remove_unfinished(ID)
    assert sorted(os.listdir(layout.session(ID).root)) == before
