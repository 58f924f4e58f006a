"""Agents up: one, and a team of thirteen, until the caller has its answer and until each program runs."""

from __future__ import annotations

import time
from contextlib import ExitStack
from functools import partial
from itertools import count

from benchmarks.peers.bare import Libtmux, Raw, Tmuxp
from benchmarks.peers.cao import Orchestrator
from benchmarks.peers.product import Product
from benchmarks.peers.server import Refused
from benchmarks.peers.sides import CAO, LIBTMUX, MAS, RAW, SIDES, TEAM_SIZE, TMUXP, Side, place
from benchmarks.peers.table import Effort, Line, Numbers, Table, in_turns, line

_NAMES = (f"up{number}" for number in count())
_WALLS = "MAS, isolated"


def measure(effort: Effort) -> Table:
    with ExitStack() as stack:
        sides: dict[str, Side] = {}
        for kind in (Product, Raw, Libtmux, Tmuxp, Orchestrator):
            site, reports = stack.enter_context(place())
            sides[kind.name] = kind(site, reports, reports.waiting)
            stack.callback(sides[kind.name].end)
        lines = [*_lines(sides, 1, effort.repeats(5)), *_lines(sides, TEAM_SIZE, effort.repeats(5))]
    return Table(
        "Agents up",
        tuple(lines),
        (
            "Every pane runs the same small shell script, which reports through a pipe that it runs, and sleeps.",
            "MAS returns when every pane is open and session, registry and journal are on the disk; its launcher"
            " (a process for each agent that records and guards it) then starts the program.",
            "CAO returns when it has seen the program's prompt: it waits for a login shell to be quiet, types the"
            " program's name into it and looks each second. Its team is one request and then twelve at once.",
            "“Isolated” is MAS by default, with namespaces and Landlock around each agent; the line above is without,"
            " like the others.",
        ),
    )


def _lines(sides: dict[str, Side], agents: int, repeats: int) -> list[Line]:
    what = "1 agent" if agents == 1 else f"{agents} agents"
    works = {name: partial(_open, side, agents) for name, side in sides.items()}
    product = sides[MAS]
    assert isinstance(product, Product)
    isolates = _isolates(product)
    if isolates:
        works[_WALLS] = partial(_open_isolated, product, agents)
    found = in_turns(f"{what} up", repeats, works)
    lines = [
        Line(f"{what} up: until each program runs", {name: found[name]["runs"] for name in SIDES}),
        Line(f"{what} up: until the caller has its answer", {name: found[name]["answered"] for name in SIDES}),
    ]
    isolated = found[_WALLS]["runs"] if isolates else "not on this machine"
    none = dict.fromkeys((RAW, LIBTMUX, TMUXP, CAO), "has none")
    return [lines[0], line(f"{what} up, isolated: until each program runs", isolated, *none.values()), lines[1]]


def _open(side: Side, agents: int) -> Numbers:
    session = next(_NAMES)
    side.reports.forget()
    begun = time.monotonic()
    side.open(session, agents)
    answered = time.monotonic() - begun
    runs = side.reports.all_ready(agents) - begun
    side.close(session)
    return {"answered": answered, "runs": runs}


def _isolates(product: Product) -> bool:
    """Whether this machine has what walls are made of."""
    try:
        _open_isolated(product, 1)
    except Refused:
        return False
    return True


def _open_isolated(product: Product, agents: int) -> Numbers:
    with product.isolating():
        return _open(product, agents)
