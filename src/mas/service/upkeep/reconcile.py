"""Reconcile: make the registry agree with the session directories and with tmux.

Differences are rare, so what corrects them is only imported when there are some.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from mas.model.errors import Archived, BadInput, Busy, Corrupt, MasError, NoSession
from mas.model.ids import SessionId, find_session, tmux_name
from mas.model.session import Status
from mas.runtime.runtime import Place
from mas.service.inspect.activity import last_activity
from mas.service.world import World
from mas.store.files.atomic import disk_errors, set_aside
from mas.store.layout import SessionPaths
from mas.store.workspace.registry import IndexEntry, entry_of, known_of


def entries_of(world: World) -> list[IndexEntry]:
    """The registry, readable: a damaged one is put aside and rebuilt first."""
    try:
        entries = world.registry.read()
        if world.registry.journal_is_sound(may_be_empty=not entries):
            return entries
    except Corrupt:
        pass
    rebuild_registry(world)
    return world.registry.read()


def rebuild_registry(world: World) -> list[str]:
    """Write the registry again from the session directories; returns which damaged files were kept."""
    kept = world.registry.rebuild(lambda: scan(world))
    for path in kept:
        world.events.add("warning", text=f"A damaged file was kept as {path} and rewritten")
    return kept


def scan(world: World) -> Iterator[IndexEntry]:
    """An entry for every session directory. What another process is still making is left to it."""
    try:
        known = {entry.session_id: entry for entry in world.registry.read()}
    except Corrupt:
        known = {}
    under_way = world.intents.sessions()
    for name in sorted(world.layout.directories()):
        session_id = SessionId(name)
        try:
            yield entry_of(world.records.load(session_id))
        except (Corrupt, NoSession):
            if name in known:
                yield known[name]._replace(status=Status.ERROR)
            elif name not in under_way:
                yield entry_of(world.records.rebuild(session_id, {}, world.now()))._replace(status=Status.ERROR)


def finish_work(world: World) -> list[str]:
    """Finish or undo what a killed process left half-done; returns what could not be finished."""
    with disk_errors():
        under_way = world.intents.sessions()
        if under_way or not world.registry.looks_sound():
            entries_of(world)
        world.registry.remove_unfinished()
        if not under_way:
            return []
        from mas.service.upkeep.unfinished import finish

        return finish(world)


def reconcile(world: World) -> tuple[list[IndexEntry], list[str]]:
    """The registry after one look at the directories and one at tmux, and what people should know."""
    entries = entries_of(world)
    under_way = world.intents.sessions()
    there = world.layout.directories()
    if ({entry.session_id for entry in entries} ^ there) - under_way:
        _end_vanished(world, [entry for entry in entries if entry.session_id not in there | under_way])
        rebuild_registry(world)
        entries = world.registry.read()
    at_rest = [entry for entry in entries if entry.session_id not in under_way]
    home = world.layout.home()
    places = {
        Place(entry.socket or "", tmux_name(entry.session_id), home): SessionId(entry.session_id)
        for entry in at_rest
        if entry.status is Status.ACTIVE
    }
    # tmux is asked first: meanwhile the files of the sessions are read.
    with world.runtime.looking(places) as found:
        damaged = {one.session_id: one for one in at_rest if not world.records.is_whole(SessionId(one.session_id))}
        entries = [_used(world, entry) for entry in entries]
        alive = found()
    lost, unseen = (
        [session_id for place, session_id in places.items() if alive[place] is how and session_id not in damaged]
        for how in (False, None)
    )
    changed, problems = correct(world, damaged, lost) if damaged or lost else ({}, [])
    warnings = [f"Could not ask tmux about session {session_id}; showing its last status" for session_id in unseen]
    return [changed.get(entry.session_id, entry) for entry in entries], warnings + problems


def _used(world: World, entry: IndexEntry) -> IndexEntry:
    """The entry with when the session was last used."""
    at = last_activity(world, entry.session_id, entry.status, entry.last_activity)
    return entry if at == entry.last_activity else entry._replace(last_activity=at)


def correct(
    world: World, damaged: dict[str, IndexEntry], lost: list[SessionId]
) -> tuple[dict[str, IndexEntry], list[str]]:
    """Mark damaged sessions, stop lost ones; returns the entries that changed and what people should know."""
    changed: dict[str, IndexEntry] = {}
    warnings = [f"Session {session_id} is damaged: mas repair" for session_id in damaged]
    steps = {session_id: partial(_mark_damaged, world, entry) for session_id, entry in damaged.items()}
    for session_id, step in (steps | {found: partial(_end_lost, world, found) for found in lost}).items():
        try:
            # A listing must be had on a full disk too.
            with disk_errors():
                changed[session_id] = step()
        except Busy:
            continue
        except MasError as error:
            warnings.append(f"{session_id}: {error.message}")
    return changed, warnings


def _end_vanished(world: World, entries: list[IndexEntry]) -> None:
    """Somebody removed these directories; their agents must not go on working in nothing."""
    from mas.service.agents.team import close_team

    for entry in entries:
        if not world.layout.is_session(entry.session_id):
            close_team(world, SessionId(entry.session_id), entry.socket)
            world.events.add("warning", entry.session_id, text=f"The directory of session {entry.session_id} is gone")


def _end_lost(world: World, session_id: SessionId) -> IndexEntry:
    """Handle a session whose tmux has exited: lost, or restored if the user asked for that.

    One that runs in another workspace, if this one is its copy, was never lost: it is not ours to restore.
    """
    from mas.service.agents.living import place_of
    from mas.service.agents.team import close_team
    from mas.service.lifecycle.restore import restored
    from mas.service.lifecycle.stop import TMUX_GONE, set_status

    with world.intents.begin(session_id, "lost", world.records.load(session_id).socket) as operation:
        session = world.records.load(session_id)
        place = place_of(world, session)
        if place and world.runtime.alive([place])[place] is not False:
            # Somebody restored it since it was looked at.
            operation.done()
            return entry_of(session)
        operation.no_return()
        other = close_team(world, session_id, session.socket)
        lost = (session.status is Status.ACTIVE or session.lost) and not other
        elsewhere = f"it runs in another copy of this workspace: {other}" if other else None
        session = set_status(world, session, Status.STOPPED, TMUX_GONE if lost else elsewhere or session.reason, lost)
        operation.done()
    world.logs.session(session_id, elsewhere or TMUX_GONE)
    if elsewhere:
        return entry_of(session)
    world.events.add("warning", session_id, text=f"Session {session_id} was lost: its tmux session is gone")
    return entry_of(restored(world, session_id) if world.settings.recover else session)


def _mark_damaged(world: World, entry: IndexEntry) -> IndexEntry:
    """Call the session `error` wherever that can still be written."""
    from mas.service.lifecycle.stop import set_status

    session_id = SessionId(entry.session_id)
    if entry.status is Status.ERROR and world.records.is_called_damaged(session_id):
        return entry
    with world.intents.begin(session_id, "damage") as operation:
        if world.records.is_whole(session_id):
            # Somebody repaired it since it was looked at, or it could not be looked at then.
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
    return entry._replace(status=Status.ERROR)


def _call_damaged(world: World, entry: IndexEntry, error: Corrupt | FileNotFoundError) -> None:
    """Call a session `error` in `.session` and the registry: its `metadata.json` cannot be read."""
    if isinstance(error, Corrupt) and not error.is_newer:
        # A directory that cannot be written to is no reason not to list it as what it is.
        with suppress(OSError):
            world.records.call_damaged(SessionId(entry.session_id), known_of(entry), world.now())
    if entry.status is not Status.ERROR:
        world.registry.put(entry._replace(status=Status.ERROR))


def resolve(world: World, reference: str) -> SessionId:
    """The session a person means; where it is kept elsewhere, an error that says how to get it back."""
    try:
        return find_session(reference, ((entry.session_id, entry.name) for entry in entries_of(world)))
    except NoSession:
        pass
    with suppress(NoSession):
        raise Archived(find_session(reference, ((info.session_id, info.name) for info in world.archives.list())))
    try:
        deleted = find_session(reference, trashed_names(world))
    except BadInput:
        raise NoSession(reference, "mas list --status deleted") from None
    raise NoSession(deleted, f"mas undelete {deleted}")


def trashed_names(world: World) -> Iterator[tuple[str, str | None]]:
    """The deleted sessions, each with the name it had if that can still be read."""
    for trashed in world.workspace.trashed():
        try:
            yield trashed.session_id, world.records.load_from(SessionPaths(trashed.path), trashed.session_id).name
        except (Corrupt, NoSession):
            yield trashed.session_id, None
