"""Naming: a session's name is unique among all sessions that are not deleted, and can be changed."""

from __future__ import annotations

from collections.abc import Iterator

from mas.model.errors import Corrupt
from mas.model.fields import in_field
from mas.model.ids import SessionId, parse_new_name
from mas.model.session import Session
from mas.model.views import SessionDetail
from mas.service.inspect.show import describe
from mas.service.upkeep.reconcile import entries_of
from mas.service.world import World
from mas.store.workspace.registry import entry_of


def register(world: World, session: Session, exact: bool = False) -> tuple[Session, tuple[str, ...]]:
    """List a session under a name that no other has; returns it as it is named, and what people should know of that.

    With `exact` a name that is taken is refused. The caller owns the session and has written its files.
    """
    if session.name is not None:
        # A damaged registry is repaired first: it could not say which names there are.
        entries_of(world)
    entry = world.registry.put_named(entry_of(session), lambda: _archived(world, session.id), exact)
    if entry.name == session.name:
        return session, ()
    renamed = session._replace(name=entry.name)
    save_named(world, renamed)
    return renamed, (f"Another session is named {session.name}: this one is named {entry.name}",)


def _archived(world: World, but: SessionId) -> Iterator[str | None]:
    return (info.name for info in world.archives.list() if info.session_id != but)


def save_named(world: World, session: Session) -> None:
    """Write the session's name into its own files."""
    world.records.save(session)
    try:
        run = world.records.load_run(session.id)
    except Corrupt:
        # A repair makes it again, with the name that the session has then.
        return
    if run.name != session.name:
        world.records.save_run(session.id, run._replace(name=session.name))


def rename(world: World, session_id: SessionId, name: str) -> SessionDetail:
    """Give a session another name; `AlreadyThere` if another session has it. Its programs go on."""
    with in_field("name"):
        parse_new_name(name)
    with world.intents.begin(session_id, "rename", allowed=lambda: world.records.load(session_id)) as operation:
        before = world.records.load(session_id)
        operation.undo(lambda: world.registry.put(entry_of(before)))
        # The registry first: what is listed under a name has it.
        session, _ = register(world, before._replace(name=name), exact=True)
        operation.undo(lambda: save_named(world, before))
        save_named(world, session)
        operation.done()
    world.logs.session(session_id, f"rename to {name}")
    world.events.add("session", session_id, status=session.status, name=name)
    return describe(world, session)
