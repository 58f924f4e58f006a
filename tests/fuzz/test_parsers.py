"""Every parser of what agents and people write, on few inputs that are the same each time; `make fuzz` tries many."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fuzz.files import ENTRY, FILE, INTENT, LINK, METADATA, NOTE, SECOND_NAME, SERVER, index_of
from tests.fuzz.ground import ID, PARSERS, Ground, Parser
from tests.fuzz.properties import try_many, try_one
from tests.fuzz.shapes import DEEP
from tests.site import short_directory

_FEW = 30
_READ_AS_JSON = (
    *(
        "index",
        "metadata",
        "session-config",
        "legacy-config",
        "workspace-config",
        "intent",
        "archive-note",
        "agent-report",
    ),
    *("request-key", "probed", "server-info", "agent-events", "events", "hook-payload", "terminal-frame"),
    *("claude-transcript", "codex-transcript", "gemini-transcript"),
)


def changed(body: dict[str, Any], **fields: Any) -> bytes:
    return json.dumps({**body, **fields}, separators=(",", ":")).encode()


# What some parser once tripped over.
FOUND = {
    "a number that is none": ("index", index_of(changed(ENTRY, agents=float("inf")))),
    "a line longer than what is looked at": ("journal", b"%s:deleted:%s\n" % (ID.encode(), b"1" * 5000)),
    "a size of thousands of digits": ("size", b"1" * 5000 + b"MiB"),
    "an entry that cannot be read": ("index", index_of(changed(ENTRY, status=[]))),
    "a name that is no text": ("metadata", changed(METADATA, name=["x"])),
    "a reason that is no text": ("metadata", changed(METADATA, reason={})),
    "a socket that is no text": ("metadata", changed(METADATA, tmuxSocket=5)),
    "an agent that is a path": ("metadata", changed(METADATA, agents=[{**METADATA["agents"][0], "id": "../x"}])),
    "an agent without a role": ("metadata", changed(METADATA, agents=[{**METADATA["agents"][0], "role": None}])),
    "a time that is none": ("metadata", changed(METADATA, lastActivity="+")),
    "an account that is no text": ("metadata", changed(METADATA, isolation={**METADATA["isolation"], "account": 5})),
    "an intent of another session": ("intent", changed(INTENT, session_id=INTENT["session_id"].replace("0", "f"))),
    "a verb that is no text": ("intent", changed(INTENT, verb=["start"])),
    "a note of another session": ("archive-note", changed(NOTE, session_id=NOTE["session_id"].replace("0", "f"))),
    "a count that is no number": ("archive-note", changed(NOTE, agents="x")),
    "a file that lies above": ("archive-list", json.dumps([["../../evil", FILE, "x"]]).encode()),
    "a file behind a link": ("archive-list", json.dumps([["up", LINK, ".."], ["up/evil", FILE, "x"]]).encode()),
    "a second name of a file": ("archive-list", json.dumps([["x", SECOND_NAME, "../some.tar.zst"]]).encode()),
    "a control group that ends in the middle": ("control-groups", b"/a\0b"),
    "a run that begins deep down": ("agent-events", b'\n{"event":"start","a":' + b"[" * DEEP + b"\n"),
    "a server that is a list": ("server-info", b"[]"),
    "a server that is every process": ("server-info", changed(SERVER, pid=-1)),
    "a server without end": ("server-info", changed(SERVER, pid=float("inf"))),
    "a key of no session": ("request-key", b'{"request":"x","sessionId":"../..","done":true}'),
    "a number of a team without end": ("team-files", b"a=" + b"1" * 5000),
    "a number of a provider without end": ("provider-file", b"a=" + b"1" * 5000),
    **{f"deep JSON as {name}": (name, b"[" * DEEP) for name in _READ_AS_JSON},
    **{f"deep TOML as {name}": (name, b"a=" + b"[" * DEEP) for name in ("team-files", "provider-file")},
}


@pytest.mark.parametrize("parser", PARSERS.values(), ids=PARSERS)
def test_a_parser_holds_what_it_promises_whatever_it_reads(parser: Parser) -> None:
    try_many(parser, _FEW)


@pytest.mark.parametrize(("name", "data"), FOUND.values(), ids=FOUND)
def test_what_was_found_once_is_not_found_again(name: str, data: bytes) -> None:
    with short_directory() as directory:
        try_one(PARSERS[name], Ground(directory), data)
