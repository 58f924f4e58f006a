"""The listed root that agents of one start have in common: a launcher builds it once, and each agent copies it.

It is a mount namespace without a process. The launcher that built it has it open, and others open it through /proc; a
launcher that finds none builds one. A copy is made by one call, and has no connection to the original. An agent for
which any of this fails builds its root itself.
"""

from __future__ import annotations

import fcntl
import os

from mas.runtime.descriptors import note, open_in_child, open_noted
from mas.runtime.sandbox.namespaces import build_root, copy_sources, enter_namespaces, join_user
from mas.runtime.sandbox.system import SAFE, die_with_parent, libc
from mas.runtime.sandbox.view import split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mas.model.launch import Rules
    from mas.runtime.sandbox.view import Step

_NEWNS = 0x20000
_LONGEST_NOTE = 256
_REFUSED = b"-"
_DONE = b"+"
_EINVAL = 22


class SharedRoot:
    """Descriptors of a mount namespace that is a root, and of the user namespace that owns it."""

    __slots__ = ("_mounts", "_user", "is_ours")

    def __init__(self, user: int, mounts: int, is_ours: bool) -> None:
        self._user = user
        self._mounts = mounts
        self.is_ours = is_ours
        """Whether this process has built it, so that others need it open here."""

    def enter(self, own: list[Step]) -> dict[str, int]:
        """Move this process into it; returns copies of what these steps show, made on the way."""
        outside = os.stat("/").st_dev
        join_user(self._user)
        try:
            mounts = copy_sources(own)
        except PermissionError:
            # To copy a mount, an ordinary user must be in a mount namespace of its own.
            libc("unshare", _NEWNS)
            mounts = copy_sources(own)
        libc("setns", self._mounts, _NEWNS)
        # A last look: nothing else may pass for it.
        if os.stat("/").st_dev == outside or not os.statvfs("/").f_flag & os.ST_RDONLY:
            raise OSError(_EINVAL, "what was to be a shared root is none")
        return mounts

    def close(self) -> None:
        os.close(self._user)
        os.close(self._mounts)


def open_root(rules: Rules, join: Callable[[], None] | None) -> SharedRoot | None:
    """The root of the agent's start, built if there is none yet; None if agents must each build their own."""
    try:
        fd = os.open(rules.shared_root, os.O_RDWR | os.O_CREAT | SAFE, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        words = os.read(fd, _LONGEST_NOTE)
        return None if words == _REFUSED else _found(words) or _built(fd, rules, join)
    except OSError:
        return None
    finally:
        os.close(fd)


def _found(words: bytes) -> SharedRoot | None:
    try:
        user, mounts = open_noted(words)
    except ProcessLookupError:
        return None
    return SharedRoot(user, mounts, is_ours=False)


def _built(fd: int, rules: Rules, join: Callable[[], None] | None) -> SharedRoot | None:
    """Build a root and note in the file where it is; or that there will be none."""
    os.ftruncate(fd, 0)
    try:
        user, mounts = open_in_child(lambda: _build(rules, join))
    except OSError:
        os.pwrite(fd, _REFUSED, 0)
        return None
    os.pwrite(fd, note([user, mounts]), 0)
    return SharedRoot(user, mounts, is_ours=True)


def _build(rules: Rules, join: Callable[[], None] | None) -> list[int]:
    """Build it around this process; returns the namespaces."""
    if join:
        join()
    enter_namespaces(own_processes=True)
    spaces = [os.open(f"/proc/self/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in ("user", "mnt")]
    done, report = os.pipe()
    # It is in a process namespace alone: once it has exited, its /proc, which agents cover with their own, is empty.
    builder = os.fork()
    if builder == 0:
        try:
            die_with_parent()
            os.umask(0o022)
            build_root(rules, *split(rules), own_processes=True)
            os.write(report, _DONE)
        finally:
            os._exit(0)
    os.close(report)
    os.waitpid(builder, 0)
    if os.read(done, 1) != _DONE:
        raise OSError(_EINVAL, "the shared root could not be built")
    return spaces
