"""Where an isolated agent's hooks write for the launcher: `.mas/agents/{id}/hooks/`, which `MAS_HOOKS` names.

Each hook is a file of a random name: the hook's name in the first line, its payload after that. The file's name is
written to the launcher's bell, a pipe beside it, and the file is removed once the hook is recorded, so that the agent's
hooks stay in order. If the hook is a question, `{name}.asked` is beside it for as long as an answer may come, which is
then `{name}.answer`. The process that left a hook keeps it locked: so the launcher knows whether it is still waiting.

Nothing is ever looked for in the directory: the agent may have filled it with anything.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable

from mas.store.files.descriptors import DIRECTORY, NEW, READ, SAFE, is_there, write_all

BELL = "bell"
ASKED = ".asked"
ANSWER = ".answer"
LARGEST = (1 << 20) + 256
# A name and the line feed behind it.
RING = 33
_LARGEST_ANSWER = 1 << 16
# How long a hook waits to be recorded: if the launcher does not, the agent must not wait for it either.
_NOTED = 3.0
_SOON = 0.002
_GLANCE = 0.02


def spool_path(session_dir: str, agent: str) -> str:
    return os.path.join(session_dir, ".mas", "agents", agent, "hooks")


def hand_over(spool: str, name: str, payload: bytes, say: Callable[[str], None]) -> None:
    """Give a hook to the launcher, and `say` the answer if it is a question that gets one; `OSError` if it cannot."""
    directory = os.open(spool, DIRECTORY)
    try:
        bell = os.open(BELL, os.O_WRONLY | os.O_NONBLOCK | SAFE, dir_fd=directory)
        own = os.urandom(16).hex()
        fd = os.open(own, os.O_RDWR | NEW, 0o600, dir_fd=directory)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            write_all(fd, memoryview(os.fsencode(name).replace(b"\n", b" ") + b"\n" + payload)[:LARGEST])
            if _ring(bell, own, directory):
                _await_answer(own, directory, say)
        finally:
            _remove(own, directory)
            os.close(fd)
            os.close(bell)
    finally:
        os.close(directory)


def _ring(bell: int, own: str, directory: int) -> bool:
    """Whether the hook was recorded in time."""
    deadline = time.monotonic() + _NOTED
    is_heard = False
    while is_there(own, directory):
        if time.monotonic() > deadline:
            return False
        try:
            is_heard = is_heard or os.write(bell, f"{own}\n".encode()) > 0
        except BlockingIOError:
            # Many ring at once.
            pass
        time.sleep(_SOON)
    return True


def _await_answer(own: str, directory: int, say: Callable[[str], None]) -> None:
    """Wait for as long as the launcher does; it gives up first, unless the program that asks is gone."""
    parent = os.getppid()
    while is_there(own + ASKED, directory):
        if os.getppid() != parent:
            return
        time.sleep(_GLANCE)
    try:
        fd = os.open(own + ANSWER, READ, dir_fd=directory)
    except OSError:
        return
    try:
        text = os.read(fd, _LARGEST_ANSWER).decode("utf-8", "replace")
    finally:
        os.close(fd)
        _remove(own + ANSWER, directory)
    say(text)


def _remove(name: str, directory: int) -> None:
    try:
        os.unlink(name, dir_fd=directory)
    except OSError:
        return
