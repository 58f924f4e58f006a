"""The files of a workspace and of its sessions."""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import re
import stat
import tarfile
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, cast

from zstandard import ZstdCompressor

from mas.model.catalog import TeamView
from mas.model.errors import Corrupt
from mas.model.event import Event
from mas.model.ids import is_agent_id, is_session_id
from mas.model.launch import LaunchPlan, Sign, StatePlan
from mas.model.message import Delivery, DeliveryState, Message
from mas.model.run import Run
from mas.model.server import ServerInfo
from mas.model.session import Session, Status
from mas.model.state import AgentState, fold
from mas.model.teamfile import parse_team_file, shipped_teams, team_file
from mas.pane.hooks import _Clerk
from mas.providers.demo import read_place
from mas.providers.format import Provider, read_provider
from mas.providers.provider import Program
from mas.service.agents.restart import _begun_at
from mas.service.isolation.limits import _groups
from mas.service.lifecycle.migrate import _old_run
from mas.service.upkeep.prune import age_of
from mas.service.world import World
from mas.settings import Settings, load_settings
from mas.store.agent.agentlog import ENTERED, AgentLog, has_called, last_run, passed
from mas.store.agent.answers import Request, waiting
from mas.store.agent.directory import AgentPlace
from mas.store.agent.hook_spool import spool_path
from mas.store.agent.hooks import note_hook
from mas.store.agent.launch_plan import launch_path, read_plan, write_plan
from mas.store.agent.self_reports import last_report
from mas.store.files.pack import unpack_tree
from mas.store.files.shellfile import parse_pairs, quote_pairs
from mas.store.files.tree import remove_tree, walk
from mas.store.server import address
from mas.store.server.address import Address
from mas.store.server.presence import Presence
from mas.store.server.secrets import Secrets
from mas.store.session.logs import Logs
from mas.store.session.messages import Messages
from mas.store.session.session_files import Records
from mas.store.workspace.archives import ArchiveInfo, Archives
from mas.store.workspace.events import OLDEST, Events
from mas.store.workspace.idempotency import Keys
from mas.store.workspace.intents import Intent, Intents
from mas.store.workspace.machine import Probed
from mas.store.workspace.registry import IndexEntry, Registry, entry_of
from mas.store.workspace.team_files import Teams
from tests.fuzz.ground import AGENT, ID, NOW, PARSERS, Ground, is_typed
from tests.site import REPOSITORY, short_directory


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _world(ground: Ground) -> World:
    """As much of a world as has files."""
    return cast(World, SimpleNamespace(layout=ground.layout))


OTHER = ID.replace("0b0c", "0b0d")
_NOWHERE = "/nowhere"


def _journal_line(word: str) -> str:
    return f"{ID}:{word}:{NOW}\n"


def index_of(*entries: bytes) -> bytes:
    """An index as MAS writes it."""
    lines = b",".join(b"\n" + entry for entry in entries)
    return b'{"version":"1.0","sessions":[' + lines + b'\n],"lastUpdated":"%b"}\n' % NOW.encode()


ENTRY: dict[str, Any] = {
    "sessionId": ID,
    "tmuxSession": f"mas-{ID[:8]}",
    "status": "stopped",
    "createdAt": NOW,
    "lastActivity": NOW,
    "workingDir": _NOWHERE,
    "name": "a name",
    "agents": 13,
    "tmuxSocket": None,
    "tier": "A",
}  # fmt: skip
METADATA: dict[str, Any] = {
    "version": 1, "sessionId": ID, "sessionName": f"mas-{ID[:8]}", "name": "a name", "workingDir": _NOWHERE,
    "unitDir": _NOWHERE, "workflowsDir": _NOWHERE, "status": "stopped", "createdAt": NOW, "startedAt": NOW,
    "lastActivity": NOW, "tmuxSocket": "/tmp/x", "origin": None, "reason": None, "limits": {"memory": "2 GiB"},
    "stoppedAt": NOW, "lost": True,
    "isolation": {"tier": "A", "how": "bwrap", "notEnforced": ["x"], "notAvailable": ["y"],
                  "account": None, "policy": {"ports": [1]}},
    "agents": [{"id": AGENT, "unit": "meta", "role": "boss", "provider": "shell", "model": None, "pane": "%1"}],
}  # fmt: skip
RUN = json.dumps(
    {
        "version": 1,
        "agents": {
            "metaManager": {"id": "00", "prompt": "x", "command": "cat", "limits": {"cpu": 1.5}},
            "units": [
                {"name": "b", "manager": {"id": "20", "model": "m"}, "workers": [{"id": "21", "restart": "never"}]}
            ],
        },
        "team": "pair",
        "routing": {"20": ["21"]},
        "restart": "always",
        "restartLimit": 3,
        "name": "ä name",
        "provider": "shell",
        "env": {"A": "b"},
        "lazyUnits": True,
        "isolation": {"enforce": "auto", "read": ["~/x"], "ports": [80], "runAs": "nobody"},
        "limits": {"memory": "2GiB", "disk": 1 << 40, "agent": {"files": 9, "fileSize": "1.5KiB"}},
    }
)


_LINE = json.dumps(ENTRY, separators=(",", ":")).encode()


@PARSERS.of(
    index_of(),
    index_of(_LINE),
    index_of(_LINE, _LINE.replace(ID.encode(), OTHER.encode())),
    json.dumps({"sessions": [ENTRY]}),
)
def index(ground: Ground, data: bytes) -> None:
    """An index that can be read keeps all it held when another session is added; one that cannot stays as it is."""
    registry = Registry(ground.layout, lambda: NOW)
    ground.put(ground.layout.registry_index, data)
    ground.put(ground.layout.journal, b"")
    registry.looks_sound()
    added = IndexEntry("f0000000-0000-4000-8000-000000000000", Status.STOPPED, NOW, NOW)
    try:
        before = registry.read()
    except Corrupt:
        # What cannot be read may still be in a shape that can be added to; it is never replaced by less.
        now = _content(ground.layout.registry_index)
        with suppress(Corrupt):
            registry.put(added)
            return
        assert _content(ground.layout.registry_index) == now
        return
    assert is_typed(list[IndexEntry], before)
    registry.put(added)
    assert registry.read() == [entry for entry in before if entry.session_id != added.session_id] + [added]


@PARSERS.of(_journal_line("active") + _journal_line("stopped") + _journal_line("deleted"), "")
def journal(ground: Ground, data: bytes) -> None:
    """A journal is read whole or not at all, and can always be mended without losing a line that is one."""
    registry = Registry(ground.layout, lambda: NOW)
    ground.put(ground.layout.journal, data)
    ground.put(ground.layout.registry_index, index_of())
    try:
        changes = registry.changes()
    except Corrupt:
        kept = registry.rebuild(list)
        assert [_content(path) for path in kept] == [data]
        changes = registry.changes()
        for path in kept:
            os.unlink(path)
    else:
        assert len(changes) == data.count(b"\n")
        assert "".join(":".join(change) + "\n" for change in changes).encode() == data
    assert registry.journal_is_sound(may_be_empty=True)


@PARSERS.of(json.dumps(METADATA, indent=2) + "\n", json.dumps({**METADATA, "isolation": None, "limits": {}}))
def metadata(ground: Ground, data: bytes) -> None:
    """What is read of a session is what its type says, so that nothing trips over it later; saved, it is the same."""
    records = Records(ground.layout)
    ground.put(ground.session.metadata, data)
    session = records.load(ID)
    assert is_typed(Session, session)
    assert all(is_agent_id(agent.id) for agent in session.agents)
    registry = Registry(ground.layout, lambda: NOW)
    ground.put(ground.layout.registry_index, index_of())
    ground.put(ground.layout.journal, b"")
    registry.put(entry_of(session))
    assert registry.read() == [entry_of(session)]
    age_of(session.last_activity, NOW)
    records.save(session)
    assert records.load(ID) == session
    assert records.is_whole(ID)


@PARSERS.of(
    quote_pairs({"SESSION_ID": ID, "STATUS": "active", "CREATED_AT": NOW, "TMUX_SOCKET": "it's", "UNIT_DIR": ""})
)
def session_file(ground: Ground, data: bytes) -> None:
    """Whatever `.session` says, the session can be rebuilt from what is left, and kept."""
    records = Records(ground.layout)
    ground.put(ground.session.metadata, json.dumps(METADATA).encode())
    ground.put(ground.session.record, data)
    records.damage(records.load(ID))
    rebuilt = records.rebuild(ID, {}, NOW)
    assert is_typed(Session, rebuilt)
    age_of(rebuilt.created_at, NOW)
    pairs = records.pairs(ID)
    records.save(rebuilt)
    assert records.load(ID) == rebuilt
    assert parse_pairs(quote_pairs(pairs)) == pairs


@PARSERS.of(RUN)
def session_config(ground: Ground, data: bytes) -> None:
    """The configuration of a session names agents, or is damaged; kept, it is the same."""
    records = Records(ground.layout)
    ground.put(ground.session.config, data)
    ground.put(ground.session.metadata, json.dumps(METADATA).encode())
    read_place(AGENT, ground.session.root)
    run = records.load_run(ID)
    assert is_typed(Run, run)
    assert run.team.units
    records.save_run(ID, run)
    assert records.load_run(ID) == run._replace(isolation=run.policy, limits=run.all_limits)


@PARSERS.of('{"agents":{"units":[{"name":"b","manager":{"id":"20"}}]}}')
def legacy_config(ground: Ground, data: bytes) -> None:
    """An old configuration that cannot be understood is the default team's."""
    ground.put(ground.session.config, data)
    assert is_typed(Run, _old_run(ground.session.root))


@PARSERS.of(
    '{"provider":"shell","recover":true,"server":"auto","tmux":{"server":"session"},"isolation":"require",'
    '"limits":{"memory":"1GiB","agent":{"cpu":2}}}'
)
def workspace_config(ground: Ground, data: bytes) -> None:
    ground.put(ground.layout.at(".masrc"), b"")
    ground.put(ground.layout.at("config.json"), data)
    assert is_typed(Settings, load_settings(ground.layout.root))


INTENT: dict[str, Any] = {"session_id": ID, "verb": "start", "pid": 1, "at": NOW, "socket": None, "agent": None}


@PARSERS.of(json.dumps(INTENT), '{"session_id')
def intent(ground: Ground, data: bytes) -> None:
    """An intent is one of its own session, or none; none was never acted upon."""
    ground.put(os.path.join(ground.layout.intents, ID), data)
    intents = Intents(ground.layout, lambda: NOW)
    for operation in intents.unfinished():
        assert is_typed(Intent, operation.intent)
        assert operation.intent.session_id == ID
        operation.done()
    assert intents.sessions() == set()


NOTE = ArchiveInfo(ID, NOW, NOW, "name", 13, 99)._asdict()


@PARSERS.of(json.dumps(NOTE))
def archive_note(ground: Ground, data: bytes) -> None:
    """An archive is listed under its own name, whatever the note beside it says."""
    archives = Archives(ground.layout)
    ground.put(archives.path(ID), b"xyz")
    ground.put(os.path.join(ground.layout.archive, f"{ID}.json"), data)
    (info,) = archives.list()
    assert is_typed(ArchiveInfo, info)
    assert info.session_id == ID
    age_of(info.archived_at, NOW)


def _archive(*members: tuple[str, bytes, bytes | str]) -> bytes:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, kind, content in members:
            member = tarfile.TarInfo(name)
            member.type = kind
            if isinstance(content, str):
                member.linkname = content
            else:
                member.size = len(content)
            tar.addfile(member, io.BytesIO(content) if isinstance(content, bytes) else None)
    return plain.getvalue()


_TAR = _archive(
    ("unit", tarfile.DIRTYPE, b""),
    ("unit/file", tarfile.REGTYPE, b"x" * 600),
    ("unit/link", tarfile.SYMTYPE, "../.."),
    ("ü" * 120, tarfile.REGTYPE, b""),
)


_KINDS = (
    *(tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE),
    *(tarfile.BLKTYPE, tarfile.CONTTYPE, tarfile.AREGTYPE, tarfile.GNUTYPE_SPARSE),
)
FILE, DIRECTORY, LINK, SECOND_NAME = range(4)


@PARSERS.of(json.dumps([["unit", DIRECTORY, ""], ["unit/file", FILE, "text"], ["unit/link", LINK, "../.."]]))
def archive_list(ground: Ground, data: bytes) -> None:
    """The same, whatever its members are called, are and lead to; their headers are sound."""
    members: list[tuple[str, bytes, bytes | str]] = []
    for name, number, text in _listed(data):
        kind = _KINDS[number % len(_KINDS)]
        members.append((name, kind, text if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else os.fsencode(text)))
    archive(ground, ZstdCompressor(level=1).compress(_archive(*members)))


def _listed(data: bytes) -> Iterator[tuple[str, int, str]]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return
    for item in found if isinstance(found, list) else []:
        if isinstance(item, list) and is_typed(tuple[str, int, str], tuple(item)):
            # Half of a surrogate pair cannot be written into an archive.
            name, text = (word.encode("utf-8", "replace").decode() for word in (item[0], item[2]))
            yield name, item[1], text


@PARSERS.of(_TAR)
def archive_members(ground: Ground, data: bytes) -> None:
    """The same of what is inside an archive."""
    archive(ground, ZstdCompressor(level=1).compress(data))


@PARSERS.of(ZstdCompressor(write_checksum=True).compress(_TAR))
def archive(ground: Ground, data: bytes) -> None:
    """What an archive brings back lies below its place, and is nothing but files, directories and links."""
    target = ground.layout.at("unpacked")
    remove_tree(target)
    os.mkdir(target)
    path = ground.put(ground.layout.at("some.tar.zst"), data)
    before = _beside(ground)
    try:
        unpack_tree(path, target, None)
        for entry in walk(target, past_closed=True):
            assert (
                stat.S_ISREG(entry.info.st_mode) or stat.S_ISDIR(entry.info.st_mode) or stat.S_ISLNK(entry.info.st_mode)
            )
    finally:
        assert _beside(ground) == before
        assert _content(path) == data
        # It may be shut even for its owner.
        remove_tree(target)


def _beside(ground: Ground) -> list[str]:
    """What lies where an archive must not reach."""
    return sorted(os.listdir(ground.layout.root) + os.listdir(os.path.dirname(ground.layout.root)))


_EVENTS = [
    {"at": NOW, "event": "session", "sessionId": ID, "status": "active"},
    {"at": NOW, "event": "agent", "sessionId": ID, "agent": AGENT, "state": "idle", "kind": ""},
    {"at": NOW, "event": "warning", "text": "x"},
]


@PARSERS.of("".join(f"\n{json.dumps(event)}\n" for event in _EVENTS))
def events(ground: Ground, data: bytes) -> None:
    """Read page by page, events come to an end, each once; one that is added then is read."""
    remove_tree(ground.layout.events)
    ground.put(os.path.join(ground.layout.events, "0000000007.jsonl"), data)
    store = Events(ground.layout, lambda: NOW)
    found: list[Event] = []
    after = OLDEST
    while (page := store.read(after, 2)).events:
        assert not page.gap or after == OLDEST
        found += page.events
        after = page.last
    assert all(is_typed(Event, event) for event in found)
    assert len({event.id for event in found}) == len(found)
    store.add("warning", text="new")
    assert [event.details for event in store.read(after, 9).events][-1:] == [{"text": "new"}]


@PARSERS.of("0000000007.0", "0000000007.1", "0", "9999999999.99999999999999999")
def event_id(ground: Ground, data: bytes) -> None:
    ground.put(os.path.join(ground.layout.events, "0000000007.jsonl"), b'\n{"at":"x","event":"warning"}\n')
    page = Events(ground.layout, lambda: NOW).read(data.decode("utf-8", "surrogateescape"), 5)
    assert is_typed(tuple[Event, ...], page.events)


_RUN = [
    {"at": NOW, "event": "start", "pid": 5, "argv": ["x"]},
    {"at": NOW, "event": "state", "source": "osc7501", "state": "blocked", "kind": "permission", "text": "x"},
    {"at": NOW, "event": "hook", "name": "Stop", "prompt": "[MAS id=m-0123456789abcdef]"},
    {"at": NOW, "event": "entered", "id": "m-0123456789abcdef"},
    {"at": NOW, "event": "exit", "status": 1, "reason": "x", "limit": "memory"},
]


@PARSERS.of("".join(json.dumps(event, separators=(",", ":")) + "\n" for event in _RUN))
def agent_events(ground: Ground, data: bytes) -> None:
    """An agent's event file gives a state, whatever is in it, and what is added to it counts."""
    path = ground.put(os.path.join(ground.session.logs, "agent-00.events.jsonl"), data)
    assert is_typed(AgentState, fold(last_run(path), ("osc7501", "hooks")))
    passed(path, ENTERED, "m-0123456789abcdef")
    has_called(path)
    assert is_typed(str, _begun_at(_world(ground), ID, AGENT))
    with AgentLog(path) as log:
        if data and not data.endswith(b"\n"):
            log.add({"event": "ends what was cut off"})
        log.add({"at": NOW, "event": "start"})
        log.add({"at": NOW, "event": "state", "source": "hooks", "state": "idle", "kind": "", "text": ""})
    assert fold(last_run(path), ("hooks",)).state == "idle"


def _hooked(ground: Ground, *signs: Sign) -> None:
    plan = LaunchPlan(argv=("x",), env={}, states=StatePlan(sources=("hooks",), hook_map=signs))
    write_plan(launch_path(ground.session.root, AGENT), plan)


@PARSERS.of(
    '{"hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"ls"},"prompt":"x"}',
    '{"message":"\\ud800","session_id":5,"error":null}',
)
def hook_payload(ground: Ground, data: bytes) -> None:
    """A hook is noted in lines of JSON, whatever the program says with it; of its name too nothing is trusted."""
    _hooked(
        ground,
        Sign(match="Stop", state="idle"),
        Sign(match="Notification", state="blocked"),
        Sign(match="PermissionRequest", state="blocked", kind="permission"),
    )
    path = os.path.join(ground.session.logs, f"agent-{AGENT}.events.jsonl")
    ground.put(path, b'{"event":"start"}\n')
    for name in ("Stop", "Notification", "PermissionRequest", os.fsdecode(data[:99])):
        assert note_hook(ground.session.root, AGENT, name, data) is None
    noted = [json.loads(line) for line in _content(path).splitlines()]
    assert [event["name"] for event in noted if event["event"] == "hook"][:1] == ["Stop"]


@PARSERS.of('Stop\n{"prompt":"x"}')
def spooled_hook(ground: Ground, data: bytes) -> None:
    """Whatever an agent leaves for its launcher is removed and recorded, and never becomes a question by itself."""
    _hooked(ground, Sign(match="Stop", state="idle"))
    path = ground.put(os.path.join(ground.session.logs, f"agent-{AGENT}.events.jsonl"), b'{"event":"start"}\n')
    left = ground.put(os.path.join(spool_path(ground.session.root, AGENT), "0" * 32), data)
    directory = os.open(os.path.dirname(left), os.O_RDONLY)
    try:
        clerk = _Clerk(ground.session.root, AGENT, directory, -1, os.stat(directory))
        assert clerk._note(os.path.basename(left))
        assert not clerk._waiting
        assert not os.listdir(directory)
    finally:
        os.close(directory)
    assert [json.loads(line)["event"] for line in _content(path).splitlines()][:2] == ["start", "hook"]


@PARSERS.of(f"/sys/fs/cgroup/mas/{ID}\n")
def control_groups(ground: Ground, data: bytes) -> None:
    """Nothing of a list that agents may have written is taken for a control group where the session has none."""
    ground.put(os.path.join(ground.session.private, "groups"), data)
    assert _groups(_world(ground), ID) == ()


@PARSERS.of(f"{ID}\n")
def conversation(ground: Ground, data: bytes) -> None:
    """A conversation is called by an id, or is none."""
    place = AgentPlace(ground.session, AGENT)
    ground.put(os.path.join(place.path, "uuid"), data)
    name = place.uuid()
    assert not name or is_session_id(name)
    assert name == ID or data.strip() != ID.encode() or len(data) > 64


# The launcher says so in its pane, and the agent is not started.
@PARSERS.of(
    b"=cat\0=\0\0A=b\0\0sources=hooks\0isolation=A bwrap\0limits=1\0\0=cat\0=-c",
    b'2\n{"argv":["cat"],"env":{"A":"b"},"states":{"hook_map":[{"match":"Stop","state":"idle"}]},"limits":{"files":5}}',
    refusal=ValueError,
)
def launch(ground: Ground, data: bytes) -> None:
    """What is read of a launch file, of this version or the one before, is the same once it is written again."""
    path = ground.put(launch_path(ground.session.root, AGENT), data)
    plan = read_plan(path)
    write_plan(path, plan)
    assert read_plan(path) == plan


_TEAM = (
    'description = "x"\nrouting = "open"\nrestart = "always"\nrestart_limit = 2\n[limits]\nmemory = "1GiB"\n'
    '[isolation]\nread = ["/x"]\n[[units]]\nname = "meta"\n[[units.agents]]\nid = "00"\nrole = "x"\ncommand = "cat"\n'
)


@PARSERS.of(_TEAM, *(team_file(team) for team in shipped_teams()))
def team_files(ground: Ground, data: bytes) -> None:
    """A file that describes no team is shown as one with a problem; one that does can be written down the same."""
    ground.put(ground.layout.at("templates", "teams", "mine.toml"), data)
    (team,) = (team for team in Teams(ground.layout).all() if team.name == "mine")
    assert is_typed(TeamView, team)
    assert bool(team.problem) != bool(team.agent_count)
    if not team.problem:
        assert parse_team_file(tomllib.loads(team_file(team)), "mine") == team


_BUILTIN = os.path.join(REPOSITORY, "src", "mas", "providers", "builtin")
_TEMPLATES = {name: _content(os.path.join(_BUILTIN, "templates", name)) for name in os.listdir(f"{_BUILTIN}/templates")}


def state_plan_of(provider: Provider) -> StatePlan:
    """How the launcher knows the state of an agent with this provider."""
    return Program(("x",), status=provider.status, approve=provider.approve).state_plan()


@PARSERS.of(
    *(_content(os.path.join(_BUILTIN, name)) for name in sorted(os.listdir(_BUILTIN)) if name.endswith(".toml"))
)
def provider_file(ground: Ground, data: bytes) -> None:
    """A provider's file is understood or refused by name; the plan for its launcher can be made and kept."""
    for template, content in _TEMPLATES.items():
        ground.put(ground.layout.at("providers", "templates", template), content)
    name = (re.search(rb'\bid *= *"([a-z]+)"', data) or (b"", b"x"))[1].decode()
    provider = read_provider(ground.put(ground.layout.at("providers", f"{name}.toml"), data), name)
    plan = LaunchPlan(argv=("x",), env={}, states=state_plan_of(provider))
    path = launch_path(ground.session.root, AGENT)
    write_plan(path, plan)
    assert read_plan(path) == plan


def _database() -> bytes:
    with short_directory() as directory:
        ground = Ground(directory)
        messages = Messages(ground.layout, lambda: NOW, lambda *_: None)
        with messages.open(ID) as box:
            box.add(
                Message("m-0123456789abcdef", None, AGENT, "hello", NOW, (Delivery(AGENT, DeliveryState.QUEUED, NOW),))
            )
        with messages.shut(ID):
            return _content(messages.path(ID))


@PARSERS.of(_database())
def messages_database(ground: Ground, data: bytes) -> None:
    """A database that cannot be read is put aside and kept, and the session's messages go on."""
    messages = Messages(ground.layout, lambda: NOW, lambda *_: None)
    remove_tree(os.path.dirname(messages.path(ID)))
    os.mkdir(os.path.dirname(messages.path(ID)))
    ground.put(messages.path(ID), data)
    for _ in range(2):
        try:
            with messages.open(ID) as box:
                found, total = box.page(10)
                assert is_typed(tuple[list[Message], int], (found, total))
        except Corrupt:
            continue
    assert os.path.exists(messages.path(ID))


@PARSERS.of(json.dumps({"text": "done"}))
def agent_report(ground: Ground, data: bytes) -> None:
    ground.put(ground.session.at(".mas", "reports", AGENT), data)
    assert is_typed(str | None, last_report(ground.session, AGENT))


@PARSERS.of(json.dumps({"request": "x", "sessionId": ID, "done": True}))
def request_key(ground: Ground, data: bytes) -> None:
    """A key that cannot be read was of no request; one that can names a session."""
    path = os.path.join(ground.layout.server, "keys", hashlib.sha256(b"key").hexdigest())
    ground.put(path, data)
    with Keys(ground.layout).held("key", b"x") as key:
        assert is_typed(str | None, key.session_id)
        assert key.session_id is None or is_session_id(key.session_id)


@PARSERS.of(json.dumps({"key": "k", "found": {"tier": "A"}}))
def probed(ground: Ground, data: bytes) -> None:
    ground.put(os.path.join(ground.layout.private, "isolation.json"), data)
    assert is_typed(dict[str, str], Probed(ground.layout, "k").read())


SERVER = ServerInfo(7, "http://127.0.0.1:1", "/x", NOW, "0.1.0", 5.0)._asdict()


@PARSERS.of(json.dumps(SERVER))
def server_info(ground: Ground, data: bytes) -> None:
    presence = Presence(ground.layout, ground.layout.at("short"))
    presence.claim()
    try:
        ground.put(os.path.join(ground.layout.server, "server.json"), data)
        info = presence.find()
        assert is_typed(ServerInfo | None, info)
        assert info is None or info.pid > 1
    finally:
        presence.withdraw()


@PARSERS.of("http://127.0.0.1:8722\n", "https://x\n-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n")
def server_address(ground: Ground, data: bytes) -> None:
    ground.put(os.path.join(ground.layout.address, "url"), data)
    with open(os.path.join(ground.layout.address, "url"), "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert is_typed(Address | None, address.find(ground.session.root))
    address.first_certificate(os.path.join(ground.layout.address, "url"))


@PARSERS.of("ab" * 32 + "\n")
def secret(ground: Ground, data: bytes) -> None:
    """What is no secret admits no caller."""
    ground.put(os.path.join(ground.layout.server, "token"), data)
    assert re.fullmatch("[0-9a-f]{64}", Secrets(ground.layout).token())


@PARSERS.of("allow", "deny", "never")
def hook_answer(ground: Ground, data: bytes) -> None:
    """Nothing but the two words is an answer."""
    request = Request(ground.session.root, AGENT, NOW)
    try:
        (name,) = waiting(ground.session.root, AGENT)
        ground.put(ground.session.at(".mas", "answers", f"{name}.answer"), data)
        assert request.answer() == (data.decode() if data in (b"allow", b"deny") else "")
    finally:
        request.close()


@PARSERS.of(b"\x1b[31mred\x1b[0m\r\n\x1b]0;title\x07\xc3\xa9\n" * 3)
def log(ground: Ground, data: bytes) -> None:
    """A log is shown without anything that a terminal would obey."""
    path = ground.put(os.path.join(ground.session.logs, "agent-00.log"), data)
    text = Logs(ground.layout, lambda: NOW).tail(path, 5)
    assert text.count("\n") < 5
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)
