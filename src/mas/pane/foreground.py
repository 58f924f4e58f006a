"""Whether an agent has a program in the foreground: this is how a shell counts as working.

A shell gives the terminal to the process group that it runs and takes it back after. Nothing reports that, so it is
polled: shortly after bytes have moved, a few times more, and once a second while something is running.
"""

from __future__ import annotations

import os

_SOON = 0.1
_SELDOM = 1.0
# With nothing in the foreground, no look comes after a pause as long as this.
_LAST = 0.8


class Foreground:
    """Checks which process group has the agent's terminal."""

    def __init__(self, terminal: int, agent: int) -> None:
        self.due: float | None = None
        """When to look, by the monotonic clock."""
        self._terminal = terminal
        self._agent = agent
        self._pause = _SOON

    def stir(self, now: float) -> None:
        """Bytes have moved: something may have begun or ended."""
        if self.due is None or self.due > now + _SOON:
            self.due = now + _SOON
        self._pause = _SOON

    def look(self, now: float) -> str | None:
        """The state that is seen, and plans the next look; None if nothing can be seen."""
        self.due = None
        try:
            group = os.tcgetpgrp(self._terminal)
        except OSError:
            return None
        if group <= 0:
            return None
        working = group != self._agent
        if working or self._pause < _LAST:
            self.due = now + self._pause
            self._pause = min(self._pause * 2, _SELDOM)
        return "working" if working else "idle"
