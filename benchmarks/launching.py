"""The launcher: what it adds between tmux and an agent's program."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from statistics import median

from tests.site import Site

import mas.pane
from benchmarks.arena import arena
from benchmarks.floor import RawTmux, opening
from benchmarks.measure import Effort, Group, Row, in_turns
from mas.model.ids import SessionId
from mas.model.launch import LaunchPlan, StatePlan
from mas.model.run import Run
from mas.service.local import LocalMas
from mas.settings import ServerMode
from mas.store.agent.launch_plan import launch_path, write_plan

_LAUNCHER = os.path.join(os.path.dirname(mas.pane.__file__), "__main__.py")
_TEAM_SIZE = 13
# Lines as a program with a screen draws them: colours, positions, other letters than ASCII.
_LINE = "\\x1b[38;5;12m\\u2502 caf\\xe9 \\x1b[0m\\x1b[10;20H\\u280b Working (12s)\\x1b[K\\r\\n"
_FLOOD = [
    sys.executable,
    "-c",
    f"import os\ndata = '{_LINE}'.encode() * 1000\nfor _ in range(32_000_000 // len(data)):\n"
    "    rest = data\n    while rest:\n        rest = rest[os.write(1, rest):]\n",
]


def measure(effort: Effort) -> Group:
    with arena() as site:
        directory = _session_for_one(site, "one", ["/bin/echo", "here"])
        launcher = [sys.executable, "-ISE", _LAUNCHER, directory, "00"]
        cpu: list[list[float]] = [[], []]
        through, direct, empty = in_turns(
            effort.repeats(25),
            lambda: _first_byte(launcher, cpu[0]),
            lambda: _first_byte(["/bin/echo", "here"], []),
            lambda: _first_byte([sys.executable, "-ISE", "-c", "pass"], cpu[1]),
        )
        flood_through, flood_direct = in_turns(
            effort.repeats(5),
            lambda: _flood([sys.executable, "-ISE", _LAUNCHER, _session_for_one(site, "flood", _FLOOD), "00"]),
            lambda: _flood(_FLOOD),
        )
        raw = RawTmux(site, site.user_socket)
        os.makedirs(os.path.dirname(raw.socket), mode=0o700)
        raw.keep()
        all_started = Started(site)
        mas_team, tmux_team = in_turns(
            effort.repeats(9),
            lambda: all_started.by_mas(site.local(ServerMode.AUTO)),
            lambda: all_started.by_tmux(raw),
        )
    python = "python -ISE -c pass"
    return Group(
        "The launcher (for information)",
        (
            Row("launcher: start → the program's first byte, less the program's own", through - direct, python, empty),
            Row("launcher: CPU of its whole life", median(cpu[0]), python, median(cpu[1])),
            Row("launcher: 32 MB of an agent's output through it", flood_through, "its terminal alone", flood_direct),
            Row("start 13 agents until each program really runs", mas_team, "tmux alone, same programs", tmux_team),
        ),
    )


def _session_for_one(site: Site, name: str, argv: list[str]) -> str:
    directory = os.path.join(site.directory, name)
    for path in (os.path.dirname(launch_path(directory, "00")), *(os.path.join(directory, x) for x in ("logs",))):
        os.makedirs(path, exist_ok=True)
    os.makedirs(os.path.join(directory, "unit", "00"), exist_ok=True)
    plan = LaunchPlan(argv=tuple(argv), env={}, nofile=1024, states=StatePlan(sources=("osc7501",)))
    write_plan(launch_path(directory, "00"), plan)
    return directory


def _flood(argv: list[str]) -> float:
    """Seconds that a program and whatever is around it take to print it all to a terminal that is read at once."""
    master, slave = os.openpty()
    process = subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    begun = 0.0
    try:
        while os.read(master, 1 << 16):
            begun = begun or time.perf_counter()
    except OSError:
        # All have closed it.
        pass
    took = time.perf_counter() - begun
    process.wait()
    os.close(master)
    return took


def _first_byte(argv: list[str], cpu: list[float]) -> float:
    """Seconds until the program said something, or ended without a word; notes its CPU time too."""
    begun = time.perf_counter()
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read(1)
    took = time.perf_counter() - begun
    process.stdout.read()
    process.stdout.close()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    cpu.append(used.ru_utime + used.ru_stime)
    return took


class Started:
    """Thirteen programs that each say so through one pipe when they run."""

    def __init__(self, site: Site) -> None:
        self._fifo = os.path.join(site.directory, "started.fifo")
        os.mkfifo(self._fifo)
        self._reports = os.open(self._fifo, os.O_RDWR)
        self._program = ["sh", "-c", f"echo > {self._fifo}; exec sleep 1000"]

    def by_mas(self, product: LocalMas) -> float:
        begun = time.perf_counter()
        session = product.start(Run(command=f"sh -c '{self._program[2]}'"))
        took = self._all_since(begun)
        product.stop(SessionId(session.session_id))
        return took

    def by_tmux(self, raw: RawTmux) -> float:
        begun = time.perf_counter()
        raw.run(*opening("floor", lambda _: self._program))
        took = self._all_since(begun)
        raw.close("floor")
        return took

    def _all_since(self, begun: float) -> float:
        for _ in range(_TEAM_SIZE):
            os.read(self._reports, 1)
        return time.perf_counter() - begun
