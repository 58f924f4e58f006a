"""Servers until they answer, and commands from the first word to the last."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from benchmarks.arena import BIN
from benchmarks.measure import timed
from benchmarks.peers import cao
from benchmarks.peers.bare import Raw
from benchmarks.peers.cao import Orchestrator
from benchmarks.peers.product import Product
from benchmarks.peers.sides import CAO, LIBTMUX, MAS, RAW, SIDES, TMUXP, Talking, place
from benchmarks.peers.table import Effort, Line, Numbers, Table, in_turns, line

_LISTING = "import sys, libtmux; print(libtmux.Server(socket_path=sys.argv[1]).sessions)"


def measure(effort: Effort) -> Table:
    with ExitStack() as stack:
        sides: dict[str, Talking] = {}
        for kind in (Product, Raw, Orchestrator):
            site, reports = stack.enter_context(place())
            side = sides[kind.name] = kind(site, reports, reports.waiting)
            stack.callback(side.end)
            side.open("one", 1)
            reports.all_ready(1)
        commands = _commands(effort, sides)
        product, orchestrator = sides[MAS], sides[CAO]
        assert isinstance(product, Product)
        assert isinstance(orchestrator, Orchestrator)
        servers = in_turns(
            "server start",
            effort.repeats(5),
            {MAS: lambda: _start(product), CAO: lambda: _start(orchestrator)},
        )
    took = {name: found["start"] for name, found in servers.items()}
    start = line("server start → GET /health answers", took[MAS], *("has no server",) * 3, took[CAO])
    return Table(
        "Server and commands",
        (start, *commands),
        (
            "Both servers come up beside one session with one agent.",
            "Help: `mas --help`, `tmux -V`, `import libtmux` in a fresh Python, `tmuxp --help`, `cao --help`. List:"
            " `mas list`, `tmux list-sessions`, a script with libtmux, `cao session list` (which asks its server).",
        ),
    )


def _start(side: Product | Orchestrator) -> Numbers:
    side.server.stop()
    side.server.again()
    return {"start": side.server.took}


def _commands(effort: Effort, sides: dict[str, Talking]) -> list[Line]:
    socket = sides[RAW].site.user_socket
    mas, tmux, python = [os.path.join(BIN, "mas")], ["tmux", "-S", socket], [sys.executable]
    tmuxp, orchestrator = [*python, os.path.join(BIN, "tmuxp")], [os.path.join(cao.BIN, "cao")]
    helps = {
        MAS: [*mas, "--help"],
        RAW: ["tmux", "-V"],
        LIBTMUX: [*python, "-c", "import libtmux"],
        TMUXP: [*tmuxp, "--help"],
        CAO: [*orchestrator, "--help"],
    }
    lists = {
        MAS: [*mas, "list"],
        RAW: [*tmux, "list-sessions"],
        LIBTMUX: [*python, "-c", _LISTING, socket],
        CAO: [*orchestrator, "session", "list"],
    }

    def running(name: str, argv: Sequence[str]) -> Callable[[], Numbers]:
        env = sides.get(name, sides[RAW]).site.env
        return lambda: {"took": timed(lambda: subprocess.run(argv, env=env, capture_output=True, check=True))}

    helped = in_turns("command: help", effort.repeats(11), {name: running(name, helps[name]) for name in SIDES})
    listed = in_turns("command: list", effort.repeats(11), {name: running(name, lists[name]) for name in lists})
    numbers = {name: found["took"] for name, found in listed.items()}
    return [
        Line("command: help", {name: found["took"] for name, found in helped.items()}),
        line(
            "command: list one session",
            numbers[MAS],
            numbers[RAW],
            numbers[LIBTMUX],
            "lists files, not sessions",
            numbers[CAO],
        ),
    ]
