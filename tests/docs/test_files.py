"""The reference of files names the fields that are read and written, and no others."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from typing import Any, NamedTuple

import pytest

from mas import settings
from mas.model.errors import BadInput
from mas.model.isolation import Limits
from mas.model.retention import Retention
from mas.model.run import parse_run
from mas.model.session import Gone, Status
from mas.model.shapes import read as read_shape
from mas.model.teamfile import parse_team_file
from mas.pane import cast, logs
from mas.providers.format import PLACEHOLDERS, Approve, Input, StatusTable, Stop, read_provider
from mas.service.isolation.own_config import SystemView
from mas.store.agent import agentlog
from mas.store.files.shellfile import parse_pairs
from mas.store.layout import Layout, SessionPaths
from mas.store.session.mailbox import MIGRATIONS, VERSION
from mas.store.session.session_files import Records
from mas.store.workspace import eventlog
from mas.store.workspace.archives import ArchiveInfo
from mas.store.workspace.intents import Intent
from mas.store.workspace.registry import Registry
from mas.store.workspace.workspace import Workspace, init_workspace
from tests.docs.pages import names, page, rows, section, sources, words, written
from tests.site import short_directory
from tests.store.samples import NOW, a_session, an_entry, new_id, put, read

_STRANGER = {"stranger": 1}


def known(refusal: pytest.ExceptionInfo[BadInput]) -> set[str]:
    """The fields that a parser says it knows when it meets a stranger."""
    match = re.search(r"\(known: (.*)\)", refusal.value.message)
    assert match
    return set(match[1].split(", "))


@pytest.mark.parametrize(
    ("heading", "run"),
    [
        ("Runs", _STRANGER),
        ("Agents of a run", {"agents": {"metaManager": _STRANGER}}),
        ("isolation", {"isolation": _STRANGER}),
        ("limits", {"limits": _STRANGER}),
    ],
)
def test_the_fields_of_a_run_are_documented(heading: str, run: dict[str, Any]) -> None:
    with pytest.raises(BadInput) as refusal:
        parse_run(run)
    assert names("files", heading) == known(refusal)


def test_the_fields_of_a_retention_policy_are_documented_and_the_example_is_valid() -> None:
    with pytest.raises(BadInput) as refusal:
        read_shape(Retention, _STRANGER)
    assert names("files", "Retention") == known(refusal)
    example = re.search(r"```json\n(.*?)```", section("files", "Retention"), re.DOTALL)
    assert example
    assert read_shape(Retention, json.loads(example[1])["retention"]) is not None
    usual = Retention()
    told = {row[0].strip("`"): row[1].strip("`") for row in rows(section("files", "Retention"))}
    assert (told["moveTo"], told["lost"]) == (json.dumps(usual.move_to), json.dumps(usual.lost))


def test_the_fields_of_units_and_of_limits_of_agents_are_documented() -> None:
    with pytest.raises(BadInput) as refusal:
        parse_run({"agents": {"units": [_STRANGER]}})
    assert known(refusal) <= words(section("files", "Runs"))
    with pytest.raises(BadInput) as refusal:
        read_shape(Limits, _STRANGER)
    assert names("files", "limits") == known(refusal) | {"agent"}


def test_the_fields_of_the_user_s_own_configuration_are_documented() -> None:
    assert names("files", "Your own configuration") == set(SystemView._fields)


def test_the_fields_of_a_team_file_are_documented_and_the_example_is_valid() -> None:
    import tomllib

    with pytest.raises(BadInput) as refusal:
        parse_team_file(_STRANGER, "mine")
    assert names("files", "Team files") == known(refusal)
    example = re.search(r"```toml\n(.*?)```", section("files", "Team files"), re.DOTALL)
    assert example
    assert parse_team_file(tomllib.loads(example[1]), "mine").agent_count == 2


def test_the_example_of_a_config_file_is_complete_and_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MAS_ISOLATION", raising=False)
    example = re.search(r"```json\n(.*?)```", section("files", "config.json"), re.DOTALL)
    assert example
    written_there = json.loads(example[1])
    told = {row[0].strip("`").partition(".")[0] for row in rows(section("files", "config.json"))}
    assert set(written_there) == told | {"version", "name"}
    with short_directory() as root:
        init_workspace(root, "shop", "demo")
        put(root, "config.json", example[1])
        found = settings.load_settings(root)
    assert found.isolation.ports == (443,)
    assert found.limits.agent.cpu == 2
    assert found.recover


@pytest.mark.parametrize("table", ["provider", "models", "input", "approve", "stop", "launch", "status"])
def test_the_fields_of_a_provider_file_are_documented(table: str) -> None:
    # Fields of the launch table's second table are placeholders.
    told = {name for name in names("files", f"[{table}]") if not name.startswith("{")}
    assert told == _known_in(table)


def test_the_fields_of_a_dialog_are_documented() -> None:
    known_ones = _known_in("[status.startup_dialogs]", 'match = "x"\nreport = "error"\n')
    assert known_ones <= words(section("files", "[status]"))


def _known_in(table: str, lines: str = "") -> set[str]:
    with short_directory() as directory:
        body = {"provider": 'id = "mine"\n', "launch": 'argv = ["true"]\n'}
        body[table] = body.get(table, lines) + "stranger = 1\n"
        put(directory, "mine.toml", "".join(f"[{name}]\n{fields}" for name, fields in body.items()))
        with pytest.raises(BadInput) as refusal:
            read_provider(os.path.join(directory, "mine.toml"), "mine")
        return known(refusal)


@pytest.mark.parametrize(
    ("table", "usual"), [("input", Input()), ("approve", Approve()), ("stop", Stop()), ("status", StatusTable())]
)
def test_the_defaults_of_a_provider_file_are_as_documented(table: str, usual: NamedTuple) -> None:
    def shown(value: object) -> str:
        if isinstance(value, bool):
            return f"`{str(value).lower()}`"
        return f"{value:g}" if isinstance(value, float) else f"`{value}`" if value else ""

    for fields, default, *_ in rows(section("files", f"[{table}]")):
        wanted = ", ".join(shown(getattr(usual, name)) for name in fields.replace("`", "").split(", "))
        assert default.replace("none", "") == wanted.replace("`none`", "``"), fields


def test_the_placeholders_are_documented() -> None:
    told = {name.strip("{}") for name in names("files", "[launch]") if name.startswith("{")}
    assert told == PLACEHOLDERS


def test_what_is_read_of_the_configuration_is_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[str] = set()

    class Asked(dict[str, Any]):
        def __init__(self, name: str = "") -> None:
            super().__init__()
            self.name = name

        def get(self, key: str, default: Any = None) -> Any:
            if isinstance(default, dict):
                return Asked(f"{key}.")
            asked.add(f"{self.name}{key}")
            return default

    monkeypatch.setattr(settings, "read_config", lambda path: Asked())
    with short_directory() as root:
        init_workspace(root, "mine", "demo")
        settings.load_settings(root)
        with open(os.path.join(root, "config.json"), encoding="utf-8") as file:
            made = set(json.load(file))
    assert names("files", "config.json") == asked
    assert made <= words(section("files", "config.json")) | {"tmux"}


def test_the_defaults_of_the_configuration_are_as_documented() -> None:
    usual = settings.Settings._field_defaults
    told = {row[0].strip("`"): row[1].strip("`") for row in rows(section("files", "config.json"))}
    for name, field in {"provider": "provider", "server": "server_start", "tmux.server": "tmux_server"}.items():
        assert told[name] == json.dumps(usual[field])
    assert told["recover"] == json.dumps(usual["recover"])


def test_the_files_of_a_session_have_the_documented_fields() -> None:
    with short_directory() as root:
        layout, session_id = Layout(root), new_id()
        Workspace(layout).prepare()
        Workspace(layout).create(session_id)
        Records(layout).save(a_session(session_id))
        paths = layout.session(session_id)
        metadata = json.loads(read(paths.metadata))
        assert names("formats", "metadata.json") == set(metadata)
        assert set(metadata["agents"][0]) <= words(section("formats", "metadata.json"))
        assert names("formats", ".session") == set(parse_pairs(read(paths.record)))


def test_the_registry_has_the_documented_fields_and_the_journal_the_documented_words() -> None:
    with short_directory() as root:
        layout, session_id = Layout(root), new_id()
        Workspace(layout).prepare()
        Registry(layout, lambda: NOW).rebuild(lambda: [an_entry(session_id)])
        index = json.loads(read(layout.registry_index))
        journal = read(layout.journal).decode()
    assert names("formats", "Registry") == set(index["sessions"][0])
    assert set(index) <= words(section("formats", "Registry"))
    assert f'"{index["version"]}"' in section("formats", "Registry")
    assert journal == f"{session_id}:active:{NOW}\n"
    assert names("formats", "Journal") == {*Status, *Gone}


def test_the_tables_of_messages_have_the_documented_columns() -> None:
    database = sqlite3.connect(":memory:")
    database.executescript("".join(MIGRATIONS))
    columns = {
        table: [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        for table in ("messages", "deliveries")
    }
    database.close()
    told = section("formats", "Messages")
    _, messages, deliveries = re.split("Table `", told)
    assert [row[0].strip("`") for row in rows(messages)] == columns["messages"]
    assert [row[0].strip("`") for row in rows(deliveries)] == columns["deliveries"]
    assert f"`user_version` {VERSION}" in told


def test_a_recording_is_as_documented() -> None:
    with short_directory() as directory:
        path = os.path.join(directory, "agent-21.cast")
        made = cast.Cast(path, 80, 24, "xterm")
        made.output(b"hello", 1.0)
        made.resize(100, 30, 2.0)
        made.close()
        header, *lines = map(json.loads, read(path).decode().splitlines())
    told = section("formats", "Recordings")
    assert set(header) <= words(told)
    assert [line[1] for line in lines] == ["o", "r"]
    assert names("formats", "Recordings") == {
        "o",
        "r",
        *re.findall(r'_line\(at, "(\w)"', written("src/mas/pane/cast.py")),
    }


def test_files_are_as_large_as_documented() -> None:
    for heading, size in (
        ("Recordings", cast.LARGEST),
        ("Agent events", agentlog.LARGEST),
        ("A session", logs._LARGEST_LOG),
        ("Event log", eventlog.SEGMENT_SIZE),
    ):
        assert f"{size >> 20} MiB" in section("formats", heading)
    assert f"the last {eventlog.KEPT} are kept" in section("formats", "Event log")
    assert f"at most {eventlog.KEPT * eventlog.SEGMENT_SIZE >> 20} MiB" in page("events")


def test_intents_and_archives_have_the_documented_fields() -> None:
    assert names("formats", "Intents") == set(Intent._fields)
    assert names("formats", "Archives") == set(ArchiveInfo._fields)


def test_the_events_of_an_agents_file_are_documented() -> None:
    code = (
        written("src/mas/store/agent/agentlog.py")
        + written("src/mas/pane/logs.py")
        + written("src/mas/store/agent/hooks.py")
    )
    used = set(re.findall(r'"event": ?"(\w+)"', code)) - {"agent", "network"}
    assert names("formats", "Agent events") == used
    launcher = written("src/mas/pane/launcher.py")
    for event, *fields in rows(section("formats", "Agent events")):
        if event in ("`start`", "`exit`"):
            for name in words(fields[0]):
                assert re.search(rf'\b{name}=|"{name}"', launcher), (event, name)


def test_every_place_of_a_workspace_and_of_a_session_is_documented() -> None:
    text = page("formats")
    told = {word.rstrip("/").rpartition("/")[2] for word in words(text)} | words(text)
    for kind, example in ((Layout, Layout("/w")), (SessionPaths, SessionPaths("/w/sessions/x"))):
        for name, value in vars(kind).items():
            if isinstance(value, property):
                place = getattr(example, name)
                assert os.path.basename(place) in told or f"{os.path.basename(place)}/" in told, place
    code = "".join(sources("src/mas/store", "src/mas/service"))
    below = set(re.findall(r'(?:"\.mas"|\.private|layout\.server|self\._directory), f?"([\w.-]+)"', code))
    assert {"messages.db", "secrets.lock", "groups"} <= below <= told
