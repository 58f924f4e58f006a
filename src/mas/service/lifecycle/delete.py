"""Delete and undelete: move a session to the trash, and back."""

from __future__ import annotations

from collections.abc import Callable

from mas.model.errors import Corrupt, NoSession
from mas.model.ids import SessionId, find_session
from mas.model.session import Gone
from mas.model.views import SessionDetail
from mas.service.agents.team import close_team
from mas.service.inspect.show import describe
from mas.service.lifecycle.naming import register
from mas.service.lifecycle.stop import stop_owned
from mas.service.upkeep.reconcile import entries_of, trashed_names
from mas.service.world import World


def delete(world: World, session_id: SessionId, allowed: Callable[[], object] = bool) -> None:
    """Stop a session and move it to the trash, unless `allowed` raises while no other process can change it."""

    def may_go() -> None:
        need_directory(world, session_id)
        allowed()

    # A damaged session may be deleted too: then only the registry knows where its agents run.
    socket = next((entry.socket for entry in entries_of(world) if entry.session_id == session_id), None)
    with world.intents.begin(session_id, "delete", socket, may_go) as operation:
        operation.no_return()
        try:
            stop_owned(world, session_id)
        except Corrupt:
            close_team(world, session_id, socket)
        world.logs.session(session_id, "delete")
        world.workspace.trash(session_id, world.now())
        world.registry.drop(session_id, Gone.DELETED)
        operation.done()


def need_directory(world: World, session_id: SessionId) -> None:
    """`NoSession` if there is nothing to delete; a damaged session can be."""
    if not world.layout.is_session(session_id):
        raise NoSession(session_id)


def find_deleted(world: World, reference: str) -> SessionId:
    """The session in the trash that a person means; `NoSession` if there is none."""
    try:
        return find_session(reference, trashed_names(world))
    except NoSession:
        raise NoSession(reference, "mas list --status deleted") from None


def undelete(world: World, reference: str) -> SessionDetail:
    """Bring a deleted session back as a stopped one."""
    trash = {trashed.session_id: trashed for trashed in reversed(list(world.workspace.trashed()))}
    session_id = find_deleted(world, reference)

    def in_trash() -> None:
        if trash[session_id] not in world.workspace.trashed():
            raise NoSession(session_id, "mas list")

    with world.intents.begin(session_id, "undelete", allowed=in_trash) as operation:
        operation.no_return()
        world.workspace.untrash(trash[session_id])
        session = world.records.load(session_id)._replace(socket=None)
        world.records.save(session)
        session, warnings = register(world, session)
        operation.done()
    world.logs.session(session_id, "undelete")
    return describe(world, session, warnings)
