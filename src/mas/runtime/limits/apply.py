"""What the launcher's child process does first: it enters its control groups and sets its limits.

Imports next to nothing, because it runs once per agent.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mas.model.launch import LimitPlan

# The kernel ends agents before tmux, the launchers or a person's programs when memory runs out.
_FIRST_TO_GO = b"500"


def enter(plan: LimitPlan, alone: bool) -> None:
    """Enter the agent's control groups and set its limits; `OSError` if that is refused.

    How many processes there may be is limited only in a user namespace of the agent's own, where it is `alone`:
    elsewhere the kernel would count everything that the same user runs.
    """
    for group in plan.groups:
        _write(f"{group}/cgroup.procs", b"0")
    try:
        _write("/proc/self/oom_score_adj", _FIRST_TO_GO)
    except OSError:
        # It was given more than that, or there is no such thing here.
        pass
    import resource

    for most, kind in (
        (plan.files, resource.RLIMIT_NOFILE),
        (plan.file_size, resource.RLIMIT_FSIZE),
        (plan.data, resource.RLIMIT_DATA),
        (plan.processes if alone else None, resource.RLIMIT_NPROC),
    ):
        if most is not None:
            _set(kind, most)


def user_namespace() -> str | None:
    """The user namespace this process is in."""
    try:
        return os.readlink("/proc/self/ns/user")
    except OSError:
        return None


def _set(kind: int, most: int) -> None:
    import resource

    hard = resource.getrlimit(kind)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))


def _write(path: str, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)
