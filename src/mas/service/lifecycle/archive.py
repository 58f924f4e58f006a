"""Archive and unarchive: a stopped session as one compressed file, and back."""

from __future__ import annotations

from collections.abc import Callable

from mas.model.errors import BadTransition, NoSession
from mas.model.ids import SessionId, find_session, shown
from mas.model.session import Gone, Session, Status
from mas.model.views import SessionDetail
from mas.service.agents.team import close_team
from mas.service.inspect.show import describe
from mas.service.lifecycle.naming import register
from mas.service.world import Progress, World
from mas.store.workspace.archives import ArchiveInfo


def archive(
    world: World, session_id: SessionId, progress: Progress | None = None, allowed: Callable[[], object] = bool
) -> tuple[str, ...]:
    """Pack a stopped session; the original goes only when the archive has been read back. Returns warnings.

    `allowed` may refuse it by raising, while no other process can change the session.
    """

    def may_go() -> None:
        stopped(world, session_id)
        allowed()

    with world.intents.begin(session_id, "archive", allowed=may_go) as operation:
        operation.undo(lambda: world.archives.drop_half(session_id))
        # While the directory is there, it is the session, and an archive is only a copy.
        operation.undo(lambda: world.archives.remove(session_id))
        world.logs.session(session_id, "archive")
        session = stopped(world, session_id)
        if session.status is Status.ERROR:
            # A damaged one may still run; its agents would go on in a directory that is gone.
            close_team(world, session_id, session.socket)
        # What comes while it is packed would be lost with the directory.
        with world.messages().shut(session_id):
            left_out = world.archives.pack(_info(world, session), progress)
            operation.no_return()
            world.workspace.discard(session_id)
        world.registry.drop(session_id, Gone.ARCHIVED)
        operation.done()
    return tuple(f"Not archived, because it could not be read: {shown(path)}" for path in left_out)


def stopped(world: World, session_id: SessionId) -> Session:
    """The session, if it can be archived; `BadTransition` if it is running."""
    session = world.records.load(session_id)
    if session.status is Status.ACTIVE:
        raise BadTransition(session_id, session.status, Gone.ARCHIVED, f"mas stop {session_id}")
    return session


def find_archived(world: World, reference: str) -> SessionId:
    """The archived session a person means; `NoSession` if there is none."""
    try:
        return find_session(reference, ((info.session_id, info.name) for info in world.archives.list()))
    except NoSession:
        raise NoSession(reference, "mas list --status archived") from None


def unarchive(world: World, reference: str, progress: Progress | None = None) -> SessionDetail:
    """Bring an archived session back as a stopped one."""
    session_id = find_archived(world, reference)

    def archived() -> None:
        if not world.archives.has(session_id):
            raise NoSession(session_id, "mas list --status archived")

    with world.intents.begin(session_id, "unarchive", allowed=archived) as operation:
        world.archives.make_room(session_id)
        operation.undo(lambda: world.workspace.discard(session_id))
        world.archives.unpack(session_id, progress)
        session = world.records.load(session_id)._replace(socket=None)
        world.records.save(session)
        operation.undo(lambda: world.registry.retract(session_id, Gone.ARCHIVED))
        session, warnings = register(world, session)
        operation.no_return()
        world.archives.remove(session_id)
        operation.done()
    world.logs.session(session_id, "unarchive")
    return describe(world, session, warnings)


def _info(world: World, session: Session) -> ArchiveInfo:
    return ArchiveInfo(session.id, session.created_at, world.now(), session.name, len(session.agents), 0)
