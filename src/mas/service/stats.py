"""Stats: sessions, live agents, processes and disk."""

from __future__ import annotations

from collections import Counter

from mas.model.ids import SessionId, tmux_name
from mas.model.reports import SessionStats, Stats
from mas.model.session import Status
from mas.runtime.runtime import PaneState, Place
from mas.runtime.sweep import processes_of
from mas.service.reconcile import reconcile
from mas.service.states import seen
from mas.service.world import World
from mas.store.registry import IndexEntry
from mas.store.tree import usage


def stats(world: World, only: SessionId | None = None) -> Stats:
    """What the workspace, or one session, takes of the machine."""
    entries = reconcile(world)[0]
    wanted = [entry for entry in entries if only in (None, entry.session_id)]
    panes = _panes(world, wanted)
    sessions = tuple(_one(world, entry, panes.get(entry.session_id, [])) for entry in wanted)
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


def _one(world: World, entry: IndexEntry, panes: list[PaneState]) -> SessionStats:
    session_id = SessionId(entry.session_id)
    live = [pane.pid for pane in panes if not pane.dead]
    return SessionStats(
        session_id=session_id,
        name=entry.name,
        status=entry.status,
        agents=entry.agents,
        live_agents=len(live),
        states=dict(Counter(str(seen(world, session_id, pane.agent or "", pane).state) for pane in panes)),
        processes=len(processes_of(session_id, live)) if live else 0,
        disk=usage(world.layout.session(session_id).root).disk,
    )
