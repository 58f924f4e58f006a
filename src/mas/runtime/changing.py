"""The turns of a shared tmux server: teams come and go one at a time, and no connection begins meanwhile.

tmux tells its control clients of each session that comes or goes. One that has connected, but not finished to say what
it is, makes tmux before 3.7 crash, and every team on that server with it. The lock is on the socket's directory, so
all workspaces that use the server share it, and no file is left behind.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager

# As long as tmux itself is waited for. A process that has waited longer goes on: one that was stopped stops no other.
_PATIENCE = 30.0
_LOOK_AGAIN = 0.002


def is_ours_alone(directory: str) -> bool:
    info = os.stat(directory, follow_symlinks=False)
    return stat.S_ISDIR(info.st_mode) and info.st_uid == os.getuid() and not info.st_mode & 0o077


@contextmanager
def changing(socket: str) -> Iterator[None]:
    """Opens or closes a team while no other process does, and none begins a connection."""
    with _locked(socket, fcntl.LOCK_EX, _PATIENCE):
        yield


@contextmanager
def unchanged(socket: str) -> Iterator[bool]:
    """Whether no team comes or goes on a server now; if so, none does until this ends."""
    with _locked(socket, fcntl.LOCK_SH, 0.0) as locked:
        yield locked


@contextmanager
def _locked(socket: str, kind: int, patience: float) -> Iterator[bool]:
    """Whether the lock could be had; also if there is none that other users could not hold too."""
    try:
        directory = os.path.dirname(socket)
        lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) if is_ours_alone(directory) else None
    except OSError:
        lock = None
    if lock is None:
        yield True
        return
    try:
        yield _try(lock, kind, time.monotonic() + patience)
    finally:
        os.close(lock)


def _try(lock: int, kind: int, deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(lock, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOOK_AGAIN)
        except OSError:
            # Some network file systems have no such lock.
            return True
        else:
            return True
