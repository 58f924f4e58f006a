"""Types the keys that make a program quit, one after the other, and waits for it to exit."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mas.model.launch import LaunchPlan

# Programs that want a key twice want to see that it was pressed twice.
_BETWEEN = 0.1


class Quit:
    """A program that was asked to end. It is asked only while it has its terminal to itself."""

    def __init__(self, plan: LaunchPlan, terminal: int, agent: int, now: float) -> None:
        self.due: float | None = now
        """When there is something to do, by the monotonic clock."""
        self._keys = [bytes.fromhex(key) for key in plan.quit_keys]
        self._until = now + plan.quit_timeout
        self._terminal = terminal
        self._agent = agent

    def key(self, now: float) -> bytes | None:
        """What to type now, and plans the next look; None if the program has to be made to end."""
        self.due = None
        if now >= self._until or not self._has_terminal():
            return None
        key = self._keys.pop(0) if self._keys else b""
        self.due = min(now + _BETWEEN, self._until) if self._keys else self._until
        return key

    def _has_terminal(self) -> bool:
        """Whether no other program is in the foreground, which would get the keys."""
        try:
            return os.tcgetpgrp(self._terminal) == self._agent
        except OSError:
            return False
