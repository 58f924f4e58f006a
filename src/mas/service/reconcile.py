"""Reconcile: make the registry agree with the session directories and with tmux."""

from __future__ import annotations

from collections.abc import Iterator

from mas.model.errors import Archived, Busy, Corrupt, MasError, NoSession
from mas.model.ids import SessionId, find_session
from mas.model.session import Session, Status
from mas.runtime.runtime import Place
from mas.service.recover import finish
from mas.service.restore import restored
from mas.service.stop import set_status
from mas.service.team import close_team
from mas.service.world import World
from mas.store.atomic import set_aside
from mas.store.registry import IndexEntry, entry_of


def entries_of(world: World) -> list[IndexEntry]:
    """The registry, readable: a damaged one is put aside and rebuilt first."""
    try:
        entries = world.registry.read()
        if world.registry.journal_is_sound(may_be_empty=not entries):
            return entries
    except Corrupt:
        pass
    rebuild(world)
    return world.registry.read()


def rebuild(world: World) -> list[str]:
    """Write the registry anew from the session directories; answers which damaged files were kept."""
    return world.registry.rebuild(lambda: scan(world))


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


def settle(world: World) -> list[str]:
    """Finish what a killed process left half-done; answers what could not be finished."""
    under_way = world.intents.sessions()
    if under_way or not world.registry.looks_sound():
        entries_of(world)
    return finish(world) if under_way else []


def reconcile(world: World) -> tuple[list[IndexEntry], list[str]]:
    """The registry after one look at the directories and one at tmux, and what people should know."""
    entries = entries_of(world)
    under_way = world.intents.sessions()
    listed = {entry.session_id for entry in entries}
    there = world.layout.directories()
    if (listed ^ there) - under_way:
        for entry in entries:
            if entry.session_id not in there | under_way:
                # Somebody removed the directory; its agents must not go on working in nothing.
                close_team(world, SessionId(entry.session_id), entry.socket)
        rebuild(world)
        entries = world.registry.read()
    entries, warnings = _mark_damaged(world, entries, under_way)
    places = {
        Place(entry.socket, f"mas-{entry.session_id[:8]}"): entry
        for entry in entries
        if entry.status is Status.ACTIVE and entry.socket and entry.session_id not in under_way
    }
    changed = {}
    for place, alive in world.runtime.alive(places).items():
        session_id = SessionId(places[place].session_id)
        if alive is None:
            warnings.append(f"Could not ask tmux about session {session_id}; it is shown as last known")
        elif not alive:
            try:
                changed[session_id] = entry_of(_lost(world, session_id))
            except Busy:
                continue
            except MasError as error:
                warnings.append(f"{session_id}: {error.message}")
    return [changed.get(SessionId(entry.session_id), entry) for entry in entries], warnings


def _lost(world: World, session_id: SessionId) -> Session:
    """A session whose tmux is gone: stopped, or back again where the user asked for that."""
    with world.intents.begin(session_id, "stop", world.records.load(session_id).socket) as operation:
        operation.no_return()
        session = world.records.load(session_id)
        close_team(world, session_id, session.socket)
        session = set_status(world, session, Status.STOPPED)
        operation.done()
    world.logs.session(session_id, "its tmux session was gone")
    return restored(world, session_id) if world.settings.recover else session


def _mark_damaged(world: World, entries: list[IndexEntry], under_way: set[str]) -> tuple[list[IndexEntry], list[str]]:
    """Sessions whose own files cannot be read become `error`."""
    marked, warnings = [], []
    for entry in entries:
        if entry.session_id in under_way or world.records.is_whole(SessionId(entry.session_id)):
            marked.append(entry)
            continue
        warnings.append(f"Session {entry.session_id} is damaged: mas repair")
        if entry.status is not Status.ERROR:
            entry = entry._replace(status=Status.ERROR)
            _note_damage(world, SessionId(entry.session_id), entry)
        marked.append(entry)
    return marked, warnings


def _note_damage(world: World, session_id: SessionId, entry: IndexEntry) -> None:
    try:
        with world.intents.begin(session_id, "damage") as operation:
            try:
                session = world.records.load(session_id)
                set_aside(world.layout.session(session_id).record, world.now())
                set_status(world, session, Status.ERROR)
            except (Corrupt, FileNotFoundError):
                world.registry.put(entry)
            operation.done()
    except Busy:
        return


def resolve(world: World, reference: str) -> SessionId:
    """The session a person means; where it is kept elsewhere, an error that says how to get it back."""
    try:
        return find_session(reference, (entry.session_id for entry in entries_of(world)))
    except NoSession:
        start = reference.removeprefix("mas-")
        for info in world.archives.list():
            if info.session_id.startswith(start):
                raise Archived(info.session_id) from None
        for trashed in world.workspace.trashed():
            if trashed.session_id.startswith(start):
                raise NoSession(trashed.session_id, f"mas undelete {trashed.session_id}") from None
        raise
