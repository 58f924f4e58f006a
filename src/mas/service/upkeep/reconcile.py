"""Reconcile: make the registry agree with the session directories and with tmux.

What is wrong is rare, so the code that mends it is only imported when something is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from threading import Thread

from mas.model.errors import Archived, BadInput, Corrupt, NoSession
from mas.model.ids import SessionId, find_session, tmux_name
from mas.model.session import Status
from mas.runtime.runtime import Place
from mas.runtime.threads import started
from mas.service.world import World
from mas.store.files.atomic import disk_errors
from mas.store.layout import SessionPaths
from mas.store.workspace.registry import IndexEntry, entry_of


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


def settle(world: World) -> list[str]:
    """Finish what a killed process left half-done; answers what could not be finished."""
    under_way = world.intents.sessions()
    if under_way or not world.registry.looks_sound():
        entries_of(world)
    world.registry.remove_unfinished()
    if not under_way:
        return []
    from mas.service.upkeep.unfinished import finish

    return finish(world)


def finish_work(world: World) -> None:
    """A round of a server: what somebody was killed over, or gave up, waits for no further command."""
    with disk_errors():
        settle(world)


def reconcile(world: World) -> tuple[list[IndexEntry], list[str]]:
    """The registry after one look at the directories and one at tmux, and what people should know."""
    entries = entries_of(world)
    under_way = world.intents.sessions()
    there = world.layout.directories()
    if ({entry.session_id for entry in entries} ^ there) - under_way:
        from mas.service.upkeep.mend import end_vanished

        end_vanished(world, [entry for entry in entries if entry.session_id not in there | under_way])
        rebuild(world)
        entries = world.registry.read()
    settled = [entry for entry in entries if entry.session_id not in under_way]
    looking = _Looking(world, [entry for entry in settled if entry.status is Status.ACTIVE])
    damaged = [entry for entry in settled if not world.records.is_whole(SessionId(entry.session_id))]
    unreadable = {entry.session_id for entry in damaged}
    lost, unseen = ([found for found in answer if found not in unreadable] for answer in looking.answer())
    warnings = [f"Could not ask tmux about session {session_id}; it is shown as last known" for session_id in unseen]
    if damaged or lost:
        from mas.service.upkeep.mend import mend

        changed, problems = mend(world, damaged, lost)
        entries = [changed.get(entry.session_id, entry) for entry in entries]
        warnings += problems
    return entries, warnings


class _Looking(Thread):
    """Asks tmux which sessions are there, while their files are being read."""

    def __init__(self, world: World, active: list[IndexEntry]) -> None:
        super().__init__(daemon=True)
        self._runtime = world.runtime
        home = world.layout.home()
        self._places = {
            Place(entry.socket or "", tmux_name(entry.session_id), home): SessionId(entry.session_id)
            for entry in active
        }
        self._alive: dict[Place, bool | None] = dict.fromkeys(self._places)
        self._apart = started(self)

    def run(self) -> None:
        self._alive = self._runtime.alive(self._places)

    def answer(self) -> tuple[list[SessionId], list[SessionId]]:
        """The sessions that are not there any more, and those of which it cannot be told."""
        if self._apart:
            self.join()
        else:
            self.run()
        return self._where(False), self._where(None)

    def _where(self, alive: bool | None) -> list[SessionId]:
        return [session_id for place, session_id in self._places.items() if self._alive[place] is alive]


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
