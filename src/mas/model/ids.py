"""Identifiers: what a session, agent, unit or name may be called, and how people refer to a session."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from typing import NewType

from mas.model.errors import BadInput, NoSession

SessionId = NewType("SessionId", str)

PREFIX_LENGTH = 8

UUID4 = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
_UUID4 = re.compile(UUID4)
_UUID_START = re.compile(r"[0-9a-f-]{4,36}")
_LIKE_AN_ID = re.compile(r"(mas-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|mas-[0-9a-f]{8}|[0-9]{2}", re.IGNORECASE)
AGENT = re.compile(r"[0-9]{2}")
UNIT = re.compile(r"[a-z][a-z0-9_-]{0,31}")
LONGEST_NAME = 64
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
    """What distinguishes a workspace from its copies: its directory of sessions. A move does not change it."""
    return f"{device:x}-{inode:x}"


def find_session(reference: str, known: Iterable[tuple[str, str | None]]) -> SessionId:
    """The one session that `reference` means, of those `known` by id and name.

    It is a UUID, a name, a unique prefix of 4 or more, or `mas-xxxxxxxx`. A full UUID never means a name. A word that
    is the name of one session and the start of another's id means neither: nothing is done to the wrong one.
    """
    wanted = parse_reference(reference).lower()
    if is_session_id(wanted):
        matches = {session_id: name for session_id, name in known if session_id == wanted}
    else:
        start = wanted.removeprefix("mas-")
        is_start = _UUID_START.fullmatch(start) is not None
        matches = {
            session_id: name
            for session_id, name in known
            if name == reference or (is_start and session_id.startswith(start))
        }
    if not matches:
        raise NoSession(reference)
    if len(matches) > 1:
        some = (f"{one} (named {name})" if name else one for one, name in sorted(matches.items())[:5])
        raise BadInput(f"{reference} could be any of {', '.join(some)}", "mas list; use a full id")
    return SessionId(next(iter(matches)))


def parse_reference(text: str) -> str:
    """`text`, if it can mean a session at all; never what could be a path."""
    if not is_name(text) or "/" in text or text in (".", ".."):
        raise BadInput(
            f"Not a session: {shown(text)} (a name, a UUID, 4 or more of its first characters, or mas-xxxxxxxx)",
            "mas list",
        )
    return text


def is_agent_id(text: str) -> bool:
    return AGENT.fullmatch(text) is not None


def parse_agent_id(text: str) -> str:
    if not is_agent_id(text):
        raise BadInput(f"Not an agent id: {shown(text)} (two digits, such as 00 or 21)")
    return text


def parse_unit_name(text: str) -> str:
    """A unit name starts with a letter, so that neither tmux nor a reader takes it for a number."""
    if not UNIT.fullmatch(text):
        raise BadInput(f"Not a unit name: {shown(text)} (a-z first, then a-z 0-9 _ -, 32 at most)")
    return text


def parse_name(text: str) -> str:
    """A name people gave: any script, one line, no control characters, not an option."""
    if not is_name(text):
        raise BadInput(f"Not a name: {shown(text)} (1 to {LONGEST_NAME} printable characters, no '-' or space first)")
    return text


def parse_new_name(text: str) -> str:
    """A name for a session from now on: not one that an address, a command or a person would take for something else.

    Sessions from before this rule keep such names.
    """
    parse_name(text)
    if _LIKE_AN_ID.fullmatch(text):
        raise BadInput(f"Not a session's name: {shown(text)} (it looks like the id of a session or of an agent)")
    if ":" in text or "/" in text or text in (".", ".."):
        raise BadInput(f"Not a session's name: {shown(text)} (a name has no ':' and no '/', and is not '.' or '..')")
    return text


def near_name(text: str) -> str | None:
    """A name for a session that is as near to `text` as one can be; None if none is."""
    kept = "".join(character for character in text if character.isprintable())
    kept = kept.replace(":", "-").replace("/", "-").strip().lstrip("-")[:LONGEST_NAME].strip()
    try:
        return parse_new_name(kept)
    except BadInput:
        return None


def free_name(name: str, taken: Container[str | None]) -> str:
    """`name`, or if another session has it the first of `name-2`, `name-3`, … that is free."""
    number, found = 1, name
    while found in taken:
        number += 1
        end = f"-{number}"
        found = name[: LONGEST_NAME - len(end)].rstrip() + end
    return found


def is_name(text: str) -> bool:
    return 0 < len(text) <= LONGEST_NAME and text.isprintable() and text == text.strip() and text[0] != "-"


def shown(text: str) -> str:
    """`text` quoted for a message: escaped and never long."""
    return repr(text if len(text) <= _SHOWN_LIMIT else text[:_SHOWN_LIMIT] + "…")
