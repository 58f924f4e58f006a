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
_LOOK_AGAIN = 0.02


def mark(session_id: str, agent: str) -> str:
    return f"{session_id}/{agent}"


def processes_of(session_id: str, roots: Iterable[int]) -> list[psutil.Process]:
    """The living processes of a session: everything below its launchers, and whatever carries its mark."""
    import psutil

    found: dict[int, psutil.Process] = {}
    for root in roots:
        try:
            launcher = psutil.Process(root)
            found |= {process.pid: process for process in (launcher, *launcher.children(recursive=True))}
        except psutil.Error:
            continue
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK, "").startswith(f"{session_id}/"):
                found[process.pid] = process
        except (psutil.Error, OSError):
            continue
    found.pop(os.getpid(), None)
    return [process for process in found.values() if _lives(process)]


def end_processes(session_id: str, known: list[psutil.Process], grace: float) -> list[int]:
    """Wait up to `grace` for the processes to end, then kill them; answers what would not die."""
    import psutil

    _, left = psutil.wait_procs(known, timeout=grace)
    deadline = time.monotonic() + grace
    while left := [*left, *(process for process in processes_of(session_id, ()) if process not in left)]:
        for process in left:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        _, left = psutil.wait_procs(left, timeout=_LOOK_AGAIN)
        if time.monotonic() > deadline:
            break
    return [process.pid for process in left]


def _lives(process: psutil.Process) -> bool:
    import psutil

    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
