"""Many sessions of one agent: how long a listing takes, and what all of it costs while nothing happens."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial

import psutil
from tests.site import Site, until

from benchmarks.measure import timed
from benchmarks.peers.bare import Libtmux, Raw
from benchmarks.peers.cao import Orchestrator
from benchmarks.peers.product import Product
from benchmarks.peers.sides import CAO, LIBTMUX, MAS, RAW, Talking, place
from benchmarks.peers.table import FAILURES, Effort, Line, Numbers, Table, in_turns, line, say

_NO_LIST = "lists files, not sessions"
_NOTHING = "nothing stays running"
_CALLERS = 8
_PATIENCE = 60.0
_MIB = 1 << 20


def measure(effort: Effort) -> tuple[Table, Table]:
    with ExitStack() as stack:
        sides: dict[str, Talking] = {}
        for kind in (Product, Raw, Orchestrator):
            site, reports = stack.enter_context(place())
            sides[kind.name] = kind(site, reports, reports.waiting)
            stack.callback(sides[kind.name].end)
        raw = sides[RAW]
        sides[LIBTMUX] = Libtmux(raw.site, raw.reports, raw.program)
        lists = [_listing(effort, sides, 1)]
        for name in (MAS, RAW, CAO):
            say(f"{effort.crowd} sessions: {name}")
            _fill(sides[name], effort.crowd)
        lists.append(_listing(effort, sides, effort.crowd))
        say(f"idle: {effort.idle_seconds:.0f} s")
        idle = _idle(effort, sides)
    return (
        Table(
            "Listing sessions",
            tuple(lists),
            (
                "MAS and CAO: GET /sessions on a kept connection, answer read and parsed; tmux: one `list-sessions`"
                " as a process; libtmux: `server.sessions` in a process that runs.",
                "MAS reads the state of every session from its files and from tmux, CAO from tmux and its database,"
                " the others know tmux alone.",
            ),
        ),
        Table(
            f"Idle with {effort.crowd} agents",
            tuple(idle),
            (
                f"{effort.crowd} sessions of one waiting agent each, over the same"
                f" {effort.idle_seconds:.0f} seconds for all; the agents' own programs are not counted.",
                "Memory is proportional: a page that several processes share counts once.",
                "All of it: tmux servers (MAS gives sessions one of their own once the user's is crowded), MAS's"
                " launcher and CAO's login shell and pipe reader of each agent, and every process the server starts.",
            ),
        ),
    )


def _fill(side: Talking, count: int) -> None:
    names = iter(range(10 * count))

    def open_one(_: int) -> None:
        try:
            side.open(f"crowd{next(names)}", 1)
        except FAILURES as error:
            say(f"{side.name} failed: {error}")
            side.open(f"crowd{next(names)}", 1)

    with ThreadPoolExecutor(_CALLERS) as pool:
        list(pool.map(open_one, range(1, count)))
    until(lambda: side.list() == count, f"{count} sessions of {side.name}")
    side.reports.restarts(count - 1, _PATIENCE)


def _listing(effort: Effort, sides: dict[str, Talking], count: int) -> Line:
    if count == 1:
        for name in (MAS, RAW, CAO):
            sides[name].open("first", 1)
            sides[name].reports.all_ready(1)

    def work(side: Talking) -> Callable[[], Numbers]:
        return lambda: {"list": timed(lambda: _list(side, count))}

    works = {name: work(side) for name, side in sides.items()}
    found = in_turns(f"list {count}", effort.repeats(20), works)
    many = f"{count} session{'' if count == 1 else 's'}"
    numbers = {name: took["list"] for name, took in found.items()}
    return line(f"list {many}", numbers[MAS], numbers[RAW], numbers[LIBTMUX], _NO_LIST, numbers[CAO])


def _list(side: Talking, count: int) -> None:
    found = side.list()
    if found != count:
        raise RuntimeError(f"{side.name} lists {found} of {count} sessions")


def _idle(effort: Effort, sides: dict[str, Talking]) -> list[Line]:
    product, orchestrator = sides[MAS], sides[CAO]
    assert isinstance(product, Product)
    assert isinstance(orchestrator, Orchestrator)
    whole = {name: partial(_around, sides[name].site) for name in (MAS, RAW, CAO)}
    servers = {name: psutil.Process(side.server.pid) for name, side in ((MAS, product), (CAO, orchestrator))}
    before = {name: _cpu(members()) for name, members in whole.items()}
    server_before = {name: _cpu(_family(server)) for name, server in servers.items()}
    begun = time.monotonic()
    time.sleep(effort.idle_seconds)
    server_cpu = {name: _share(_cpu(_family(server)), server_before[name], begun) for name, server in servers.items()}
    cpu = {name: _share(_cpu(members()), before[name], begun) for name, members in whole.items()}
    server_memory = {name: _memory(_family(server)) for name, server in servers.items()}
    memory = {name: _memory(members()) for name, members in whole.items()}
    none = ("has no server",) * 3
    same = (_NOTHING,) * 2
    return [
        line("CPU: the server", server_cpu[MAS], *none, server_cpu[CAO], unit="%"),
        line("CPU: all of it", cpu[MAS], cpu[RAW], *same, cpu[CAO], unit="%"),
        line("memory: the server", server_memory[MAS], *none, server_memory[CAO], unit="MiB"),
        line("memory: all of it", memory[MAS], memory[RAW], *same, memory[CAO], unit="MiB"),
    ]


def _around(site: Site) -> list[psutil.Process]:
    """Every process of a site that is not an agent's own program."""
    found = []
    for process in site.processes():
        with suppress(psutil.Error):
            if process.name() != "sleep":
                found.append(process)
    return found


def _family(process: psutil.Process) -> list[psutil.Process]:
    return [process, *process.children(recursive=True)]


def _cpu(processes: list[psutil.Process]) -> dict[int, float]:
    """Seconds of each, and of the children that it has seen end."""
    found = {}
    for process in processes:
        with suppress(psutil.Error):
            spent = process.cpu_times()
            found[process.pid] = spent.user + spent.system + spent.children_user + spent.children_system
    return found


def _share(after: dict[int, float], before: dict[int, float], begun: float) -> float:
    """Percent of one core since then."""
    spent = sum(seconds - before.get(pid, 0.0) for pid, seconds in after.items())
    return 100 * spent / (time.monotonic() - begun)


def _memory(processes: list[psutil.Process]) -> float:
    total = 0
    for process in processes:
        with suppress(psutil.Error):
            full = process.memory_full_info()
            total += getattr(full, "pss", full.uss)
    return total / _MIB
