"""Settings: flag before environment before directory, and a damaged file is never taken for defaults."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from mas.model.errors import BadInput, Corrupt, NoWorkspace
from mas.settings import (
    Inside,
    ServerMode,
    Settings,
    find_root,
    inside,
    legacy_home,
    load_settings,
    read_config,
    wants_colour,
)
from tests.site import short_directory

_OURS = ("MAS_", "TMUX", "SESSION_NAME", "NO_COLOR", "TERM")


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty directory to be in, and an environment that says nothing to MAS."""
    for name in [name for name in os.environ if name.startswith(_OURS)]:
        monkeypatch.delenv(name)
    with short_directory() as directory:
        monkeypatch.chdir(directory)
        yield directory
        monkeypatch.chdir("/")


def workspace(place: str, name: str, config: object = None) -> str:
    path = os.path.join(place, name)
    os.makedirs(path)
    write(path, ".masrc", "")
    if config is not None:
        write(path, "config.json", config if isinstance(config, str) else json.dumps(config))
    return path


def write(*parts: str) -> None:
    with open(os.path.join(*parts[:-1]), "w", encoding="utf-8") as file:
        file.write(parts[-1])


def loaded(place: str, config: object) -> Settings:
    return load_settings(workspace(place, "ws", config))


def test_the_flag_wins_then_the_environment_then_the_nearest_parent(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flag, told, outer = (workspace(place, name) for name in ("flag", "told", "outer"))
    inner = workspace(outer, "inner")
    deep = os.path.join(inner, "unit", "00")
    os.makedirs(deep)
    monkeypatch.chdir(deep)
    assert find_root(None) == inner
    os.unlink(os.path.join(inner, ".masrc"))
    assert find_root(None) == outer
    monkeypatch.setenv("MAS_WORKSPACE_ROOT", "")
    assert find_root(None) == outer
    monkeypatch.setenv("MAS_WORKSPACE_ROOT", told)
    assert find_root(None) == told
    assert find_root(flag) == flag
    assert load_settings(flag).root == flag


def test_where_there_is_no_workspace_the_next_command_is_named(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for told in (None, place, os.path.join(place, "missing")):
        with pytest.raises(NoWorkspace) as refused:
            find_root(told)
        assert place in refused.value.message
        assert refused.value.hint == ("mas init" if told is None else f"mas init {told}")
    monkeypatch.setenv("MAS_WORKSPACE_ROOT", os.path.join(place, "elsewhere"))
    with pytest.raises(NoWorkspace, match="elsewhere"):
        load_settings(None)


def test_a_directory_that_was_removed_is_no_workspace(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = os.path.join(place, "gone")
    os.mkdir(gone)
    monkeypatch.chdir(gone)
    os.rmdir(gone)
    with pytest.raises(NoWorkspace, match="no longer exists"):
        find_root(None)
    assert find_root(workspace(place, "ws")) == os.path.join(place, "ws")
    monkeypatch.chdir(place)


def test_a_given_workspace_is_not_replaced_by_a_parent(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    outer = workspace(place, "outer")
    os.mkdir(os.path.join(outer, "sub"))
    with pytest.raises(NoWorkspace):
        find_root(os.path.join(outer, "sub"))
    monkeypatch.setenv("MAS_WORKSPACE_ROOT", os.path.join(outer, "sub"))
    monkeypatch.chdir(outer)
    with pytest.raises(NoWorkspace):
        find_root(None)


def test_a_workspace_reached_through_a_link_has_one_root(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    root = workspace(place, "real")
    os.symlink(root, os.path.join(place, "link"))
    assert find_root(os.path.join(place, "link")) == root
    monkeypatch.chdir(os.path.join(place, "link"))
    assert find_root(None) == root
    assert find_root(".") == root


def test_a_directory_of_the_markers_name_is_no_marker(place: str) -> None:
    os.makedirs(os.path.join(place, "ws", ".masrc"))
    with pytest.raises(NoWorkspace):
        find_root(os.path.join(place, "ws"))


def test_the_old_data_directory_means_nothing(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    other = workspace(place, "other")
    monkeypatch.setenv("MAS_DATA_DIR", other)
    with pytest.raises(NoWorkspace):
        find_root(None)
    assert "MAS_DATA_DIR" not in load_settings(other).carried


def test_without_a_configuration_there_are_defaults(place: str) -> None:
    found = loaded(place, None)
    assert (found.provider, found.tmux_server, found.recover, found.legacy) == ("demo", ServerMode.AUTO, False, False)


def test_the_environment_wins_over_the_file(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    root = workspace(place, "ws", {"provider": "shell", "tmux": {"server": "session"}, "recover": True})
    found = load_settings(root)
    assert (found.provider, found.tmux_server, found.recover) == ("shell", ServerMode.SESSION, True)
    for name, value in {"MAS_PROVIDER": "demo", "MAS_TMUX_SERVER": "default", "MAS_RECOVER": "no"}.items():
        monkeypatch.setenv(name, value)
    found = load_settings(root)
    assert (found.provider, found.tmux_server, found.recover) == ("demo", ServerMode.DEFAULT, False)


@pytest.mark.parametrize("word", ["auto", "default", "workspace", "session"])
def test_every_place_for_tmux_can_be_asked_for(place: str, word: str) -> None:
    assert loaded(place, {"tmux": {"server": word}}).tmux_server == word


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ({"tmux": {"server": "Default"}}, "auto, default, workspace, session"),
        ({"tmux": {"server": 7}}, "server must be text"),
        ({"tmux": "default"}, "tmux must be an object"),
        ({"tmux": None}, "tmux must be an object"),
        ({"provider": ["shell"]}, "provider must be text"),
        ({"recover": "yes"}, "recover must be true or false"),
        ({"recover": 1}, "recover must be true or false"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_named(place: str, config: object, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        loaded(place, config)


@pytest.mark.parametrize("data", ["", "{", "null", "[]", "7", '"text"', "not json", '{"provider": "x"'])
def test_a_damaged_configuration_is_reported_and_never_taken_for_none(place: str, data: str) -> None:
    with pytest.raises(Corrupt) as refused:
        loaded(place, data)
    assert refused.value.path == os.path.join(place, "ws", "config.json")
    assert read_config(os.path.join(place, "missing.json")) == {}


def test_bytes_that_are_no_text_are_damage(place: str) -> None:
    with open(os.path.join(place, "config.json"), "wb") as file:
        file.write(b'{"provider": "\xff"}')
    with pytest.raises(Corrupt):
        read_config(os.path.join(place, "config.json"))


@pytest.mark.parametrize(("word", "wanted"), [("1", True), ("TRUE", True), ("on", True), ("0", False), ("", False)])
def test_recovery_is_asked_for_in_a_word(place: str, monkeypatch: pytest.MonkeyPatch, word: str, wanted: bool) -> None:
    monkeypatch.setenv("MAS_RECOVER", word)
    assert loaded(place, None).recover is wanted


@pytest.mark.parametrize(
    ("name", "value", "legacy"),
    [
        ("MAS_SESSION_MODE", "legacy", True),
        ("MAS_SESSION_MODE", "isolated", False),
        ("SESSION_NAME", "mas-tmux", True),
        ("SESSION_NAME", "mas-3f2a9c1e", False),
    ],
)
def test_the_old_mode_is_seen_in_the_environment(
    place: str, monkeypatch: pytest.MonkeyPatch, name: str, value: str, legacy: bool
) -> None:
    monkeypatch.setenv(name, value)
    assert loaded(place, None).legacy is legacy


@pytest.mark.parametrize(
    ("environ", "socket"),
    [
        ({}, f"/tmp/tmux-{os.getuid()}/default"),
        ({"TMUX_TMPDIR": "/run/me"}, f"/run/me/tmux-{os.getuid()}/default"),
        ({"TMUX_TMPDIR": ""}, f"/tmp/tmux-{os.getuid()}/default"),
        ({"TMUX": "/run/a,b/sock,123,0", "TMUX_TMPDIR": "/run/me"}, "/run/a,b/sock"),
    ],
)
def test_the_users_tmux_is_the_one_that_plain_tmux_would_ask(
    place: str, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], socket: str
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert loaded(place, None).user_socket == socket


def test_agents_take_only_what_every_program_needs(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SECRET", "x")
    monkeypatch.setenv("LANG", "C.UTF-8")
    carried = loaded(place, None).carried
    assert carried["LANG"] == "C.UTF-8"
    assert set(carried) <= {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ"}


def test_a_process_knows_whether_it_is_inside_an_agent(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert inside() == Inside(None, None, None)
    monkeypatch.setenv("MAS_SESSION_ID", "id")
    monkeypatch.setenv("MAS_AGENT_ID", "00")
    monkeypatch.setenv("MAS_SESSION_DIR", "/there")
    assert inside() == Inside("id", "00", "/there")


def test_the_old_home_is_the_users(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", place)
    assert legacy_home() == os.path.join(place, ".mas")


def test_colour_is_for_terminals_that_want_it(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert wants_colour(True)
    assert not wants_colour(False)
    monkeypatch.setenv("TERM", "dumb")
    assert not wants_colour(True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour(True)
