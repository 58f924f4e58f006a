"""Notices that the session's directory was removed: an agent must not go on where nobody can see or stop it."""

from __future__ import annotations

import errno
import os
import time

_EVERY = 3.0
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Home:
    """The session's directory itself, whatever it is called by now: a workspace may be moved while its agents work."""

    def __init__(self, session_dir: str) -> None:
        self._fd = os.open(session_dir, _DIRECTORY)
        self.is_gone = False
        self.due = time.monotonic() + _EVERY

    def look(self, now: float) -> None:
        """See whether it is still there."""
        self.due = now + _EVERY
        try:
            self.is_gone = os.fstat(self._fd).st_nlink == 0
        except OSError as error:
            # What a file server says of a directory that somebody else has removed; all else is no answer.
            self.is_gone = error.errno == errno.ESTALE
