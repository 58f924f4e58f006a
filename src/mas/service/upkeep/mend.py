"""Mend: what a listing does about sessions that are not as the registry has them."""

from __future__ import annotations

import os
from contextlib import suppress

from mas.model.errors import Busy, Corrupt, MasError
from mas.model.ids import SessionId
from mas.model.session import Session, Status
from mas.service.agents.living import place_of
from mas.service.agents.team import close_team
from mas.service.lifecycle.restore import restored
from mas.service.lifecycle.stop import TMUX_GONE, set_status
from mas.service.world import World
from mas.store.files.atomic import disk_errors, set_aside
from mas.store.workspace.registry import IndexEntry, entry_of, known_of


def mend(world: World, damaged: list[IndexEntry], lost: list[SessionId]) -> tuple[dict[str, IndexEntry], list[str]]:
    """Mark damaged sessions, stop lost ones; answers the entries that changed and what people should know."""
    changed: dict[str, IndexEntry] = {}
    warnings = []
    for entry in damaged:
        warnings.append(f"Session {entry.session_id} is damaged: mas repair")
        if entry.status is Status.ERROR and world.records.is_called_damaged(SessionId(entry.session_id)):
            continue
        try:
            with disk_errors():
                changed[entry.session_id] = _mark_damaged(world, entry)
        except MasError as error:
            warnings.append(f"{entry.session_id}: {error.message}")
    for session_id in lost:
        try:
            # A listing must be had on a full disk too.
            with disk_errors():
                changed[session_id] = entry_of(_end_lost(world, session_id))
        except Busy:
            continue
        except MasError as error:
            warnings.append(f"{session_id}: {error.message}")
    return changed, warnings


def end_vanished(world: World, entries: list[IndexEntry]) -> None:
    """Somebody removed these directories; their agents must not go on working in nothing."""
    for entry in entries:
        if not world.layout.is_session(entry.session_id):
            close_team(world, SessionId(entry.session_id), entry.socket)
            world.events.add("warning", entry.session_id, text=f"The directory of session {entry.session_id} is gone")


def _end_lost(world: World, session_id: SessionId) -> Session:
    """A session whose tmux is gone: lost, or back again where the user asked for that.

    One that runs in another workspace, of which this one is a copy, was never lost: it is not ours to bring back.
    """
    with world.intents.begin(session_id, "lost", world.records.load(session_id).socket) as operation:
        session = world.records.load(session_id)
        place = place_of(world, session)
        if place and world.runtime.alive([place])[place] is not False:
            # Somebody restored it since it was looked at.
            operation.done()
            return session
        operation.no_return()
        other = close_team(world, session_id, session.socket)
        lost = (session.status is Status.ACTIVE or session.lost) and not other
        reason = f"it runs in another copy of this workspace: {other}" if other else session.reason
        session = set_status(world, session, Status.STOPPED, TMUX_GONE if lost else reason, lost)
        operation.done()
    if other:
        world.logs.session(session_id, reason or "")
        return session
    world.logs.session(session_id, TMUX_GONE)
    world.events.add("warning", session_id, text=f"The tmux session of session {session_id} was gone")
    return restored(world, session_id) if world.settings.recover else session


def _mark_damaged(world: World, entry: IndexEntry) -> IndexEntry:
    """Call the session `error` wherever that can still be written."""
    session_id = SessionId(entry.session_id)
    marked = entry._replace(status=Status.ERROR)
    try:
        with world.intents.begin(session_id, "damage") as operation:
            if world.records.is_whole(session_id):
                # Somebody mended it since it was looked at, or it could not be looked at then.
                operation.done()
                return entry
            try:
                session = world.records.load(session_id)
                record = world.layout.session(session_id).record
                if os.path.lexists(record):
                    set_aside(record, world.now())
                set_status(world, session, Status.ERROR)
            except (Corrupt, FileNotFoundError) as error:
                _call_damaged(world, entry, error)
            operation.done()
    except Busy:
        return entry
    return marked


def _call_damaged(world: World, entry: IndexEntry, error: Corrupt | FileNotFoundError) -> None:
    """Call a session `error` in `.session` and the registry: its `metadata.json` cannot be read."""
    if isinstance(error, Corrupt) and not error.is_newer:
        # A directory that cannot be written to is no reason not to list it as what it is.
        with suppress(OSError):
            world.records.call_damaged(SessionId(entry.session_id), known_of(entry), world.now())
    if entry.status is not Status.ERROR:
        world.registry.put(entry._replace(status=Status.ERROR))
