"""Prune: move old sessions to the trash, remove old trash for good."""

from __future__ import annotations

from calendar import timegm
from collections.abc import Callable, Iterator
from contextlib import suppress
from time import strptime
from typing import NamedTuple

from mas.model.errors import BadInput, BadTransition, Conflict, Corrupt, NotFound
from mas.model.ids import SessionId
from mas.model.retention import ARCHIVE, TRASH
from mas.model.session import Gone, Status
from mas.model.upkeep import Pruned, PrunePlan
from mas.service.lifecycle.archive import archive
from mas.service.lifecycle.delete import delete
from mas.service.upkeep.reconcile import reconcile
from mas.service.world import World
from mas.store.files.tree import usage

PRUNABLE = (Status.STOPPED, Status.ERROR, Gone.ARCHIVED, Gone.DELETED)
_BY_DEFAULT = (Status.STOPPED, Status.ERROR, Gone.DELETED)


class PrunePolicy(NamedTuple):
    """What to prune: what has rested for `older_than` seconds, but never the `keep` newest of each kind.

    Or, with `by_config` and nothing else, what `retention` of the workspace's `config.json` says.
    """

    older_than: float | None = None
    keep: int | None = None
    statuses: tuple[str, ...] = ()
    by_config: bool = False


def prune(world: World, policy: PrunePolicy, dry_run: bool) -> PrunePlan:
    """Carry out `policy`, or with `dry_run` only say what it would do. Active sessions are never touched."""
    if policy.by_config:
        from mas.service.upkeep.retention import retain

        if policy != PrunePolicy(by_config=True):
            raise BadInput("--policy cannot be combined with other limits", "mas prune --policy --dry-run")
        return retain(world, dry_run)
    if policy.older_than is None and policy.keep is None:
        raise BadInput("Give --older-than, --keep or --policy", "mas prune --older-than 7d --dry-run")
    if policy.keep is not None and policy.keep < 0:
        raise BadInput("--keep needs a number of sessions, 0 or more")
    statuses = policy.statuses or _BY_DEFAULT
    for status in statuses:
        if status not in PRUNABLE:
            raise BadInput(f"{status} sessions cannot be pruned (choose from: {', '.join(PRUNABLE)})")
    items = tuple(item for status in statuses for item in _chosen(world, status, policy))
    if not dry_run:
        items = tuple(item for item in items if _is_carried_out(world, item))
    return PrunePlan(items, done=not dry_run)


def _is_carried_out(world: World, item: Pruned) -> bool:
    try:
        carry_out(world, item)
    except (Conflict, NotFound):
        # It is in use again, or another process was faster.
        return False
    return True


def _chosen(world: World, status: str, policy: PrunePolicy) -> Iterator[Pruned]:
    newest_first = sorted(_candidates(world, status), key=lambda item: item.since, reverse=True)
    for item in newest_first[policy.keep or 0 :]:
        if policy.older_than is None or age_of(item.since, world.now()) > policy.older_than:
            yield item


def age_of(since: str, now: str) -> float:
    """Seconds between two times; an empty `since` counts as 1970, and an invalid time gives 0."""
    try:
        begun, ended = (timegm(strptime(stamp[:19], "%Y-%m-%dT%H:%M:%S")) if stamp else 0 for stamp in (since, now))
    except ValueError:
        return 0
    return ended - begun


def _candidates(world: World, status: str) -> Iterator[Pruned]:
    if status == Gone.ARCHIVED:
        for info in world.archives.list():
            yield Pruned(info.session_id, info.name, status, info.archived_at, "remove", info.size)
    elif status == Gone.DELETED:
        for trashed in world.workspace.trashed():
            yield Pruned(trashed.session_id, None, status, trashed.deleted_at, "remove", disk_of(trashed.path))
    else:
        for entry in reconcile(world)[0]:
            if entry.status == status:
                disk = disk_of(world.layout.session(entry.session_id).root)
                yield Pruned(entry.session_id, entry.name, status, entry.last_activity, "trash", disk)


def disk_of(path: str) -> int:
    """What a directory takes of the disk; nothing if another process has just moved it."""
    try:
        return usage(path, open_up=True).disk
    except FileNotFoundError:
        return 0


def carry_out(world: World, item: Pruned, before: Callable[[], object] = bool) -> None:
    """Do one thing of a plan; `Conflict` or `NoSession` if the session is used again or gone. `before` comes first."""
    session_id = SessionId(item.session_id)

    def unused() -> None:
        with suppress(Corrupt):
            now = world.records.load(session_id)
            # Restored since it was looked at, even if it is stopped or lost again.
            if now.status is Status.ACTIVE or (now.stopped_at or "") > item.since:
                raise BadTransition(session_id, now.status, item.what)
        before()

    if item.what == TRASH:
        delete(world, session_id, unused)
        return
    if item.what == ARCHIVE:
        archive(world, session_id, allowed=unused)
        return
    with world.intents.begin(session_id, "purge") as operation:
        operation.no_return()
        archived = {(info.session_id, info.archived_at) for info in world.archives.list()}
        if item.status == Gone.ARCHIVED and (session_id, item.since) in archived:
            world.archives.remove(session_id)
        for trashed in world.workspace.trashed():
            if (trashed.session_id, trashed.deleted_at) == (session_id, item.since):
                world.workspace.doom(trashed.path)
        operation.done()
