"""`python -m benchmarks.soak`: hundreds of teams alive at once, with memory and latency over time.

Teams of 13 are started through the server until there are enough of them or the machine has no more room, then kept
for a while. Now and then the server is asked for what people ask for, and the clock stopped. At the end a checker that
shares nothing with the product counts who is alive, all are stopped, and it looks again.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import NamedTuple

import httpx
import psutil
from tests.checker import World
from tests.e2e.standin import start_receivers
from tests.served import Served
from tests.torture.report import machine, put, table

from benchmarks.arena import arena
from benchmarks.overtime import Line, drawing

_TEAM = 13
# tmux's and the launcher's own.
_TERMINALS_EACH = 2
_SPARE_TERMINALS = 200
_SPARE_MEMORY = 2 << 30
_BETWEEN = 10.0
_ASLEEP = {"agents": {}, "provider": "asleep"}
_PTY = "/proc/sys/kernel/pty"
_MIB = 1 << 20


class Sample(NamedTuple):
    """One look: how many sessions there are, what is in use, and how many seconds each request took."""

    at: float
    sessions: int
    memory: float
    server: float
    start: float
    listing: float
    show: float
    message: float


class Soak:
    """The crowd, and who asks about it."""

    def __init__(self, served: Served, client: httpx.Client) -> None:
        self._served = served
        self._client = client
        self._before = psutil.virtual_memory().available
        self._began = time.monotonic()
        self._probe = start_receivers(served.site)
        self.sessions: list[str] = []
        self.samples: list[Sample] = []

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def grow(self, wanted: int, deadline: float) -> str:
        """Start teams until there are so many; answers why not more."""
        looked = 0.0
        while len(self.sessions) < wanted:
            if psutil.virtual_memory().available < _SPARE_MEMORY:
                return "the memory is used up"
            if time.monotonic() > deadline:
                return "the time was over"
            took = _timed(self._start)
            if self.seconds - looked > _BETWEEN:
                self._sample(took)
                looked = self.seconds
        return "as many as asked for"

    def hold(self, seconds: float) -> None:
        """Keep them, and look now and then; each time one team goes and another comes."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self._client.post(f"/sessions/{self.sessions.pop(0)}/stop").raise_for_status()
            self._sample(_timed(self._start))
            time.sleep(_BETWEEN)

    def living(self) -> int:
        """How many agents of ours live, by tmux's own word; the probe's is not one of them."""
        names = {f"mas-{session[:8]}" for session in self.sessions}
        return sum(not pane.dead and pane.tmux_session in names for pane in World(self._served.site).panes)

    def problems(self) -> list[str]:
        return list(World(self._served.site).problems())

    def _start(self) -> None:
        answer = self._client.post("/runs", json=_ASLEEP)
        answer.raise_for_status()
        self.sessions.append(answer.json()["sessionId"])

    def _sample(self, start: float) -> None:
        detail = f"/sessions/{self.sessions[-1]}"
        message = {"target": "00", "message": "Are you there?", "wait": 30}
        sample = Sample(
            self.seconds,
            len(self.sessions),
            (self._before - psutil.virtual_memory().available) / _MIB,
            psutil.Process(self._served.pid).memory_info().rss / _MIB,
            start,
            self._median(lambda: self._client.get("/sessions")),
            self._median(lambda: self._client.get(detail)),
            self._median(lambda: self._client.post(f"/sessions/{self._probe}/messages", json=message)),
        )
        self.samples.append(sample)
        took = (sample.start, sample.listing, sample.show, sample.message)
        shown = "  ".join(
            f"{name} {1000 * seconds:.0f}"
            for name, seconds in zip(("start", "list", "show", "message"), took, strict=True)
        )
        used = f"{sample.memory:.0f} MiB, server {sample.server:.0f} MiB"
        print(f"{sample.at:5.0f} s  {sample.sessions:4} sessions  {used}; ms: {shown}", flush=True)

    def _median(self, ask: Callable[[], httpx.Response]) -> float:
        return median(_timed(lambda: ask().raise_for_status()) for _ in range(3))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--sessions", type=int, default=300, help=f"of {_TEAM} agents each")
    parser.add_argument("--grow", type=float, default=15.0, help="start no new ones after so many minutes")
    parser.add_argument("--hold", type=float, default=3.0, help="keep them for so many minutes")
    parser.add_argument("--report", metavar="FILE", help="write figures and a drawing into this document")
    args = parser.parse_args()
    # Told to end, it still puts everything away.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with _terminals(args.sessions) as most, arena() as site:
        _write_provider(site.path("providers"))
        served = Served(site)
        try:
            with served.client(timeout=600) as client:
                soak = Soak(served, client)
                why = soak.grow(min(args.sessions, most), time.monotonic() + 60 * args.grow)
                why = why if most >= args.sessions else f"{why}; terminals for {most} only, and no right to have more"
                print(f"{len(soak.sessions)} sessions ({why})", flush=True)
                soak.hold(60 * args.hold)
                living, problems = soak.living(), soak.problems()
                began = time.monotonic()
                site.mas("stop", "--all", timeout=1800)
                stopped = time.monotonic() - began
                problems += soak.problems()
        finally:
            served.close()
    if living != _TEAM * len(soak.sessions):
        problems.append(f"{living} agents live in {len(soak.sessions)} sessions")
    print(f"{living} agents lived; all stopped in {stopped:.0f} s; problems: {len(problems)}")
    for problem in problems[:20]:
        print(f"  {problem}")
    if args.report:
        _write_report(args.report, soak, why, living, stopped, problems)
    return 1 if problems else 0


@contextmanager
def _terminals(sessions: int) -> Iterator[int]:
    """For how many sessions the machine has terminals; as root it is given more, for as long as this lasts."""
    before, used = (_number(name) for name in ("max", "nr"))
    wanted = used + _SPARE_TERMINALS + sessions * _TEAM * _TERMINALS_EACH
    path = os.path.join(_PTY, "max")
    raised = wanted > before and os.access(path, os.W_OK)
    if raised:
        _set_number(path, wanted)
    try:
        yield (max(before, wanted if raised else 0) - used - _SPARE_TERMINALS) // (_TEAM * _TERMINALS_EACH)
    finally:
        if raised:
            _set_number(path, before)


def _number(name: str) -> int:
    with open(os.path.join(_PTY, name), encoding="ascii") as file:
        return int(file.read())


def _set_number(path: str, number: int) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(str(number))


def _write_provider(directory: str) -> None:
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "asleep.toml"), "w", encoding="utf-8") as file:
        file.write('provider = { id = "asleep" }\n[launch]\nargv = ["sleep", "100000"]\n')


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _write_report(path: str, soak: Soak, why: str, living: int, stopped: float, problems: list[str]) -> None:
    samples = soak.samples
    picture = os.path.splitext(path)[0] + ".svg"
    with open(picture, "w", encoding="utf-8") as file:
        file.write(
            drawing(
                [sample.at for sample in samples],
                Line("memory in use, GiB", [sample.memory / 1024 for sample in samples]),
                Line("sessions", [float(sample.sessions) for sample in samples]),
                Line("GET /sessions, ms", [1000 * sample.listing for sample in samples]),
                Line("message to its acknowledgement, ms", [1000 * sample.message for sample in samples]),
                Line("start of 13 agents, ms", [1000 * sample.start for sample in samples]),
            )
        )
    some = [samples[round(step * (len(samples) - 1) / 11)] for step in range(12)] if len(samples) > 12 else samples
    rows = [
        (
            f"{one.at:.0f} s", one.sessions, one.sessions * _TEAM, f"{one.memory / 1024:.1f}", f"{one.server:.0f}",
            *(f"{1000 * took:.0f}" for took in (one.start, one.listing, one.show, one.message)),
        )
        for one in some
    ]  # fmt: skip
    head = (
        "after", "sessions", "agents", "memory, GiB", "server, MiB",
        "start, ms", "GET /sessions, ms", "GET /sessions/{id}, ms", "message, ms",
    )  # fmt: skip
    found = "\n".join(f"- {problem}" for problem in problems) or "None."
    put(
        path,
        "soak",
        f"""## Soak

{machine()}.

{len(soak.sessions)} sessions of {_TEAM} ({why}), {living} agents alive at the end, counted by tmux;
each is a launcher and a program that sleeps, in panes of tmux servers as MAS places them. Memory is what the machine
has less of than before, with everything that tmux and the kernel need for it. One server handles all requests, on
a kept connection; `start` starts {_TEAM} agents, `message` ends when the agent has acknowledged it.
Meanwhile one team is stopped and another started every {_BETWEEN:.0f} seconds. One `mas stop --all` stopped all of them
in {stopped:.0f} s.

![Memory and latency over time]({os.path.basename(picture)})

{table(head, rows)}

**Problems**

{found}
""",
    )


if __name__ == "__main__":
    sys.exit(main())
