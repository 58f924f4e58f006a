"""List: the registry, checked against tmux once."""

from __future__ import annotations

from functools import lru_cache

from mas.model.errors import BadInput, Corrupt, NoSession
from mas.model.ids import SessionId, tmux_name
from mas.model.session import LISTED, LOST, AgentRun, Gone, Status
from mas.model.views import SessionInfo, SessionList
from mas.service.upkeep.reconcile import reconcile
from mas.service.world import World
from mas.store.layout import Layout, SessionPaths
from mas.store.workspace.registry import IndexEntry, entry_of
from mas.store.workspace.workspace import Trashed

# A lost session is stopped too; the filter `lost` lists only those that were not stopped on purpose.


def list_sessions(
    world: World, status: str | None = None, limit: int | None = None, offset: int = 0, agents: bool = False
) -> SessionList:
    """Sessions, oldest first. Archived and deleted ones are only listed when asked for."""
    if status is not None and status not in LISTED:
        raise BadInput(f"No status {status!r} (there are: {', '.join(LISTED)})")
    if offset < 0 or (limit is not None and limit < 0):
        raise BadInput("limit and offset must not be negative")
    warnings: list[str] = []
    if status == Gone.ARCHIVED:
        entries = [
            IndexEntry(info.session_id, Status.STOPPED, info.created_at, info.archived_at, info.name, info.agents)
            for info in world.archives.list()
        ]
    elif status == Gone.DELETED:
        entries = [_trashed(world, trashed) for trashed in world.workspace.trashed()]
    else:
        entries, warnings = reconcile(world)
        entries = [entry for entry in entries if status is None or _is(entry, status)]
    entries.sort(key=lambda entry: (entry.created_at, entry.session_id))
    page = entries[offset : None if limit is None else offset + limit]
    if status in set(Gone):
        found = tuple(_info(world.layout, entry, status or "") for entry in page)
    else:
        found = tuple(
            _info(world.layout, entry, entry.status, _agents(world, entry.session_id) if agents else ())
            for entry in page
        )
    return SessionList(found, len(entries), tuple(warnings))


def _is(entry: IndexEntry, status: str) -> bool:
    return entry.lost if status == LOST else entry.status == status


def _agents(world: World, session_id: str) -> tuple[AgentRun, ...]:
    if seen := world.records.just_seen(SessionId(session_id)):
        return seen.agents
    try:
        return world.records.load(SessionId(session_id)).agents
    except (Corrupt, NoSession):
        # Damaged or gone meanwhile: the listing says so by its status, now or next time.
        return ()


def _trashed(world: World, trashed: Trashed) -> IndexEntry:
    try:
        entry = entry_of(world.records.load_from(SessionPaths(trashed.path), trashed.session_id))
    except Corrupt:
        entry = IndexEntry(trashed.session_id, Status.ERROR, "", "")
    return entry._replace(last_activity=trashed.deleted_at)


@lru_cache(maxsize=10_000)
def _info(layout: Layout, entry: IndexEntry, status: str, agents: tuple[AgentRun, ...] = ()) -> SessionInfo:
    """What a listing shows of a session; for most sessions it is the same in the next listing."""
    paths = layout.session(entry.session_id)
    return SessionInfo(
        session_id=entry.session_id,
        tmux_session=tmux_name(entry.session_id),
        name=entry.name,
        status=status,
        created_at=entry.created_at,
        last_activity=entry.last_activity,
        working_dir=paths.root,
        unit_dir=paths.unit,
        workflows_dir=paths.workflows,
        agent_count=entry.agents,
        tmux_socket=entry.socket,
        tier=entry.tier,
        agents=agents,
        stopped_at=entry.stopped_at,
        lost=entry.lost,
        reason=entry.reason,
    )
