"""What processes use of the machine: one pass over all of them, and a cache of earlier results.

A caller that looks often keeps the `Meter`: processor use is measured since the last look, and the memory
of a process is looked at closely only if it may have changed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from threading import Lock
from typing import NamedTuple

from mas.runtime import proc

_TICKS = os.sysconf("SC_CLK_TCK")
# Smaller processes share next to nothing but programs and libraries.
_LARGE = (4 << 20) // proc.PAGE
# What a process shares may change without its doing.
_STALE = 10.0
_MOMENT = 0.2


# A session and an agent of it.
Whose = tuple[str, str]
# The same, and before it the directory that the session is in; nothing for what is no launcher.
_Role = tuple[str, str, str]
_NO_ROLE = ("", "", "")
_LAUNCHER = b"/mas/pane/__main__.py"
_ARGUMENTS = 4


class Use(NamedTuple):
    """What some processes take: cores since the last look, seconds in all, bytes."""

    cpu: float = 0.0
    cpu_seconds: float = 0.0
    memory: int = 0
    processes: int = 0


class Host(NamedTuple):
    """The machine: cores there are and in use, bytes of memory and of it free, how many processes."""

    cores: int
    cpu: float
    memory: int
    memory_free: int
    processes: int


class _Process(NamedTuple):
    parent: int
    begun: int
    ticks: int
    waited: int
    pages: int


class Meter:
    """Looks at all processes, and remembers what it saw."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._at: float | None = None
        self._seconds: dict[int, float] = {}
        self._busy = 0.0
        self._share = 0.0
        self._shares: dict[int, float] = {}
        self._memory: dict[int, tuple[int, int, float, int]] = {}
        self._roles: dict[tuple[int, int], _Role] = {}

    def look(self, sessions: str) -> tuple[dict[Whose, tuple[int, Use]], Host]:
        """What every agent of the sessions in that directory takes: its launcher, and all below that; and the machine.

        The first look waits a moment for a second one: a share needs two.
        """
        with self._lock:
            if self._at is None:
                processes = _processes()
                self._note_shares(tuple(self._launchers(sessions, processes)), processes)
                time.sleep(_MOMENT)
            processes = _processes()
            launchers = self._launchers(sessions, processes)
            uses, host = self._look(tuple(launchers), processes)
            return {launchers[pid]: (pid, use) for pid, use in uses.items()}, host

    def _launchers(self, sessions: str, processes: Mapping[int, _Process]) -> dict[int, Whose]:
        """The launchers of a workspace, by their arguments; one below another launcher does not count."""
        roles = {
            (pid, process.begun): self._roles.get((pid, process.begun)) or _role(pid)
            for pid, process in processes.items()
        }
        self._roles = {key: role for key, role in roles.items() if role}
        of_any = {pid: role for (pid, _), role in self._roles.items() if role != _NO_ROLE}

        def is_below_another(pid: int) -> bool:
            while pid in processes:
                pid = processes[pid].parent
                if pid in of_any:
                    return True
            return False

        return {
            pid: (role[1], role[2]) for pid, role in of_any.items() if role[0] == sessions and not is_below_another(pid)
        }

    def _look(self, launchers: tuple[int, ...], processes: Mapping[int, _Process]) -> tuple[dict[int, Use], Host]:
        trees = self._note_shares(launchers, processes)
        now = time.monotonic()
        found = {}
        known = {}
        for launcher, tree in trees.items():
            for pid in tree:
                known[pid] = self._memory_of(pid, processes[pid], now)
            memory = sum(known[pid][3] for pid in tree)
            found[launcher] = Use(
                round(self._shares.get(launcher, 0.0), 3), round(self._seconds[launcher], 2), memory, len(tree)
            )
        self._memory = known
        memory, free = _machine_memory()
        return found, Host(os.cpu_count() or 1, round(self._share, 3), memory, free, len(processes))

    def _note_shares(self, launchers: tuple[int, ...], processes: Mapping[int, _Process]) -> dict[int, list[int]]:
        """How much of the processor each used since the last look; returns the processes below each launcher."""
        now = time.monotonic()
        trees = proc.trees(
            (pid for pid in launchers if pid in processes), {pid: one.parent for pid, one in processes.items()}
        )
        seconds = {
            launcher: sum(processes[pid].ticks + processes[pid].waited for pid in tree) / _TICKS
            for launcher, tree in trees.items()
        }
        busy = _busy_seconds()
        passed = now - self._at if self._at is not None else 0.0
        # Two looks at once, by two who ask: what was seen last still holds.
        if self._at is None or passed >= _MOMENT / 2:
            if passed:
                self._shares = {
                    launcher: max(0.0, taken - self._seconds[launcher]) / passed
                    for launcher, taken in seconds.items()
                    if launcher in self._seconds
                }
                self._share = max(0.0, busy - self._busy) / passed
            self._at, self._busy = now, busy
            self._seconds = seconds
        else:
            self._seconds = {**seconds, **{pid: self._seconds[pid] for pid in seconds if pid in self._seconds}}
        return trees

    def _memory_of(self, pid: int, process: _Process, now: float) -> tuple[int, int, float, int]:
        """When the process began, its size, when it was looked at closely, and its memory as seen then."""
        before = self._memory.get(pid)
        if before and before[:2] == (process.begun, process.pages) and now < before[2] + _STALE:
            return before
        memory = proc.shared_once(pid) if process.pages >= _LARGE else None
        if memory is None:
            memory = proc.own_memory(pid)
        # Not all at the same time again.
        return process.begun, process.pages, now - (pid % 16) / 16 * _STALE / 2, memory


def _processes() -> dict[int, _Process]:
    return {
        pid: _Process(
            parent=int(fields[1]),
            begun=int(fields[19]),
            ticks=int(fields[11]) + int(fields[12]),
            waited=int(fields[13]) + int(fields[14]),
            pages=int(fields[21]),
        )
        for pid, _, fields in proc.living()
    }


def _role(pid: int) -> _Role | None:
    """Whose launcher a process is, or will be once it need not wait any more; None if that may yet change."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read(1 << 14).split(b"\0")[:-1]
    except OSError:
        return None
    if words and words[0].endswith(b"tmux"):
        # A server, or what it has just forked.
        return None
    if len(words) < _ARGUMENTS or not words[-3].endswith(_LAUNCHER):
        return _NO_ROLE
    directory, session = os.path.split(os.path.realpath(os.fsdecode(words[-2])))
    return directory, session, os.fsdecode(words[-1])


def _machine_memory() -> tuple[int, int]:
    """How much there is, and how much of it programs can still have."""
    import psutil

    memory = psutil.virtual_memory()
    return memory.total, memory.available


def _busy_seconds() -> float:
    """For how long the processors have worked, all together."""
    import psutil

    times = psutil.cpu_times()
    # What guests took is part of what users did.
    return float(sum(times) - times.idle - getattr(times, "iowait", 0.0) - getattr(times, "guest", 0.0))
