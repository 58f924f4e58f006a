"""The private home and temporary directories of a session's agents.

Agents write there, so whatever they may have put in the way (a link above all) is not followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from mas.store.files.atomic import ensure_directory
from mas.store.files.descriptors import DIRECTORY, NEW, SAFE, write_all
from mas.store.files.safe_open import made_beneath
from mas.store.files.tree import remove_tree, walk
from mas.store.layout import PRIVATE_DIR, PRIVATE_FILE, SessionPaths

# What login shells read last; most of them set PATH again before.
_PROFILES = (".profile", ".zprofile")
_PROFILE = b'# The programs this agent was started with, `mas` among them.\nPATH="${MAS_PATH:-$PATH}"\n'


class PrivateHome:
    """`.home` and `.tmp/{agent}` of one session."""

    def __init__(self, paths: SessionPaths) -> None:
        self._paths = paths

    def make(self) -> None:
        """See to the home. What login shells read there is made once; agents may change it."""
        is_new = not os.path.lexists(self._paths.home)
        ensure_directory(self._paths.home, PRIVATE_DIR)
        for name in _PROFILES if is_new else ():
            fd = os.open(os.path.join(self._paths.home, name), os.O_WRONLY | NEW, PRIVATE_FILE)
            try:
                write_all(fd, _PROFILE)
            finally:
                os.close(fd)

    def make_temporary(self, agent: str) -> str:
        """The directory for an agent's temporary files, made where it is missing."""
        ensure_directory(self._paths.temporary, PRIVATE_DIR)
        path = os.path.join(self._paths.temporary, agent)
        ensure_directory(path, PRIVATE_DIR)
        return path

    def empty_temporary(self) -> None:
        """Remove all temporary files; no agent may be running."""
        remove_tree(self._paths.temporary)

    def link(self, name: str, target: str) -> bool:
        """Have `name` in the home lead to `target`; other things that agents have there stay, and the answer is no."""
        *above, last = name.split("/")
        home = os.open(self._paths.home, DIRECTORY)
        try:
            fd = made_beneath(home, above)
        except OSError:
            return False
        try:
            return _linked(last, target, fd)
        except OSError:
            return False
        finally:
            os.close(fd)


def _linked(name: str, target: str, directory: int) -> bool:
    try:
        if os.readlink(name, dir_fd=directory) == target:
            return True
        os.unlink(name, dir_fd=directory)
    except FileNotFoundError:
        pass
    os.symlink(target, name, dir_fd=directory)
    return True


def hand_over(trees: Iterable[str], uid: int, gid: int) -> None:
    """Give everything in `trees` to an account. A hard link keeps its owner: the file may belong to any user."""
    for tree in trees:
        os.chown(tree, uid, gid, follow_symlinks=False)
        for entry in walk(tree, past_closed=True):
            if entry.info.st_uid != uid:
                _give(entry.name, entry.parent, uid, gid)


def _give(name: str, directory: int, uid: int, gid: int) -> None:
    """Give one thing away, which is looked at while it is held: an agent that runs may put another in its place."""
    try:
        fd = os.open(name, os.O_PATH | SAFE, dir_fd=directory)
    except FileNotFoundError:
        return
    try:
        info = os.fstat(fd)
        if info.st_nlink == 1 or stat.S_ISDIR(info.st_mode):
            os.chown(f"/proc/self/fd/{fd}", uid, gid)
    finally:
        os.close(fd)


def let_pass(directories: Iterable[str], gid: int, to_list: bool = False) -> None:
    """Let a group pass through directories, and perhaps see what they hold, without changing it."""
    more = stat.S_IXGRP | (stat.S_IRGRP if to_list else 0)
    for directory in directories:
        fd = os.open(directory, DIRECTORY)
        try:
            os.fchown(fd, -1, gid)
            os.fchmod(fd, stat.S_IMODE(os.fstat(fd).st_mode) | more)
        finally:
            os.close(fd)
