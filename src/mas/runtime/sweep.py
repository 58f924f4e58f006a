"""Every process of a session: found by its parents and by the mark in its environment, and ended."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

# Set by the launcher alone, so that a person's shell with a session's environment is nobody's agent.
MARK = "MAS_PANE"
_LOOK_AGAIN = 0.005
_LONG_ENOUGH_TO_DIE = 0.02


def mark(session_id: str, agent: str) -> str:
    return f"{session_id}/{agent}"


def processes_of(session_id: str, roots: Iterable[int]) -> list[psutil.Process]:
    """The living processes of a session: everything below its launchers, and whatever carries its mark."""
    import psutil

    found: dict[int, psutil.Process] = {}
    children: dict[int, list[int]] = {}
    processes = {process.pid: process for process in psutil.process_iter()}
    for process in processes.values():
        try:
            children.setdefault(process.ppid(), []).append(process.pid)
            if process.environ().get(MARK, "").startswith(f"{session_id}/"):
                found[process.pid] = process
        except (psutil.Error, OSError):
            continue
    below = list(roots)
    while below:
        pid = below.pop()
        if pid in processes:
            found[pid] = processes[pid]
        below += children.get(pid, ())
    found.pop(os.getpid(), None)
    return [process for process in found.values() if _lives(process)]


def end_processes(session_id: str, known: list[psutil.Process], grace: float) -> list[int]:
    """Wait up to `grace` for the processes to end, then kill them; answers what would not die."""
    import psutil

    left = _left_after(known, grace)
    deadline = time.monotonic() + grace
    while left := [*left, *(process for process in processes_of(session_id, ()) if process not in left)]:
        for process in left:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        left = _left_after(left, _LONG_ENOUGH_TO_DIE)
        if time.monotonic() > deadline:
            break
    return [process.pid for process in left]


def _left_after(processes: list[psutil.Process], patience: float) -> list[psutil.Process]:
    """Those still alive once all have ended or `patience` has. A zombie has ended, whenever its parent looks."""
    deadline = time.monotonic() + patience
    while (left := [process for process in processes if _lives(process)]) and time.monotonic() < deadline:
        time.sleep(_LOOK_AGAIN)
    return left


def _lives(process: psutil.Process) -> bool:
    import psutil

    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
