"""Answers to questions that an agent's program asks in a hook: `.mas/answers/{agent}-{request}`, one file a request.

The file is locked for as long as a hook waits, so that the file of a killed one is recognised. It contains the time by
which the question is known. The answer is a second file beside it, created by a link: of two answers the first counts,
and a hook that has waited long enough puts a word there that means it takes no answer any more.

Imports next to nothing, because `mas hook` runs between two steps of an agent.
"""

from __future__ import annotations

import os

from mas.store.files.atomic import ensure_directory, open_lock
from mas.store.files.descriptors import NEW, READ, is_locked, remove_file, try_lock, write_all
from mas.store.layout import PRIVATE_DIR

ALLOW, DENY = "allow", "deny"
_NEVER = "never"
_ANSWER = ".answer"
_LONGEST = 256


class Request:
    """One question that waits; `OSError` if its file cannot be written. Closing it ends the wait."""

    def __init__(self, session_dir: str, agent: str, at: str) -> None:
        directory = _directory(session_dir)
        ensure_directory(directory, PRIVATE_DIR)
        waiting(session_dir, agent)
        # Locked before it has its name: otherwise it could look like the file of a killed process.
        name = f"{agent}-{os.urandom(8).hex()}"
        self._path = os.path.join(directory, name)
        half = os.path.join(directory, f".{name}")
        self._fd = open_lock(half)
        try_lock(self._fd)
        write_all(self._fd, at.encode())
        os.rename(half, self._path)

    def answer(self) -> str:
        """What was answered; empty if nothing was."""
        word = _read(f"{self._path}{_ANSWER}")
        return word if word in (ALLOW, DENY) else ""

    def give_up(self) -> str:
        """Take no answer from now on; what was answered before that still counts."""
        _put(f"{self._path}{_ANSWER}", _NEVER)
        return self.answer()

    def close(self) -> None:
        remove_file(self._path)
        remove_file(f"{self._path}{_ANSWER}")
        os.close(self._fd)


def waiting(session_dir: str, agent: str) -> dict[str, str]:
    """The requests of an agent that a hook still waits for, each with its time; removes those of killed hooks."""
    directory = _directory(session_dir)
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return {}
    found = {}
    for name in {name.removesuffix(_ANSWER) for name in names if name.startswith(f"{agent}-")}:
        path = os.path.join(directory, name)
        if _is_held(path):
            found[name] = _read(path)
        else:
            remove_file(path)
            remove_file(f"{path}{_ANSWER}")
    return found


def give(session_dir: str, request: str, word: str) -> bool:
    """Answer a request; False if it has been answered, or no hook is waiting for it any more."""
    path = os.path.join(_directory(session_dir), request)
    if not _put(f"{path}{_ANSWER}", word):
        return False
    if _is_held(path):
        return True
    remove_file(f"{path}{_ANSWER}")
    return False


def _put(path: str, word: str) -> bool:
    """Create a file with that word; False if the file exists, or its directory is missing."""
    directory, name = os.path.split(path)
    half = os.path.join(directory, f".{name}-{os.urandom(8).hex()}")
    try:
        fd = os.open(half, os.O_WRONLY | NEW, 0o600)
        try:
            write_all(fd, word.encode())
        finally:
            os.close(fd)
        os.link(half, path)
    except (FileExistsError, FileNotFoundError):
        return False
    finally:
        remove_file(half)
    return True


def _directory(session_dir: str) -> str:
    return os.path.join(session_dir, ".mas", "answers")


def _is_held(path: str) -> bool:
    try:
        return is_locked(path)
    except OSError:
        return False


def _read(path: str) -> str:
    try:
        fd = os.open(path, READ)
    except OSError:
        return ""
    try:
        return os.read(fd, _LONGEST).decode("ascii", "replace")
    except OSError:
        return ""
    finally:
        os.close(fd)
