"""Start and stop of a whole team: 13 agents in 4 windows."""

from __future__ import annotations

import os
import shutil
import subprocess
from statistics import median

from tests.site import Site

from benchmarks.arena import BIN, arena, until_started
from benchmarks.floor import PROGRAM, RawTmux
from benchmarks.measure import Effort, Group, Row, in_turns, timed
from benchmarks.witnesses import Witnesses
from mas.model.ids import SessionId
from mas.model.run import Run
from mas.service.local import LocalMas
from mas.settings import ServerMode

RUN = Run(command=" ".join(PROGRAM))


def measure(effort: Effort) -> Group:
    with arena() as site:
        raw = RawTmux(site, site.user_socket)
        os.makedirs(os.path.dirname(raw.socket), mode=0o700)
        raw.keep()
        team = Team(site, site.local(ServerMode.AUTO))
        works = [team.start, lambda: raw.time_opening("floor"), lambda: copy_with_cp(site), team.start_by_command]
        if effort.witnesses:
            witnesses = Witnesses(site, raw)
            works += [witnesses.libtmux, witnesses.tmuxp]
        start, floor, copy, command, *others = in_turns(effort.repeats(15), *works)
    rows = [
        Row(
            "start 13 agents, isolation off", start, "one tmux invocation", floor, "3 × floor + copy", 3 * floor + copy
        ),
        Row("the copy alone (cp -a of the templates)", copy),
        Row("`mas start` as a command of its own", command, "one tmux invocation", floor),
        Row("stop 13 agents", median(team.stops), "one tmux invocation", floor),
    ]
    for name, took in zip(("libtmux, warm process", "`tmuxp load -d`"), others, strict=False):
        rows.append(Row(f"{name}: the same 13 panes", took, "one tmux invocation", floor))
    return Group(
        "Start 13 agents, small templates",
        tuple(rows),
        (
            "Every pane runs `sleep 1000`; the product's are started by its launcher, the others' by tmux itself.",
            "All on one server that is already running. MAS's time ends when it answers: by then every pane is open,"
            " and session, registry and journal are on the disk.",
        ),
    )


class Team:
    """A team started by the product and ended again, outside of what is timed."""

    def __init__(self, site: Site, mas: LocalMas) -> None:
        self._site = site
        self._mas = mas
        self.stops: list[float] = []

    def start(self) -> float:
        sessions = []
        took = timed(lambda: sessions.append(self._mas.start(RUN)))
        self._end(sessions[0].session_id)
        return took

    def start_by_command(self) -> float:
        argv = [os.path.join(BIN, "mas"), "start", "--command", RUN.command or ""]
        printed = []
        took = timed(
            lambda: printed.append(subprocess.run(argv, env=self._site.env, capture_output=True, text=True, check=True))
        )
        self._end(printed[0].stdout.strip())
        return took

    def _end(self, session_id: str) -> None:
        until_started(self._site, self._mas.show(SessionId(session_id)))
        self.stops.append(timed(lambda: self._mas.stop(SessionId(session_id))))


def copy_with_cp(site: Site) -> float:
    target = os.path.join(site.directory, "copied")
    argv = ["cp", "-a", site.path("unit"), site.path("workflows"), target]
    os.mkdir(target)
    took = timed(lambda: subprocess.run(argv, check=True))
    shutil.rmtree(target)
    return took
