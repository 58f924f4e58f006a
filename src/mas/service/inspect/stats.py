"""Stats: sessions, live agents, and how much processor, memory and disk they use."""

from __future__ import annotations

import shutil
from collections import Counter

from mas.model.errors import Corrupt, NoSession
from mas.model.ids import SessionId, tmux_name
from mas.model.session import Status
from mas.model.state import State
from mas.model.stats import AgentStats, HostStats, SessionStats, Stats
from mas.runtime.runtime import PaneState, Place
from mas.runtime.usage import Host, Use, Whose
from mas.service.agents.living import reported_state, state_of
from mas.service.isolation.disk import enforce
from mas.service.upkeep.reconcile import reconcile
from mas.service.world import World
from mas.store.workspace.registry import IndexEntry

Uses = dict[Whose, tuple[int, Use]]


def stats(world: World, only: SessionId | None = None) -> Stats:
    """What the workspace, or one session, takes of the machine."""
    warnings = enforce(world, reconcile(world)[0])
    entries = world.registry.read()
    wanted = [entry for entry in entries if only in (None, entry.session_id)]
    uses, host = world.meter().look()
    if not host.processes:
        uses = _seen_by_tmux(world, wanted)
    sessions = tuple(_one(world, entry, uses) for entry in wanted)
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


def _seen_by_tmux(world: World, entries: list[IndexEntry]) -> Uses:
    """Which agents are running, if the system does not show processes."""
    home = world.layout.home()
    places = {
        Place(entry.socket, tmux_name(entry.session_id), home): entry.session_id
        for entry in entries
        if entry.status is Status.ACTIVE and entry.socket
    }
    return {
        (places[place], pane.agent): (pane.pid, Use())
        for place, panes in world.runtime.panes_of(places).items()
        for pane in panes or ()
        if pane.agent and not pane.dead
    }


def _one(world: World, entry: IndexEntry, uses: Uses) -> SessionStats:
    session_id = SessionId(entry.session_id)
    try:
        session = world.records.load(session_id)
        running = session.agents if entry.status is Status.ACTIVE else ()
        limit = session.limits.session.disk
    except (Corrupt, NoSession):
        running, limit = (), None
    found = {agent.id: uses.get((session_id, agent.id), (None, Use())) for agent in running}
    each = tuple(AgentStats(agent, *use) for agent, (_, use) in found.items())
    return SessionStats(
        session_id=session_id,
        name=entry.name,
        status=entry.status,
        agents=entry.agents,
        live_agents=sum(1 for launcher, _ in found.values() if launcher is not None),
        states=dict(Counter(str(_state(world, session_id, agent, pid)) for agent, (pid, _) in found.items())),
        processes=sum(one.processes for one in each),
        disk=world.meter().disk(session_id),
        cpu=round(sum(one.cpu for one in each), 3),
        cpu_seconds=round(sum(one.cpu_seconds for one in each), 2),
        memory=sum(one.memory for one in each),
        disk_limit=limit,
        each=each,
        lost=entry.lost,
    )


def _state(world: World, session_id: SessionId, agent: str, launcher: int | None) -> State:
    """How an agent is, by what was written down and by whether its launcher lives; tmux need not be asked for that."""

    def find() -> State:
        if launcher is None:
            state = reported_state(world, session_id, agent)
            return state.state if state.gone else State.EXITED
        return state_of(world, session_id, agent, PaneState("", agent, launcher, False, None)).state

    return world.meter().state(session_id, agent, launcher, find)
