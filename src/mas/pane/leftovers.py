"""What an agent left behind below the launcher: find it, end it, leave none."""

from __future__ import annotations

import os
import time

from mas.pane.processes import SIGKILL
from mas.runtime.proc import descendants


def left_behind(keepers: tuple[int, ...] = ()) -> dict[int, str]:
    """What the agent left below this process. As a rule nothing, which is seen without a look at all processes."""
    if not _reap() or _is_alone((os.getpid(), *keepers)):
        return {}
    return {pid: name for pid, name in descendants(os.getpid()).items() if pid not in keepers}


def kill_descendants(deadline: float, keepers: tuple[int, ...] = ()) -> list[int]:
    """End everything below this process and reap it; returns what did not end by the deadline."""
    if keepers:
        _kill_keeper(keepers[0])
    while _reap():
        left = descendants(os.getpid())
        for pid in left:
            try:
                os.kill(pid, SIGKILL)
            except (ProcessLookupError, PermissionError):
                # Gone, or another user's, such as what `sudo` runs: not ours to end.
                continue
        if time.monotonic() > deadline:
            return list(left)
        # Killed processes become our zombies within moments; look again then.
        time.sleep(0.002)
    return []


def _is_alone(pids: tuple[int, ...]) -> bool:
    """Whether these processes have no other child than each other; False if unknown."""
    for pid in pids:
        try:
            with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:
                if not {int(word) for word in file.read().split()} <= {*pids}:
                    return False
        except OSError:
            return False
    return True


def _kill_keeper(keeper: int) -> None:
    """Kill our child and, by that, all in its namespace; give them a moment, which is as a rule enough."""
    try:
        if os.waitpid(keeper, os.WNOHANG)[0]:
            return
        os.kill(keeper, SIGKILL)
        for _ in range(10):
            if os.waitpid(keeper, os.WNOHANG)[0]:
                return
            time.sleep(0.001)
    except ChildProcessError:
        return


def _reap() -> bool:
    """Collect what has ended; whether there are children still to wait for."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True
