"""Start of a team while hundreds of sessions are alive."""

from __future__ import annotations

import os
from statistics import median

from tests.site import Site

from benchmarks.arena import arena
from benchmarks.crowd import enrol, open_teams
from benchmarks.floor import TEAM, RawTmux
from benchmarks.measure import Effort, Group, Row, Work, in_turns, times
from benchmarks.starting import Team
from benchmarks.witnesses import Witnesses
from mas.model.team import DEFAULT_TEAM
from mas.runtime.host import terminals
from mas.settings import ServerMode

_TEAM = sum(panes for _, panes in TEAM)
_SPARE_TERMINALS = 120


def measure(effort: Effort) -> Group:
    crowd = that_fits(effort.crowd)
    with arena() as site:
        raw = RawTmux(site, site.user_socket)
        os.makedirs(os.path.dirname(raw.socket), mode=0o700)
        raw.keep()
        open_teams(raw, enrol(site, crowd, DEFAULT_TEAM))
        team = Team(site, site.local(ServerMode.AUTO))
        works: list[Work] = [
            lambda: raw.time_opening("floor"),
            lambda: on_its_own_server(site),
            team.start,
            Team(site, site.local(ServerMode.SESSION)).start,
        ]
        floor, own, auto, session = in_turns(effort.repeats(7), *works)
        rows = [
            times(f"start 13 agents beside {crowd} sessions", auto, "the crowd's server", floor, 3),
            Row("the same with MAS_TMUX_SERVER=session", session, "the crowd's server", floor),
            Row("the same, against an empty server of its own", auto, "an own server", own),
            Row("stop 13 agents beside them", median(team.stops), "the crowd's server", floor),
        ]
        if effort.witnesses:
            (libtmux,) = in_turns(3, Witnesses(site, raw).libtmux)
            rows.append(Row("libtmux, warm process: the same 13 panes", libtmux, "the crowd's server", floor))
    return Group(
        f"Start 13 agents while {crowd} sessions of 13 are alive",
        tuple(rows),
        (
            f"The crowd: {crowd} active sessions of the same workspace, {crowd * _TEAM:,} panes of"
            " `sleep 1000`, all on the user's tmux server, the worst case for both sides.",
            "The floor is one tmux invocation on that server, which answers more slowly the more it holds. MAS looks"
            " there, sees that it is crowded and gives the new session a server of its own.",
        ),
    )


def that_fits(crowd: int) -> int:
    """As many sessions as the machine has terminals for, with some left for everybody else."""
    used, most = terminals()
    return min(crowd, (most - used - _SPARE_TERMINALS) // _TEAM) if most else crowd


def on_its_own_server(site: Site) -> float:
    """A fresh server for the team, its start included."""
    raw = RawTmux(site, os.path.join(os.path.dirname(site.user_socket), "own"))
    return raw.time_opening("floor")
