"""Identifiers: what a session, agent, unit or name may be called, and how people refer to a session."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NewType

from mas.model.errors import BadInput, NoSession

SessionId = NewType("SessionId", str)

PREFIX_LENGTH = 8

_UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_UUID_START = re.compile(r"[0-9a-f-]{4,36}")
_AGENT = re.compile(r"[0-9]{2}")
_UNIT = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_NAME_LIMIT = 64
_SHOWN_LIMIT = 60


def is_session_id(text: str) -> bool:
    return _UUID4.fullmatch(text) is not None


def parse_session_id(text: str) -> SessionId:
    """`text` as a full lower-case UUIDv4, or `BadInput`."""
    if not is_session_id(text):
        raise BadInput(f"Not a session id: {shown(text)} (a full lower-case UUIDv4 is needed)", "mas list")
    return SessionId(text)


def tmux_name(session_id: str) -> str:
    return f"mas-{session_id[:PREFIX_LENGTH]}"


def identity(device: int, inode: int) -> str:
    """What tells a workspace from every copy of it, by its directory of sessions; moved, it stays the same."""
    return f"{device:x}-{inode:x}"


def find_session(reference: str, known: Iterable[str]) -> SessionId:
    """The one session that `reference` means: a UUID, a unique prefix of 4 or more, or `mas-xxxxxxxx`."""
    wanted = reference.removeprefix("mas-")
    if not _UUID_START.fullmatch(wanted):
        raise BadInput(
            f"Not a session id: {shown(reference)} (a UUID, 4 or more of its first characters, or mas-xxxxxxxx)",
            "mas list",
        )
    matches = [SessionId(session_id) for session_id in known if session_id.startswith(wanted)]
    if not matches:
        raise NoSession(reference)
    if len(matches) > 1:
        raise BadInput(f"{reference} could be any of {', '.join(sorted(matches)[:5])}", "mas list")
    return matches[0]


def is_agent_id(text: str) -> bool:
    return _AGENT.fullmatch(text) is not None


def parse_agent_id(text: str) -> str:
    if not is_agent_id(text):
        raise BadInput(f"Not an agent id: {shown(text)} (two digits, such as 00 or 21)")
    return text


def parse_unit_name(text: str) -> str:
    """A unit name starts with a letter, so that neither tmux nor a reader takes it for a number."""
    if not _UNIT.fullmatch(text):
        raise BadInput(f"Not a unit name: {shown(text)} (a-z first, then a-z 0-9 _ -, 32 at most)")
    return text


def parse_name(text: str) -> str:
    """A name people gave: any script, one line, no control characters, not an option."""
    if not text or len(text) > _NAME_LIMIT or not text.isprintable() or text != text.strip() or text[0] == "-":
        raise BadInput(f"Not a name: {shown(text)} (1 to {_NAME_LIMIT} printable characters, no '-' or space first)")
    return text


def shown(text: str) -> str:
    """`text` quoted for a message: escaped and never long."""
    return repr(text if len(text) <= _SHOWN_LIMIT else text[:_SHOWN_LIMIT] + "…")
