"""Many sessions at once: made quickly, so that a listing or a start among hundreds can be measured."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tests.site import Site

from benchmarks.floor import PROGRAM, RawTmux, opening
from mas.bootstrap import random_id
from mas.model.ids import SessionId, tmux_name
from mas.model.run import Run, agent_runs
from mas.model.session import Session, Status
from mas.model.team import Team, team_named
from mas.runtime.panes import OPEN, SESSION_MARK
from mas.runtime.runtime import Place
from mas.service.upkeep.reconcile import rebuild_registry
from mas.service.world import World
from mas.settings import ServerMode

SOLO = team_named("solo")
# One invocation may hold so many commands before its argument list becomes unwieldy.
_AT_A_TIME = 50


def enrol(site: Site, count: int, team: Team, sockets: Sequence[str] = ()) -> list[SessionId]:
    """Give the workspace `count` more active sessions: their files and registry entries, written by the product.

    Their panes are opened by the caller: without launchers, which a listing never sees, and which would need
    a second terminal for every agent (a machine has 4,096). `sockets` says where each runs, else on the
    user's server.
    """
    world = site.world()
    world.workspace.prepare()
    made = [random_id() for _ in range(count)]
    for number, session_id in enumerate(made):
        socket = sockets[number] if sockets else site.user_socket
        _write(world, session_id, team, socket or private_socket(world, session_id))
    rebuild_registry(world)
    return made


def _write(world: World, session_id: SessionId, team: Team, socket: str) -> None:
    world.workspace.create(session_id)
    world.workspace.furnish(session_id)
    for directory in ("unit", "workflows"):
        os.mkdir(world.layout.session(session_id).at(directory))
    run = Run(team=team, command=" ".join(PROGRAM)).settled("shell")
    world.records.save_run(session_id, run)
    now = world.now()
    world.records.save(Session(session_id, Status.ACTIVE, now, now, now, None, socket, agent_runs(team)))


def private_socket(world: World, session_id: SessionId) -> str:
    return os.path.join(world.layout.sockets, f"{tmux_name(session_id)}.sock")


def open_one_pane_each(raw: RawTmux, sessions: Sequence[SessionId]) -> None:
    """All of them on one server."""
    for first in range(0, len(sessions), _AT_A_TIME):
        some = [tmux_name(session) for session in sessions[first : first + _AT_A_TIME]]
        raw.run(*(["new-session", "-d", "-s", name, *PROGRAM] for name in some))
        raw.run(*(_mark(raw, name) for name in some))


def open_teams(raw: RawTmux, sessions: Sequence[SessionId]) -> None:
    """All 13 panes of each, on one server."""
    for session in sessions:
        name = tmux_name(session)
        raw.run(*opening(name, lambda _: PROGRAM), _mark(raw, name))


def _mark(raw: RawTmux, name: str) -> list[str]:
    """Has a tmux session say whose it is, as the product's own do."""
    team = Place(raw.socket, name, raw.site.world().layout.home()).team
    return ["set-option", "-t", f"={name}:", SESSION_MARK, f"{team}/{OPEN}"]


def one_pane_crowd(site: Site, mode: ServerMode, count: int, few: int = 8) -> list[SessionId]:
    """`count` more sessions of one pane, on the servers where `mode` would have put them."""
    raw = RawTmux(site, site.user_socket)
    os.makedirs(os.path.dirname(raw.socket), mode=0o700, exist_ok=True)
    shared = {ServerMode.DEFAULT: count, ServerMode.SESSION: 0}.get(mode, min(few, count))
    sockets = [site.user_socket] * shared + [""] * (count - shared)
    sessions = enrol(site, count, SOLO, sockets)
    if shared:
        open_one_pane_each(raw, sessions[:shared])
    world = site.world()
    for session in sessions[shared:]:
        open_one_pane_each(RawTmux(site, private_socket(world, session)), [session])
    return sessions
