"""Retain: apply the workspace's retention policy. Only stopped sessions are moved, and none is removed at once."""

from __future__ import annotations

from collections.abc import Iterator

from mas.model.errors import BadInput, Conflict, MasError, NotFound
from mas.model.ids import SessionId
from mas.model.isolation import shown_size
from mas.model.retention import REMOVE, Retention, shown_age
from mas.model.session import Gone, Status
from mas.model.upkeep import Pruned, PrunePlan
from mas.service.upkeep.prune import age_of, carry_out, disk_of
from mas.service.upkeep.reconcile import reconcile
from mas.service.world import World
from mas.store.workspace.registry import IndexEntry

# Somebody who stopped a session for a moment finds it where it was, however many there are.
_REST = 3600.0
_DONE = {"archive": "archived", "trash": "moved to the trash", "remove": "removed for good"}


def retain(world: World, dry_run: bool = False) -> PrunePlan:
    """Do what `retention` of `config.json` says, or with `dry_run` only say what would be done.

    Any number of processes may do this at once: what another one has done or is doing is left out.
    """
    retention = world.settings.retention
    if retention is None:
        raise BadInput("config.json of this workspace has no retention policy", "mas prune --older-than 7d --dry-run")
    items = (*_sessions(world, retention), *_moved(world, retention))
    if not dry_run:
        items = tuple(item for item in items if _carried_out(world, item))
    return PrunePlan(items, done=not dry_run)


def retain_quietly(world: World) -> None:
    """The same for a server, now and then; most workspaces have no such policy."""
    if world.settings.retention is not None:
        retain(world)


def _sessions(world: World, retention: Retention) -> Iterator[Pruned]:
    """The stopped sessions that are past a limit."""
    stopped = [entry for entry in reconcile(world)[0] if entry.status is Status.STOPPED]
    if not retention.lost:
        stopped = [entry for entry in stopped if not entry.lost]
    taken = 0
    for number, entry in enumerate(sorted(stopped, key=lambda entry: entry.last_activity, reverse=True)):
        if retention.max_disk is not None:
            taken += _disk(world, entry)
        if reason := _past(retention, age_of(entry.last_activity, world.now()), number, taken):
            yield Pruned(
                entry.session_id,
                entry.name,
                entry.status,
                entry.last_activity,
                retention.move_to,
                _disk(world, entry),
                reason,
            )


def _past(retention: Retention, age: float, newer: int, taken: int) -> str:
    """Why a stopped session must move: its age, how many are newer, or the disk use of it and all newer ones."""
    if retention.max_age is not None and age > retention.max_age:
        return f"not used for more than {shown_age(retention.max_age)} (maxAge)"
    if age < _REST:
        return ""
    if retention.max_count is not None and newer >= retention.max_count:
        return f"more than {retention.max_count} stopped sessions (maxCount)"
    if retention.max_disk is not None and taken > retention.max_disk:
        return f"stopped sessions take more than {shown_size(retention.max_disk)} (maxDisk)"
    return ""


def _moved(world: World, retention: Retention) -> Iterator[Pruned]:
    """What has been in the archive or the trash for longer than allowed."""
    now = world.now()
    if (limit := retention.archive_age) is not None:
        reason = f"archived for more than {shown_age(limit)} (archiveAge)"
        for info in world.archives.list():
            if age_of(info.archived_at, now) > limit:
                yield Pruned(info.session_id, info.name, Gone.ARCHIVED, info.archived_at, REMOVE, info.size, reason)
    if (limit := retention.trash_age) is not None:
        reason = f"in the trash for more than {shown_age(limit)} (trashAge)"
        for trashed in world.workspace.trashed():
            if age_of(trashed.deleted_at, now) > limit:
                disk = disk_of(trashed.path)
                yield Pruned(trashed.session_id, None, Gone.DELETED, trashed.deleted_at, REMOVE, disk, reason)


def _carried_out(world: World, item: Pruned) -> bool:
    """Whether it was done, by this process; one session that cannot be moved keeps no other from it."""
    session_id = SessionId(item.session_id)
    text = f"retention: {_DONE[item.what]}: {item.reason}"
    try:
        carry_out(world, item, before=lambda: world.logs.session(session_id, text))
    except (Conflict, NotFound):
        # Somebody restored or deleted it, or does what we would.
        return False
    except MasError as error:
        world.logs.workspace(f"retention: {session_id} could not be {_DONE[item.what]}: {error.message}")
        return False
    world.logs.workspace(f"{text}: {session_id}")
    world.events.add("retention", session_id, action=item.what, reason=item.reason)
    return True


def _disk(world: World, entry: IndexEntry) -> int:
    return disk_of(world.layout.session(entry.session_id).root)
