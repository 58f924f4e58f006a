"""What the launcher's child process does first: it enters its control groups and sets its limits.

Imports next to nothing, because it runs once per agent. All of it is told by the launch file's options:

- `limit_groups`: control groups to enter, a line each
- `limit_files`, `limit_file_size`, `limit_data`: limits of the process and of all it starts
- `limit_processes`: how many there may be, where no control group counts them
"""

from __future__ import annotations

import os

# The kernel ends agents before tmux, the launchers or a person's programs when memory runs out.
_FIRST_TO_GO = b"500"


def enter(options: dict[str, str], alone: bool) -> None:
    """Enter the agent's control groups and set its limits; `OSError` if that is refused.

    How many processes there may be is limited only in a user namespace of the agent's own, where it is `alone`:
    elsewhere the kernel would count everything that the same user runs.
    """
    for group in options.get("limit_groups", "").splitlines():
        _write(f"{group}/cgroup.procs", b"0")
    if "limits" not in options:
        return
    try:
        _write("/proc/self/oom_score_adj", _FIRST_TO_GO)
    except OSError:
        # It was given more than that, or there is no such thing here.
        pass
    import resource

    for name, kind in (
        ("limit_files", resource.RLIMIT_NOFILE),
        ("limit_file_size", resource.RLIMIT_FSIZE),
        ("limit_data", resource.RLIMIT_DATA),
    ):
        if name in options:
            _set(kind, int(options[name]))
    if alone and "limit_processes" in options:
        _set(resource.RLIMIT_NPROC, int(options["limit_processes"]))


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
