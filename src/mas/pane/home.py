"""Notices that the session's directory was removed: an agent must not keep running where no one can see or stop it."""

from __future__ import annotations

import errno
import os
import time

_EVERY = 3.0
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Home:
    """The session's directory itself, whatever it is called by now: a workspace may be moved while its agents work."""

    def __init__(self, session_dir: str) -> None:
        self._path = session_dir
        self._fd = os.open(session_dir, _DIRECTORY)
        # Some file systems do not count the links of a directory and always say 0.
        self._counts_links = os.fstat(self._fd).st_nlink > 0
        self.is_gone = False
        self.due = time.monotonic() + _EVERY

    def look(self, now: float) -> None:
        """See whether it is still there."""
        self.due = now + _EVERY
        try:
            self.is_gone = self._counts_links and os.fstat(self._fd).st_nlink == 0
        except OSError as error:
            # A file server says this of a directory that was removed, but also after a restart of its own.
            self.is_gone = error.errno == errno.ESTALE and not os.path.lexists(self._path)

    def beside(self) -> str:
        """Where the directory that held it is now, even after a move; empty if that was removed too."""
        fd = os.open("..", _DIRECTORY, dir_fd=self._fd)
        try:
            return os.readlink(f"/proc/self/fd/{fd}") if os.fstat(fd).st_nlink else ""
        finally:
            os.close(fd)
