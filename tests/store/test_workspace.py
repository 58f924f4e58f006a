"""The workspace: made once, added to, never written over; sessions come and go inside it only."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from mas.model.errors import BadInput, NoSession, NotFound
from mas.model.ids import SessionId
from mas.model.team import DEFAULT_TEAM
from mas.store.files.shellfile import parse_pairs
from mas.store.layout import Layout
from mas.store.workspace import workspace as workspace_of_disk
from mas.store.workspace.workspace import Workspace, init_workspace
from tests.store.samples import NOW, mode, new_id, ordinary_user, picture, put, read, umask

AGENTS = [agent.id for agent in DEFAULT_TEAM.agents()]
ID = new_id()


@pytest.fixture
def root(place: str) -> str:
    path = os.path.join(place, "ws")
    init_workspace(path, "mine", "shell")
    return path


@pytest.fixture
def workspace(root: str) -> Workspace:
    made = Workspace(Layout(root))
    made.prepare()
    return made


def furnished(root: str, workspace: Workspace, session_id: SessionId = ID) -> str:
    workspace.create(session_id)
    workspace.furnish(session_id)
    workspace.copy_templates(session_id, False, None)
    return Layout(root).session(session_id).root


def test_a_workspace_is_exactly_what_was_promised(place: str) -> None:
    root = os.path.join(place, "some", "where")
    made = init_workspace(root, "mine", "shell")
    assert sorted(os.listdir(root)) == [".masrc", "config.json", "logs", "sessions", "templates", "unit", "workflows"]
    assert sorted(os.listdir(os.path.join(root, "unit"))) == AGENTS
    workflows = sorted(os.listdir(os.path.join(root, "workflows")))
    assert [name[:2] for name in workflows] == AGENTS
    assert workflows[0] == "00_meta_manager.md"
    assert [os.listdir(os.path.join(root, name)) for name in ("templates", "logs", "sessions")] == [[], [], []]
    assert parse_pairs(read(os.path.join(root, ".masrc"))) == {"MAS_WORKSPACE_VERSION": "1"}
    config = json.loads(read(os.path.join(root, "config.json")))
    assert (config["name"], config["provider"]) == ("mine", "shell")
    assert {name.rstrip("/") for name in made} == {
        name for name in picture(root) if name.count("/") < 2 and not name.endswith("ROLE.md")
    }


def test_a_second_init_makes_nothing_and_changes_nothing(root: str) -> None:
    before = picture(root)
    assert init_workspace(root, "another", "demo") == []
    assert picture(root) == before


def test_a_second_init_adds_only_what_is_missing(root: str) -> None:
    edited = put(root, "unit/10/ROLE.md", "my own words")
    extra = put(root, "unit/99/ROLE.md", "my own agent")
    put(root, "config.json", "{}")
    shutil.rmtree(os.path.join(root, "unit", "20"))
    shutil.rmtree(os.path.join(root, "logs"))
    os.unlink(os.path.join(root, "workflows", "00_meta_manager.md"))
    put(root, "unit/.20.tmp/half", "what a killed init left")
    before = picture(root, times=False)
    made = init_workspace(root, "another", "demo")
    assert sorted(made) == ["logs/", "unit/20", "workflows/00_meta_manager.md"]
    after = picture(root, times=False)
    assert (read(edited), read(extra), read(os.path.join(root, "config.json"))) == (
        b"my own words",
        b"my own agent",
        b"{}",
    )
    assert {path: after[path] for path in before if ".20.tmp" not in path and path in after} == {
        path: fact for path, fact in before.items() if ".20.tmp" not in path
    }
    assert ".20.tmp" not in os.listdir(os.path.join(root, "unit"))


def test_a_link_put_in_place_of_something_stays(root: str, place: str) -> None:
    os.unlink(os.path.join(root, "config.json"))
    os.symlink(os.path.join(place, "elsewhere"), os.path.join(root, "config.json"))
    assert init_workspace(root, "another", "demo") == []
    assert os.listdir(place) == ["ws"]


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_modes_do_not_depend_on_the_umask(place: str, mask: int) -> None:
    root = os.path.join(place, "ws")
    with umask(mask):
        init_workspace(root, "mine", "shell")
        Workspace(Layout(root)).prepare()
    assert {
        name: oct(mode(os.path.join(root, name))) for name in ("sessions", "unit", "logs", "config.json", ".masrc")
    } == {
        "sessions": "0o755",
        "unit": "0o755",
        "logs": "0o700",
        "config.json": "0o644",
        ".masrc": "0o644",
    }
    private = os.path.join(root, "sessions", ".mas")
    # What agents may know about the server must be readable for them.
    assert oct(mode(os.path.join(private, "address"))) == "0o755"
    closed = (os.path.join(private, name) for name in os.listdir(private) if name != "address")
    assert {oct(mode(path)) for path in (private, *closed)} == {"0o700"}


def test_a_workspace_whose_path_no_line_can_hold_is_refused(place: str) -> None:
    with pytest.raises(BadInput, match="control characters"):
        init_workspace(os.path.join(place, "a\nb"), "mine", "shell")
    assert os.listdir(place) == []


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_a_new_session_has_its_own_copies_with_their_modes(root: str, workspace: Workspace, mask: int) -> None:
    before = picture(root)
    with umask(mask):
        session = furnished(root, workspace)
    assert {
        name: oct(mode(os.path.join(session, name))) for name in ("", ".session.lock", "unit", "workflows", "logs")
    } == {
        "": "0o700",
        ".session.lock": "0o600",
        "unit": "0o755",
        "workflows": "0o755",
        "logs": "0o755",
    }
    for part in ("unit", "workflows"):
        assert picture(os.path.join(session, part)) == picture(os.path.join(root, part))
        for path in picture(os.path.join(session, part)):
            with (
                open(os.path.join(session, part, path), "ab")
                if os.path.isfile(os.path.join(session, part, path))
                else open(os.devnull, "ab") as file
            ):
                file.write(b"changed by an agent")
    now = picture(root)
    assert {path: now[path] for path in before if not path.startswith("sessions")} == {
        path: fact for path, fact in before.items() if not path.startswith("sessions")
    }


def test_a_directory_that_is_there_is_never_taken_over(root: str, workspace: Workspace) -> None:
    put(Layout(root).session(ID).root, "mine", "x")
    with pytest.raises(FileExistsError):
        workspace.create(ID)
    assert os.listdir(Layout(root).session(ID).root) == ["mine"]


def test_units_come_late_where_that_was_asked_for(root: str, workspace: Workspace) -> None:
    workspace.create(ID)
    workspace.furnish(ID)
    workspace.copy_templates(ID, True, None)
    assert os.listdir(Layout(root).session(ID).unit) == []
    assert workspace.lazy_source(ID, "10") == os.path.join(root, "unit", "10")
    assert workspace.lazy_source(ID, "99") is None
    workspace.fill_units(ID, ["10", "99"])
    assert workspace.lazy_source(ID, "10") is None
    assert sorted(os.listdir(Layout(root).session(ID).unit)) == ["10", "99"]


def test_missing_templates_are_named(root: str, workspace: Workspace) -> None:
    shutil.rmtree(os.path.join(root, "workflows"))
    workspace.create(ID)
    with pytest.raises(NotFound, match="workflows"):
        workspace.copy_templates(ID, False, None)


def test_a_session_is_discarded_with_all_it_holds(root: str, place: str, workspace: Workspace) -> None:
    outside = put(place, "outside/secret", "mine")
    session = furnished(root, workspace)
    os.symlink(os.path.dirname(outside), os.path.join(session, "unit", "link"))
    workspace.discard(ID)
    workspace.discard(ID)
    assert Layout(root).directories() == set()
    assert os.listdir(Layout(root).doomed) == []
    assert read(outside) == b"mine"


def test_a_link_in_place_of_a_session_is_removed_as_a_link(root: str, place: str, workspace: Workspace) -> None:
    outside = put(place, "outside/secret", "mine")
    os.symlink(os.path.dirname(outside), Layout(root).session(ID).root)
    assert not Layout(root).is_session(ID)
    with pytest.raises(NoSession):
        workspace.trash(ID, NOW)
    workspace.discard(ID)
    assert read(outside) == b"mine"
    assert not os.path.lexists(Layout(root).session(ID).root)


def test_a_removal_that_was_cut_short_is_gone_on_with(root: str, workspace: Workspace) -> None:
    doomed = Layout(root).doomed
    put(doomed, f"{ID}/unit/file", "x")
    put(doomed, ".deep-1-2/file", "x")
    put(doomed, f"{new_id()}/other", "x")
    workspace.clear_doomed(ID)
    assert len(os.listdir(doomed)) == 1


def test_a_deleted_session_comes_back_as_it_went(root: str, workspace: Workspace) -> None:
    before = picture(furnished(root, workspace))
    trashed = workspace.trash(ID, NOW)
    assert Layout(root).directories() == set()
    assert list(workspace.trashed()) == [trashed]
    workspace.untrash(trashed)
    assert picture(Layout(root).session(ID).root) == before
    assert list(workspace.trashed()) == []


def test_a_session_does_not_come_back_over_another(root: str, workspace: Workspace) -> None:
    furnished(root, workspace)
    trashed = workspace.trash(ID, NOW)
    put(Layout(root).session(ID).root, "mine", "x")
    with pytest.raises(FileExistsError):
        workspace.untrash(trashed)
    assert os.listdir(Layout(root).session(ID).root) == ["mine"]


def test_what_was_deleted_last_is_listed_first(root: str, workspace: Workspace) -> None:
    furnished(root, workspace)
    workspace.trash(ID, "2026-01-01T00:00:00Z")
    furnished(root, workspace)
    workspace.trash(ID, "2026-01-02T00:00:00Z")
    put(Layout(root).trash, "not-a-session@x", "")
    assert [trashed.deleted_at[:10] for trashed in workspace.trashed()] == ["2026-01-02", "2026-01-01"]
    with pytest.raises(NoSession):
        workspace.trash(new_id(), NOW)


def test_a_clone_has_the_work_and_nothing_else_of_its_source(root: str, workspace: Workspace) -> None:
    source = furnished(root, workspace)
    put(source, "unit/00/work.md", "mine")
    put(source, "logs/session.log", "old")
    os.mkfifo(os.path.join(source, "unit", "00", "pipe"))
    clone = new_id()
    workspace.create(clone)
    workspace.furnish(clone)
    assert workspace.copy_session(source, clone, None) == ["unit/00/pipe"]
    copy = Layout(root).session(clone).root
    assert read(os.path.join(copy, "unit", "00", "work.md")) == b"mine"
    assert os.listdir(os.path.join(copy, "logs")) == ["api.log"]


def test_a_clone_of_a_source_without_units_or_with_a_link_for_them_has_empty_ones(
    root: str, place: str, workspace: Workspace
) -> None:
    put(place, "outside/secret", "mine")
    source = os.path.join(place, "source")
    os.mkdir(source)
    os.symlink(os.path.join(place, "outside"), os.path.join(source, "unit"))
    workspace.create(ID)
    assert workspace.copy_session(source, ID, None) == []
    paths = Layout(root).session(ID)
    assert (os.listdir(paths.unit), os.listdir(paths.workflows)) == ([], [])
    assert oct(mode(paths.unit)) == "0o755"


def test_a_workspace_works_for_an_ordinary_user(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # MAS itself may lie where only its user may look.
    shipped = os.path.join(place, "shipped")
    shutil.copytree(workspace_of_disk._SHIPPED, shipped)
    monkeypatch.setattr(workspace_of_disk, "_SHIPPED", shipped)
    with ordinary_user(place):
        root = os.path.join(place, "mine")
        init_workspace(root, "mine", "shell")
        workspace = Workspace(Layout(root))
        workspace.prepare()
        session = furnished(root, workspace)
        os.chmod(os.path.join(session, "unit", "10"), 0)
        workspace.discard(ID)
        assert Layout(root).directories() == set()
