"""Disk: a session with a disk limit gets a warning at four fifths of it, and is stopped when it reaches it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mas.model.errors import Busy, DiskFull, MasError, NoSession
from mas.model.ids import SessionId
from mas.model.isolation import shown_size
from mas.model.session import Session, Status
from mas.service.upkeep.reconcile import entries_of
from mas.service.world import World
from mas.store.files.atomic import disk_errors

if TYPE_CHECKING:
    from mas.store.workspace.registry import IndexEntry

_MUCH = 0.8
# How old what is known may be, in seconds, where that is cheap to know.
_OFTEN = 5.0


def enforce(world: World, entries: Iterable[IndexEntry]) -> list[str]:
    """Warn and stop as the limits of active sessions say; returns which were stopped, and what could not be done."""
    results = []
    for entry in entries:
        session_id = SessionId(entry.session_id)
        try:
            if entry.status is Status.ACTIVE and (text := _check(world, world.records.load(session_id))):
                results.append(f"Session {session_id} was stopped: {text}")
        except (Busy, NoSession):
            # Somebody is at it; there is a next time.
            continue
        except MasError as error:
            results.append(f"{session_id}: {error.message}")
    return results


def watch(world: World) -> None:
    """A round of a server: the same for all sessions there are."""
    with disk_errors():
        for text in enforce(world, entries_of(world)):
            world.logs.workspace(text)


def check_room(world: World, session_id: SessionId, limit: int | None) -> None:
    """`DiskFull` if a session that is about to run has reached its limit."""
    if limit and (taken := world.meter().disk(session_id, 0.0)) >= limit:
        raise DiskFull(
            f"{_reached(limit)}: session {session_id} uses {shown_size(taken)}",
            f"free some space in {world.layout.session(session_id).root}, or raise limits.disk in its config.json",
        )


def _check(world: World, session: Session) -> str | None:
    """Why the session was stopped; None if it was not."""
    limit = session.limits.session.disk
    if not limit:
        return None
    taken = world.meter().disk(session.id, _OFTEN)
    # Measure again before a session is stopped: the figure may be old.
    if taken >= limit and world.meter().disk(session.id, 0.0) >= limit:
        _stop(world, session.id, _reached(limit))
        return _reached(limit)
    if world.meter().has_crossed(session.id, taken >= _MUCH * limit):
        text = f"Session {session.id} uses {shown_size(taken)} of {shown_size(limit)} disk; at its limit it is stopped"
        world.logs.session(session.id, text)
        world.events.add("warning", session.id, text=text)
    return None


def _stop(world: World, session_id: SessionId, reason: str) -> None:
    from mas.service.lifecycle.stop import stop

    stop(world, session_id, reason)
    world.logs.session(session_id, f"error: {reason}")
    world.events.add("warning", session_id, text=f"Session {session_id} was stopped: {reason}")


def _reached(limit: int) -> str:
    return f"disk limit {shown_size(limit)} reached"
