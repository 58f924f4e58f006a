"""The reference names all there is, and nothing that is not."""

from __future__ import annotations

import argparse
import ast
import os
import re
from pathlib import Path
from typing import get_args

import pytest

from mas import settings
from mas.cli.main import COMMANDS, COMMON, EXIT_CODES, HIDDEN, command_parser, load
from mas.http import terminal
from mas.http.limits import ServerLimits
from mas.http.wire import EVENTS, EventFields, EventFieldsPage
from mas.model.errors import MasError
from mas.model.event import KINDS, event_fields
from mas.model.message import DeliveryState
from mas.model.session import Gone, Status
from mas.model.state import COMPOSER, SOURCES, State
from mas.model.views import camel
from mas.pane.logs import AgentLogs
from mas.settings import OF_AN_AGENT
from mas.store.layout import Layout
from mas.store.workspace.events import OLDEST, Events
from mas.store.workspace.workspace import Workspace
from reference.calls import description
from reference.errors import kinds
from reference.markdown import MARKER, plain
from reference.parts import PARTS, with_short_parts
from tests.docs.pages import names, page, rows, section, sources, words, written
from tests.site import REPOSITORY, short_directory
from tests.store.samples import NOW, new_id

_CODE = ("src/mas", "shell", "hatch_build.py")
_VARIABLE = re.compile(r"\bMAS_[A-Z][A-Z_]*[A-Z]\b")


def test_every_marker_names_a_part_and_every_part_is_on_one_page() -> None:
    used = [
        name
        for file in sorted(os.listdir(os.path.join(REPOSITORY, "docs", "reference")))
        if file.endswith(".md")
        for name, _ in MARKER.findall(written(f"docs/reference/{file}"))
    ]
    assert sorted(used) == sorted(PARTS)


@pytest.mark.parametrize("name", ["cli", "http", "shapes", "errors", "metrics"])
def test_what_a_page_in_the_repository_has_of_the_code_is_up_to_date(name: str) -> None:
    path = f"docs/reference/{name}.md"
    wanted = with_short_parts(written(path))
    if os.environ.get("UPDATE_GOLDEN"):
        Path(REPOSITORY, path).write_text(wanted, "utf-8")
    assert written(path) == wanted, "run: .venv/bin/python -m reference write"


def test_the_pages_in_the_repository_name_every_command_and_call() -> None:
    for name in (*COMMANDS, *HIDDEN):
        assert f"| `mas {name}` | " in written("docs/reference/cli.md")
    for path, verbs in description()["paths"].items():
        for verb in verbs:
            assert f"| `{verb.upper()} {path}` | " in written("docs/reference/http.md")


def test_every_variable_is_named_and_no_unknown_one() -> None:
    told = set(_VARIABLE.findall(page("environment")))
    assert {name for text in sources(*_CODE) for name in _VARIABLE.findall(text)} <= told
    assert told <= {name for text in sources(*_CODE, "tests") for name in _VARIABLE.findall(text)}


def test_what_agents_get_and_what_else_is_read_is_documented() -> None:
    assert set(OF_AN_AGENT) <= names("environment", "Given to agents")
    assert set(settings._CARRIED) <= words(section("environment", "Given to agents"))
    read = set(re.findall(r'environ(?:\.get\(|\[)"([A-Z_]+)"', written("src/mas/settings.py"))) - {"TERM"}
    assert read <= names("environment", "Read by mas")


def test_every_command_is_there_with_all_of_its_options() -> None:
    text = page("cli")
    for name in (*COMMANDS, *HIDDEN):
        told = section("cli", f"mas {name}") + section("cli", "Options of every command")
        for action in command_parser(name, load(name))._actions:
            if action.help == argparse.SUPPRESS and action.dest.replace("_", "-") not in COMMON:
                # An older spelling.
                continue
            for option in action.option_strings or [str(action.metavar or action.dest)]:
                assert option in told, f"mas {name}: {option}"
    assert len(re.findall("^### mas ", text, re.MULTILINE)) == len(COMMANDS) + len(HIDDEN)


def test_every_exit_code_is_documented() -> None:
    told = {int(row[0]) for row in rows(section("errors", "Exit codes"))}
    assert told == {0, 130, *(code for _, code in EXIT_CODES)}


def test_every_error_code_is_documented() -> None:
    assert names("errors", "Error codes") == {kind.code for kind in kinds(MasError)}
    assert all(row[1] for row in rows(section("errors", "Error codes"))), "a branch of the tree says nothing"


def test_every_refusal_of_the_server_alone_is_documented() -> None:
    text = "".join(sources("src/mas/http"))
    used = set(re.findall(r'[Rr]efusal\(\s*\d+, "([a-z-]+)"', text))
    used |= set(re.findall(r'\d{3}: "([a-z-]+)"', text)) | set(
        re.findall(r'\.get\(error\.status_code, "([a-z-]+)"\)', text)
    )
    assert names("errors", "Refusals of the server alone") == used - {MasError.code}


def test_every_call_and_every_shape_is_documented() -> None:
    calls, shapes = page("http"), page("shapes")
    promised = description()
    for path, verbs in promised["paths"].items():
        for verb, call in verbs.items():
            assert f"\n### {verb.upper()} {path}\n" in calls
            for parameter in call.get("parameters", []):
                for said in (parameter, *parameter["schema"].get("anyOf", ())):
                    assert plain(said.get("description", "")) in calls
    for shape, schema in promised["components"]["schemas"].items():
        assert names("shapes", shape) == set(schema.get("properties", {})), shape
    assert len(re.findall("^### ", shapes, re.MULTILINE)) == len(promised["components"]["schemas"])


def test_the_limits_of_the_server_are_as_documented() -> None:
    usual, told = ServerLimits(), section("http", "Limits")
    for sentence in (
        f"at most {usual.body_size >> 20} MiB",
        f"a head {usual.head_size >> 10} KiB",
        f"send {usual.rate:g} requests a second",
        f"{usual.failed_rate:g} with a wrong",
        f"{usual.head_lines} header lines",
        f"at most {usual.unknown_connections} at the address",
        *("| " + " | ".join(map(str, shares)) for shares in (usual.waiters, usual.streams, usual.connection_shares)),
        f"| {usual.threads_of_session} | {usual.threads_of_session} | {usual.threads_of_agents} |",
    ):
        assert sentence in " ".join(told.split())


def test_every_frame_of_a_terminal_is_documented() -> None:
    assert names("http", "Terminals") == set(re.findall(r'"type":"(\w+)"', terminal.__doc__ or ""))


def test_every_metric_is_documented() -> None:
    used = set(re.findall(r'"(mas_[a-z_]+)"', written("src/mas/http/metrics.py")))
    assert {row[0].strip("`") for row in rows(PARTS["metrics"].whole())} == used
    assert "`session`" in next(row for row in rows(PARTS["metrics"].whole()) if "mas_session_processes" in row[0])[2]


def test_every_kind_of_event_is_documented_with_its_fields() -> None:
    headings = re.findall(r"^### (\w+)$", page("events"), re.MULTILINE)
    assert headings == list(KINDS)
    shapes = described()
    assert list(shapes) == headings
    found = added()
    for kind, fields in shapes.items():
        assert names("events", kind) == fields, kind
        # Those of launchers are in no call that could be found here.
        assert kind in ("agent", "network") or found[kind] == fields, kind


def described() -> dict[str, set[str]]:
    """The fields that the API describes for each kind of event, but for those that all have."""
    own = {str(field.alias) for field in EventFields.model_fields.values()}
    return {
        get_args(event.model_fields["event"].annotation)[0]: {
            str(field.alias) for name, field in event.model_fields.items() if name != "event"
        }
        - own
        for event in EVENTS
    }


def added() -> dict[str, set[str]]:
    """The fields that the code gives to each kind of event it adds."""
    found: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for text in sources("src/mas/service", "src/mas/store", "src/mas/bootstrap.py"):
        tree = ast.parse(text)
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            kind = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
            if isinstance(call.func, ast.Attribute) and call.func.attr == "add" and kind in KINDS:
                found[str(kind)] |= {name for keyword in call.keywords for name in _keywords(keyword, tree)}
    return found


def _keywords(keyword: ast.keyword, tree: ast.Module) -> set[str]:
    """The names that an argument gives, as they are on the wire; of `**name`, the keys of what `name` is made of."""
    if keyword.arg:
        return {camel(keyword.arg)}
    given = ast.unparse(keyword.value)
    made = [
        node.value for node in ast.walk(tree) if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == given
    ]
    dicts = [node for value in made for node in ast.walk(value) if isinstance(node, ast.Dict)]
    return {str(key.value) for node in dicts for key in node.keys if isinstance(key, ast.Constant)}


def test_the_events_of_an_agent_have_the_documented_fields() -> None:
    with short_directory() as root:
        layout, session_id = Layout(root), new_id()
        workspace = Workspace(layout)
        workspace.prepare()
        workspace.create(session_id)
        workspace.furnish(session_id)
        os.mkdir(layout.events)
        logs = AgentLogs(layout.session(session_id).root, "21")
        logs.event("start", pid=1, launcher=2, program="cat", sources=["hooks"])
        logs.state("hooks", "blocked", "permission", "rm", decides=True)
        logs.event("exit", status=-9)
        found = Events(layout, lambda: NOW).read(OLDEST, 10).events
    assert {event.event for event in found} == {"agent"}
    assert {name for event in found for name in event.details} == names("events", "agent")
    EventFieldsPage.model_validate({"events": [*map(event_fields, found)], "last": "", "gap": False})


def test_every_state_is_documented() -> None:
    assert names("states", "Sessions") == set(Status)
    assert set(Gone) <= words(section("states", "Sessions"))
    assert names("states", "Agents") == set(State)
    assert names("states", "Sources") == {*SOURCES, COMPOSER, "launcher", "tmux", "none"}
    assert names("states", "Messages") == set(DeliveryState)
