"""The first process of an agent's process namespace: small, no open files, and all others end with it."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found] # `signal` would import `enum`: a third of the launcher's start
import os
import select

from mas.runtime.sandbox.system import PR_SET_DUMPABLE, PR_SET_NAME, Buffer, die_with_parent, prctl

# How long what an agent left may be looked at from outside before it is ended here.
_LOOK = 5000
# No process here has opened more descriptors than this.
_MANY = 1 << 10
# A program that does nothing takes a twentieth of the memory that Python would.
_IDLE = ("/bin/sleep", "/usr/bin/sleep")
_FOR_EVER = "2147483647"


def keep_namespace(report: int, built: int) -> None:
    """Be there until killed, and with it everything in the namespace, or the parent ends. Does not return.

    From `built` an end can be read once the view of the file system is complete: before, there may be no programs.
    """
    die_with_parent()
    # Then the kernel itself reaps orphans; the setting survives `exec`.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    if _is_alone(report, 0):
        os._exit(0)
    os.setsid()
    os.read(built, 1)
    os.chdir("/")
    os.closerange(0, _MANY)
    for path in _IDLE:
        try:
            os.execve(path, ["sleep", _FOR_EVER], {})  # noqa: S606 - no shell, on purpose
        except OSError:
            continue
    while True:
        signal.pause()


def keep_agent(agent: int, ended: int) -> None:
    """Stay until the agent exits, write its status to `ended`, and end with all it left. Does not return."""
    # Nothing of this process is for the agent to see, which has the same user.
    prctl(PR_SET_DUMPABLE, 0)
    name = Buffer(b"mas-init\0")
    prctl(PR_SET_NAME, name.address)
    os.closerange(0, ended)
    os.closerange(ended + 1, _MANY)
    status = None
    while status is None:
        pid, how = os.waitpid(-1, 0)
        status = how if pid == agent else None
    try:
        os.write(ended, status.to_bytes(4, "little"))
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        _is_alone(ended, _LOOK)
    except (ChildProcessError, BrokenPipeError):
        # Nothing is left, or no process is there to look.
        pass
    os._exit(0)


def _is_alone(pipe: int, patience: int) -> bool:
    """Whether the other end of a pipe is closed, after at most `patience` milliseconds."""
    poll = select.poll()
    poll.register(pipe, 0)
    return bool(poll.poll(patience))
