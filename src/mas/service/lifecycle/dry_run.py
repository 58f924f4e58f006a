"""Dry run: refuse what a verb would refuse, and change nothing."""

from __future__ import annotations

from collections.abc import Callable

from mas.model.ids import SessionId, is_session_id
from mas.model.session import Gone, Tryable
from mas.model.views import SessionInfo
from mas.service.inspect.listing import list_sessions
from mas.service.lifecycle.archive import find_archived, stopped
from mas.service.lifecycle.delete import find_deleted, need_directory
from mas.service.lifecycle.restore import check_restore
from mas.service.upkeep.reconcile import resolve
from mas.service.world import World

_CHECKS: dict[Tryable, Callable[[World, SessionId], object]] = {
    "stop": lambda world, session_id: world.records.load(session_id),
    "restore": check_restore,
    "archive": stopped,
    "delete": need_directory,
}
_FROM: dict[Tryable, tuple[Gone, Callable[[World, str], SessionId]]] = {
    "unarchive": (Gone.ARCHIVED, find_archived),
    "undelete": (Gone.DELETED, find_deleted),
}


def dry_run(world: World, verb: Tryable, reference: str) -> SessionInfo:
    """The session as it is now, if the verb would be done; otherwise the verb's own refusal.

    What is damaged inside an archive is found only when it is unpacked.
    """
    if verb in _FROM:
        status, find = _FROM[verb]
        session_id = find(world, reference)
        kept = list_sessions(world, status).sessions
    else:
        session_id = SessionId(reference) if is_session_id(reference) else resolve(world, reference)
        _CHECKS[verb](world, session_id)
        kept = list_sessions(world).sessions
    return next(info for info in kept if info.session_id == session_id)
