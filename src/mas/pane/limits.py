"""An agent's use of the machine against its limits: checked by the launcher while it runs and when it exits.

If the agent is in a control group, the kernel counts and ends it, and this only reads the counts. Otherwise memory
and processes are summed up here and the agent is ended here. Only the agent's own processes are read, never all.
"""

from __future__ import annotations

import os

from mas.pane.processes import SIGKILL
from mas.runtime.proc import PAGE, children, descendants, has_children_lists, own_memory, pages, shared_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mas.model.launch import LimitPlan

_BETWEEN = 0.5
_BETWEEN_COUNTS = 2.0
_XFSZ = 25
# Exit codes of a program that a signal ended: its own, or as a shell or an init process reports it.
_KILLED = (-SIGKILL, 128 + SIGKILL)
_TOO_LARGE = (-_XFSZ, 128 + _XFSZ)


class LimitWatch:
    """The limits of one run of an agent. `warn` is called for those that were reached without ending it.

    All processes below this one are the agent's, except `spared`: they guard it, and report how it exited.
    """

    def __init__(self, plan: LimitPlan, spared: tuple[int, ...], now: float, warn: Callable[[str], None]) -> None:
        self.due: float | None = None
        """When to look, by the monotonic clock."""
        self._plan = plan
        self._spared = spared
        self._warn = warn
        self._ended_by = ""
        self._memory, self._processes = plan.most_memory, plan.most_processes
        self._counted = {what: self._count(what) for what in plan.counts}
        self._peak = _peak() if self._memory else 0
        if self._memory or self._processes or self._counted:
            self.due = now + _BETWEEN

    def look(self, now: float) -> None:
        """Check whether a limit has been reached, and end the agent if the kernel does not."""
        sums = self._memory or self._processes
        self.due = now + (_BETWEEN if sums else _BETWEEN_COUNTS)
        if sums:
            self._sum_up()
        for what in self._counted:
            if self._has_risen(what):
                self._warn(self._words(what))

    def ended(self, code: int) -> str:
        """Which limit ended the agent; nothing if none did."""
        if self._ended_by:
            return self._ended_by
        if code in _KILLED and "memory" in self._counted and self._has_risen("memory"):
            return self._words("memory")
        # One that grew faster than this looks was refused more by the kernel, and gave up.
        if code != 0 and self._memory and _peak() > max(self._memory, self._peak):
            return self._words("memory")
        if code in _TOO_LARGE and self._plan.file_size:
            return self._words("file_size")
        for what in self._counted:
            if self._has_risen(what):
                self._warn(self._words(what))
        return ""

    def _words(self, what: str) -> str:
        return self._plan.words.get(what, f"{what} limit reached")

    def _has_risen(self, what: str) -> bool:
        before, self._counted[what] = self._counted[what], self._count(what)
        return self._counted[what] > before

    def _count(self, what: str) -> int:
        """How often the kernel has held the agent to a limit."""
        path, word = self._plan.counts[what]
        if not path.startswith("/"):
            path = _in_own_group(path)
        try:
            with open(path, encoding="ascii") as file:
                return next((int(line.split()[1]) for line in file if line.startswith(f"{word} ")), 0)
        except OSError:
            return 0

    def _sum_up(self) -> None:
        pids = [pid for pid in below(os.getpid()) if pid not in self._spared]
        if self._processes and len(pids) > self._processes:
            self._end(pids, "processes")
        elif self._memory and resident(pids) > self._memory and proportional(pids) > self._memory:
            self._end(pids, "memory")

    def _end(self, pids: Iterable[int], what: str) -> None:
        self._ended_by = self._words(what)
        for pid in pids:
            try:
                os.kill(pid, SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue


def _peak() -> int:
    """The most memory that any process below this one had, of those that have ended."""
    import resource

    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10


def _in_own_group(name: str) -> str:
    """A file of the control group this launcher is in, which its agent is in too."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as file:
            own = next((line[3:].rstrip("\n") for line in file if line.startswith("0::")), "")
    except OSError:
        own = ""
    return f"/sys/fs/cgroup{own}/{name}"


def below(pid: int) -> list[int]:
    """Every process below one; the kernel keeps lists of them, or all have to be looked at."""
    if not has_children_lists():
        return list(descendants(pid))
    found: list[int] = []
    left = [pid]
    while left:
        parent = left.pop()
        try:
            left += children(parent)
        except OSError:
            # It has ended; what it started is the launcher's now, and below it.
            pass
        found.append(parent)
    return found[1:]


def resident(pids: Iterable[int]) -> int:
    """The memory of processes, with shared memory counted each time: fast, and never too little."""
    return sum(pages(pid)[0] for pid in pids) * PAGE


def proportional(pids: Iterable[int]) -> int:
    """The memory of processes, what they share counted once."""
    known = ((pid, shared_once(pid)) for pid in pids)
    # One not to be looked at so closely, or gone: what it has for itself.
    return sum(own_memory(pid) if memory is None else memory for pid, memory in known)
