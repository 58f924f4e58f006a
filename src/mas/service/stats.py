"""Stats: sessions, live agents, processes and disk."""

from __future__ import annotations

from mas.model.ids import SessionId, tmux_name
from mas.model.reports import SessionStats, Stats
from mas.model.session import Status
from mas.runtime.runtime import Place
from mas.runtime.sweep import processes_of
from mas.service.reconcile import reconcile
from mas.service.world import World
from mas.store.registry import IndexEntry
from mas.store.tree import usage


def stats(world: World, only: SessionId | None = None) -> Stats:
    """What the workspace, or one session, takes of the machine."""
    entries = reconcile(world)[0]
    wanted = [entry for entry in entries if only in (None, entry.session_id)]
    live = _live(world, wanted)
    sessions = tuple(_one(world, entry, live.get(entry.session_id, [])) for entry in wanted)
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
    )


def _live(world: World, entries: list[IndexEntry]) -> dict[str, list[int]]:
    """The living launchers of each session; those on a server that cannot be looked at are not counted."""
    places = {
        Place(entry.socket, tmux_name(entry.session_id)): entry.session_id
        for entry in entries
        if entry.status is Status.ACTIVE and entry.socket
    }
    return {
        places[place]: [pane.pid for pane in panes or () if pane.agent and not pane.dead]
        for place, panes in world.runtime.panes_of(places).items()
    }


def _one(world: World, entry: IndexEntry, live: list[int]) -> SessionStats:
    return SessionStats(
        session_id=entry.session_id,
        name=entry.name,
        status=entry.status,
        agents=entry.agents,
        live_agents=len(live),
        processes=len(processes_of(entry.session_id, live)) if live else 0,
        disk=usage(world.layout.session(entry.session_id).root).disk,
    )
