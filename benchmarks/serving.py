"""The server: listings over HTTP, and what it costs while nothing happens."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
from tests.served import Served
from tests.site import Site

from benchmarks.arena import arena, until_started
from benchmarks.crowd import enrol, one_pane_crowd, open_teams
from benchmarks.crowded import that_fits
from benchmarks.floor import PROGRAM, RawTmux
from benchmarks.measure import Effort, Group, Row, in_turns, timed, times
from mas.model.run import Run
from mas.model.team import DEFAULT_TEAM
from mas.settings import ServerMode

_IDLE_SESSIONS = 50
_IDLE_SECONDS = 20.0
_MIB = 1 << 20


def measure(effort: Effort) -> Group:
    return Group(
        "The server",
        (*_listings(effort), *_listings_of_teams(effort), *_idle(effort)),
        (
            "GET /sessions: a client on a kept connection to 127.0.0.1, answer read and parsed.",
            "Floor: one control-mode client (`tmux -C`) that lists the sessions of the same server and ends.",
            "Idle: 50 sessions of 13 agents, one client on the event stream; CPU of the server and its helpers.",
        ),
    )


def _listings(effort: Effort) -> Iterator[Row]:
    with arena() as site, serving(site) as served:
        there = 0
        for wanted in effort.listed:
            one_pane_crowd(site, ServerMode.DEFAULT, wanted - there)
            there = wanted
            yield _listing(effort, served, wanted, "one pane each")


def _listings_of_teams(effort: Effort) -> Iterator[Row]:
    with arena() as site, serving(site) as served:
        raw = RawTmux(site, site.user_socket)
        os.makedirs(os.path.dirname(raw.socket), mode=0o700)
        there = 0
        most = that_fits(effort.crowd)
        for wanted in (_IDLE_SESSIONS, most) if most > _IDLE_SESSIONS else (_IDLE_SESSIONS,):
            open_teams(raw, enrol(site, wanted - there, DEFAULT_TEAM))
            there = wanted
            yield _listing(effort, served, wanted, "13 panes each")


def _listing(effort: Effort, served: Served, count: int, what: str) -> Row:
    site = served.site
    connection = http.client.HTTPConnection("127.0.0.1", int(served.url.rpartition(":")[2]))
    argv = ["tmux", "-S", site.user_socket, "-C", "list-sessions", "-F", "#{session_name}"]

    def get() -> float:
        found: list[int] = []
        took = timed(lambda: found.append(_active(connection, served.token)))
        if found != [count]:
            raise RuntimeError(f"{found[0]} of {count} sessions are active")
        return took

    took, floor = in_turns(
        effort.repeats(40),
        get,
        lambda: timed(lambda: subprocess.run(argv, env=site.env, capture_output=True, check=True)),
    )
    connection.close()
    many = f"{count} session{'' if count == 1 else 's'}"
    return times(f"GET /sessions with {many}, {what}", took, "tmux -C list-sessions", floor, 2)


def _active(connection: http.client.HTTPConnection, token: str) -> int:
    connection.request("GET", "/sessions", headers={"Authorization": f"Bearer {token}"})
    body = json.loads(connection.getresponse().read())
    return sum(session["status"] == "active" for session in body["sessions"])


def _idle(effort: Effort) -> Iterator[Row]:
    """What the server takes of the machine with many idle agents and one listener."""
    with arena() as site, serving(site) as served:
        mas = site.local(ServerMode.SESSION)
        count = max(3, round(_IDLE_SESSIONS * effort.share))
        for _ in range(count):
            until_started(site, mas.start(Run(command=" ".join(PROGRAM))))
        with served.client().stream("GET", "/events") as stream:
            # Kept: the stream ends with who reads it.
            reading = stream.iter_lines()
            next(reading)
            process = psutil.Process(served.pid)
            before = _cpu(process)
            time.sleep(_IDLE_SECONDS * effort.share)
            share = (_cpu(process) - before) / (_IDLE_SECONDS * effort.share)
            family = [process, *process.children(recursive=True)]
            memory = sum(member.memory_info().rss for member in family) / _MIB
        site.mas("stop", "--all", timeout=600)
    what = f"{count} sessions of 13 idle agents"
    yield Row(f"server with {what}: CPU", 100 * share, bound="3 % of a core", limit=3.0, unit="%")
    yield Row(f"server with {what}: memory", memory, bound="90 MiB", limit=90.0, unit="MiB")


def _cpu(process: psutil.Process) -> float:
    total = 0.0
    for member in [process, *process.children(recursive=True)]:
        spent = member.cpu_times()
        total += spent.user + spent.system
    return total


@contextmanager
def serving(site: Site) -> Iterator[Served]:
    served = Served(site)
    try:
        yield served
    finally:
        served.close()
