"""Listing of sessions in a process that is already running, as the API does it."""

from __future__ import annotations

import subprocess

from tests.site import Site

from benchmarks.arena import arena
from benchmarks.crowd import one_pane_crowd
from benchmarks.floor import Control
from benchmarks.measure import Effort, Group, Row, in_turns, timed, times
from mas.model.ids import tmux_name
from mas.service.local import LocalMas
from mas.settings import ServerMode

_LIST = "list-sessions -F '#{session_name}'"


def measure(effort: Effort) -> Group:
    rows: list[Row] = []
    with arena() as shared, arena() as apart:
        there = 0
        for wanted in effort.listed:
            sessions = one_pane_crowd(shared, ServerMode.DEFAULT, wanted - there)
            one_pane_crowd(apart, ServerMode.SESSION, wanted - there)
            there = wanted
            rows += _listings(effort, wanted, shared, apart, tmux_name(sessions[0]))
    return Group(
        "List sessions (in process)",
        tuple(rows),
        (
            "Floor: one control-mode client (`tmux -C`) that lists the sessions of one server and ends.",
            "A connection that is kept open asks for less; a server that keeps one is to be held against that.",
            "Sessions have one pane each: tmux answers faster than with 13, the files MAS looks at are the same.",
        ),
    )


def _listings(effort: Effort, count: int, shared: Site, apart: Site, session: str) -> list[Row]:
    control = Control(shared, shared.user_socket, session)
    argv = ["tmux", "-S", shared.user_socket, "-C", "list-sessions", "-F", "#{session_name}"]

    def by_client() -> float:
        return timed(lambda: subprocess.run(argv, env=shared.env, capture_output=True, check=True))

    default, own = shared.local(ServerMode.DEFAULT), apart.local(ServerMode.SESSION)
    one, each, floor, open_floor = in_turns(
        effort.repeats(25),
        lambda: _list(default, count),
        lambda: _list(own, count),
        by_client,
        lambda: timed(lambda: control.ask(_LIST)),
    )
    control.close()
    many = f"{count} session{'' if count == 1 else 's'}"
    return [
        times(f"list {many} on one server", one, "tmux -C list-sessions", floor, 2),
        times(f"list {many}, a server each", each, "tmux -C list-sessions", floor, 2),
        Row(f"list {many} on one server, against an open connection", one, "a control-mode round trip", open_floor),
    ]


def _list(mas: LocalMas, count: int) -> float:
    found: list[int] = []
    took = timed(lambda: found.append(sum(info.status == "active" for info in mas.list().sessions)))
    if found != [count]:
        raise RuntimeError(f"{found[0]} of {count} sessions are active")
    return took
