"""The agent's process, and how the kernel ties it to the launcher."""

from __future__ import annotations

from mas.model.launch import MARK_LIMIT

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


def mark_descendants(number: int) -> None:
    """Mark this process and all that it starts, in a way that outlives every parent, terminal and variable (Linux)."""
    import resource

    try:
        resource.setrlimit(MARK_LIMIT, (number, number))
    except (OSError, ValueError):
        # Not Linux, or in a pane of another session, whose lower mark stays.
        return


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
