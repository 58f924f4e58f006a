"""Messages: one to an idle agent, and thirteen at once while others ask for something else."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count
from statistics import median

from tests.site import until

from benchmarks.peers.bare import Libtmux, Raw
from benchmarks.peers.cao import Orchestrator
from benchmarks.peers.product import Product
from benchmarks.peers.sides import CAO, LIBTMUX, MAS, RAW, TEAM_SIZE, Talking, place, programs
from benchmarks.peers.table import FAILURES, Effort, Line, Numbers, Table, in_turns, line, say

_TEXT = "please look at the failing test and say what you think is wrong with it; " * 2
_NO_TEXT = "sends no text later"
_NUMBERS = count(1)
_BETWEEN = 0.005
_TYPED = "typed"


def measure(effort: Effort) -> Table:
    lines, typed = _messages(effort)
    lines += _bursts(effort)
    return Table(
        "Messages",
        tuple(lines),
        (
            f"A text of {len(numbered(0))} bytes to a program that asked for bracketed paste and tells when it has"
            " read the last of it, and its Enter.",
            "MAS writes a message to disk before it returns, types it when the agent is idle, and waits for the"
            " agent to say that it works on it. CAO writes a row to its database, marks it delivered and types it; its"
            " Enter follows a fixed 0.3 s later. tmux and libtmux type at once and keep nothing.",
            typed,
            "The burst: 13 callers, one message each, to the 13 idle agents of a session; meanwhile another client asks"
            " for the list of sessions again and again. The slowest of those requests is what is shown.",
        ),
    )


def numbered(number: int) -> str:
    return f"{_TEXT}[{number}]"


def open_sides(stack: ExitStack, agents: int) -> dict[str, Talking]:
    """Every side that can talk, each with a session of agents that listen."""
    sides: dict[str, Talking] = {}
    for kind in (Product, Raw, Libtmux, Orchestrator):
        site, reports = stack.enter_context(place())
        side = kind(site, reports, reports.listening)
        stack.callback(side.end)
        open_patiently(side, "talk", agents)
        sides[kind.name] = side
    return sides


def open_patiently(side: Talking, session: str, agents: int) -> None:
    """A session whose agents all listen; a tool that fails is asked once more."""
    try:
        side.open(session, agents)
    except FAILURES as error:
        say(f"{side.name} failed: {error}")
        until(lambda: not programs(side.site), "the end of what was begun")
        side.reports.forget()
        side.open(session, agents)
    side.reports.all_ready(agents)
    side.settle(session)


def _messages(effort: Effort) -> tuple[list[Line], str]:
    """The lines, and a word on the way that only one of them has."""
    with ExitStack() as stack:
        sides = open_sides(stack, 1)

        def sending(side: Talking) -> Callable[[], Numbers]:
            return lambda: _send(side, side.send)

        works = {name: sending(side) for name, side in sides.items()}
        orchestrator = sides[CAO]
        assert isinstance(orchestrator, Orchestrator)
        works[_TYPED] = lambda: _send(orchestrator, orchestrator.type)
        found = in_turns("message", effort.repeats(15), works)
    typed = f"CAO past its inbox (POST …/input): text at the program after {1000 * found[_TYPED]['text']:.0f} ms."
    return [
        _line("message: call → text at the program", found, "text"),
        _line("message: call → Enter at the program", found, "enter"),
    ], typed


def _line(work: str, found: dict[str, dict[str, float]], key: str) -> Line:
    return line(work, found[MAS][key], found[RAW][key], found[LIBTMUX][key], _NO_TEXT, found[CAO][key])


def _send(side: Talking, send: Callable[[str, int, str], None]) -> Numbers:
    number = next(_NUMBERS)
    begun = time.monotonic()
    send("talk", 0, numbered(number))
    times = {what: side.reports.last(what, [number]) - begun for what in ("text", "enter")}
    side.settle("talk")
    return times


def _bursts(effort: Effort) -> list[Line]:
    with ExitStack() as stack:
        sides = open_sides(stack, TEAM_SIZE)

        def bursting(side: Talking) -> Callable[[], Numbers]:
            return lambda: _burst(side)

        works = {name: bursting(side) for name, side in sides.items()}
        found = in_turns("burst of 13", effort.repeats(5), works)
    return [
        _line("13 messages at once: until the last text is at its program", found, "text"),
        _line("13 messages at once: until the last Enter is", found, "enter"),
        _line("… the slowest other request meanwhile", found, "slowest"),
        _line("… the same request when nothing happens", found, "quiet"),
    ]


def _burst(side: Talking) -> Numbers:
    numbers = [next(_NUMBERS) for _ in range(TEAM_SIZE)]
    quiet = [_listed(side) for _ in range(5)]
    others: list[float] = []
    over = threading.Event()
    asking = threading.Thread(target=_ask, args=(side, others, over))
    with ThreadPoolExecutor(TEAM_SIZE) as pool:
        asking.start()
        try:
            begun = time.monotonic()
            sent = [pool.submit(side.send, "talk", agent, numbered(number)) for agent, number in enumerate(numbers)]
            times = {what: side.reports.last(what, numbers) - begun for what in ("text", "enter")}
        finally:
            over.set()
            asking.join()
        for one in sent:
            one.result()
    side.settle("talk")
    return times | {"slowest": max(others), "quiet": median(quiet)}


def _ask(side: Talking, others: list[float], over: threading.Event) -> None:
    while True:
        others.append(_listed(side))
        if over.wait(_BETWEEN):
            return


def _listed(side: Talking) -> float:
    begun = time.perf_counter()
    side.list()
    return time.perf_counter() - begun
