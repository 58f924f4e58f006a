"""Waiters: how many calls may wait in a server at once: of one agent, of one session, and in all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import NamedTuple

from mas.model.errors import TooMuch
from mas.model.principal import Principal


class WaiterLimits(NamedTuple):
    """How many calls may wait at once. The difference between the last two is always there for the owner."""

    of_agent: int = 8
    of_session: int = 64
    """Of all agents of a session together."""
    of_agents: int = 384
    of_all: int = 512


class Waiters:
    """Counts waiting calls. Each holds a thread, so every caller may have only a part of them."""

    def __init__(self, limits: WaiterLimits) -> None:
        self._limits = limits
        self._waiting: Counter[str] = Counter()
        self._lock = Lock()

    @contextmanager
    def place(self, caller: Principal) -> Iterator[None]:
        """A place to wait in; `TooMuch` if the caller's share, its session's or all places are taken."""
        shares = self._shares(caller)
        with self._lock:
            for name, most in shares.items():
                if self._waiting[name] >= most:
                    raise TooMuch(
                        f"Too many calls are waiting: {most} of {name}, which is the limit",
                        "nothing was done; try again later, or without wait",
                    )
            self._waiting.update(shares.keys())
        try:
            yield
        finally:
            with self._lock:
                self._waiting.subtract(shares.keys())
                # Sessions come and go.
                self._waiting = +self._waiting

    def _shares(self, caller: Principal) -> dict[str, int]:
        """Whose calls the caller's are, each with how many of them may wait."""
        if caller.is_owner:
            return {"all callers": self._limits.of_all}
        return {
            str(caller): self._limits.of_agent,
            f"agents of session {caller.session_id}": self._limits.of_session,
            "agents": self._limits.of_agents,
            "all callers": self._limits.of_all,
        }
