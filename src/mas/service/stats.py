"""Stats: sessions, live agents, and what they take of processor, memory and disk."""

from __future__ import annotations

import shutil
from collections import Counter

from mas.model.errors import Corrupt, NoSession
from mas.model.ids import SessionId, tmux_name
from mas.model.reports import AgentStats, HostStats, SessionStats, Stats
from mas.model.session import Status
from mas.runtime.runtime import PaneState, Place
from mas.runtime.usage import Host, Use
from mas.service.disk import enforce
from mas.service.reconcile import reconcile
from mas.service.states import seen
from mas.service.world import World
from mas.store.registry import IndexEntry


def stats(world: World, only: SessionId | None = None) -> Stats:
    """What the workspace, or one session, takes of the machine."""
    warnings = enforce(world, reconcile(world)[0])
    entries = world.registry.read()
    wanted = [entry for entry in entries if only in (None, entry.session_id)]
    panes = _panes(world, wanted)
    uses, host = world.meter().look([pane.pid for there in panes.values() for pane in there if not pane.dead])
    sessions = tuple(_one(world, entry, panes.get(entry.session_id, []), uses) for entry in wanted)
    world.meter().keep_only({SessionId(entry.session_id) for entry in entries})
    count = {status: sum(1 for entry in entries if entry.status is status) for status in Status}
    return Stats(
        active=count[Status.ACTIVE],
        stopped=count[Status.STOPPED],
        error=count[Status.ERROR],
        archived=sum(1 for _ in world.archives.list()),
        deleted=sum(1 for _ in world.workspace.trashed()),
        live_agents=sum(session.live_agents for session in sessions),
        disk=sum(session.disk for session in sessions),
        sessions=sessions,
        cpu=round(sum(session.cpu for session in sessions), 3),
        cpu_seconds=round(sum(session.cpu_seconds for session in sessions), 2),
        memory=sum(session.memory for session in sessions),
        processes=sum(session.processes for session in sessions),
        host=_host(world, host),
        warnings=tuple(warnings),
    )


def _host(world: World, host: Host) -> HostStats:
    disk = shutil.disk_usage(world.layout.root)
    return HostStats(host.cores, host.cpu, host.memory, host.memory_free, disk.total, disk.free, host.processes)


def _panes(world: World, entries: list[IndexEntry]) -> dict[str, list[PaneState]]:
    """The agents' panes of each session; those on a server that cannot be looked at are not counted."""
    places = {
        Place(entry.socket, tmux_name(entry.session_id)): entry.session_id
        for entry in entries
        if entry.status is Status.ACTIVE and entry.socket
    }
    return {
        places[place]: [pane for pane in panes or () if pane.agent]
        for place, panes in world.runtime.panes_of(places).items()
    }


def _one(world: World, entry: IndexEntry, panes: list[PaneState], uses: dict[int, Use]) -> SessionStats:
    session_id = SessionId(entry.session_id)
    each = tuple(
        AgentStats(pane.agent or "", *(Use() if pane.dead else uses.get(pane.pid, Use())))
        for pane in sorted(panes, key=lambda pane: pane.agent or "")
    )
    try:
        limit = world.records.load(session_id).limits.session.disk
    except (Corrupt, NoSession):
        limit = None
    return SessionStats(
        session_id=session_id,
        name=entry.name,
        status=entry.status,
        agents=entry.agents,
        live_agents=sum(1 for pane in panes if not pane.dead),
        states=dict(Counter(str(seen(world, session_id, pane.agent or "", pane).state) for pane in panes)),
        processes=sum(one.processes for one in each),
        disk=world.meter().disk(session_id),
        cpu=round(sum(one.cpu for one in each), 3),
        cpu_seconds=round(sum(one.cpu_seconds for one in each), 2),
        memory=sum(one.memory for one in each),
        disk_limit=limit,
        each=each,
    )
