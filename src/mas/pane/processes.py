"""The processes below the launcher: find them, end them, leave none."""

from __future__ import annotations

import os
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
SIGKILL = 9


class Process:
    """A running agent as this process sees it."""

    __slots__ = ("ended", "keepers", "pid")

    def __init__(self, pid: int, keepers: tuple[int, ...] = (), ended: int = -1) -> None:
        self.pid = pid
        self.keepers = keepers
        """Processes of ours, a child of this one first, without which nothing of the agent lives."""
        self.ended = ended
        """Where its wait status, four bytes, can be read once it has ended; -1 if it is our child."""


def adopt_orphans() -> None:
    """Become the parent of everything the agent starts, however it detaches itself (Linux)."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Have the kernel end this process when its parent is killed (Linux)."""
    _prctl(PR_SET_PDEATHSIG, SIGKILL)


def _prctl(option: int, value: int) -> None:
    import _ctypes  # the C half of `ctypes`; all of it would cost 3 ms a start

    try:
        libc = _ctypes.dlopen(None, 0)  # type: ignore[arg-type] # None is this program with all it uses
        prctl = _ctypes.dlsym(libc, "prctl")
    except OSError:
        return
    _ctypes.call_function(prctl, (option, value, 0, 0, 0))


def descendants(pid: int) -> dict[int, str]:
    """Every living process below `pid` and its name; nothing where there is no /proc."""
    children: dict[int, list[int]] = {}
    names: dict[int, str] = {}
    try:
        numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return {}
    for number in numbers:
        try:
            with open(f"/proc/{number}/stat", "rb") as file:
                line = file.read()
        except OSError:
            continue
        # The name stands in brackets and may hold anything, brackets too.
        name, _, rest = line.partition(b"(")[2].rpartition(b")")
        fields = rest.split()
        if fields[0] == b"Z":
            continue
        names[number] = name.decode("utf-8", "replace")
        children.setdefault(int(fields[1]), []).append(number)
    found: dict[int, str] = {}
    below = [pid]
    while below:
        for child in children.get(below.pop(), ()):
            found[child] = names[child]
            below.append(child)
    return found


def left_behind(keepers: tuple[int, ...] = ()) -> dict[int, str]:
    """What the agent left below this process. As a rule nothing, which is seen without a look at all processes."""
    if not _reap() or _is_alone((os.getpid(), *keepers)):
        return {}
    return {pid: name for pid, name in descendants(os.getpid()).items() if pid not in keepers}


def kill_descendants(deadline: float, keepers: tuple[int, ...] = ()) -> list[int]:
    """End everything below this process and reap it; answers what would not die by the deadline."""
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
    """Whether these processes have no other child than each other; if that cannot be told, no."""
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
