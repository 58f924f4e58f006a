"""The first process of an agent's own process namespace: small, deaf, and the end of all others when it ends."""

from __future__ import annotations

import os
import select

from mas.runtime.sandbox.system import PR_SET_DUMPABLE, PR_SET_NAME, Buffer, prctl

# How long what an agent left may be looked at from outside before it is ended here.
_LOOK = 5000
# More descriptors than this nobody here has opened.
_MANY = 1 << 10


def keep(agent: int, ended: int) -> None:
    """Stay until the agent ends, tell its status through `ended`, and end with all it left. Does not return."""
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
        _wait_for_a_look(ended)
    except (ChildProcessError, BrokenPipeError):
        # Nothing is left, or nobody is there to look.
        pass
    os._exit(0)


def _wait_for_a_look(ended: int) -> None:
    poll = select.poll()
    poll.register(ended, 0)
    poll.poll(_LOOK)
