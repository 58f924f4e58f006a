"""Shares: how much of what a server has only some of is for one agent, one session, all agents, and everybody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import NamedTuple

from mas.model.errors import TooMuch
from mas.model.principal import Principal


class ShareLimits(NamedTuple):
    """How many there may be at once. The difference between the last two is always there for the owner."""

    of_agent: int
    of_session: int
    """Of all agents of a session together."""
    of_agents: int
    of_all: int


class Shares:
    """Counts one kind of thing (`what`, as in "Too many `what`"), so that every caller has only a part of them."""

    def __init__(self, limits: ShareLimits, what: str, hint: str) -> None:
        """`hint` is what a caller can do that is refused."""
        self._limits = limits
        self._what = what
        self._hint = hint
        self._taken: Counter[str] = Counter()
        self._lock = Lock()

    @contextmanager
    def place(self, caller: Principal) -> Iterator[None]:
        """One of them, for as long as the block runs; refused as by `take`."""
        give_back = self.take(caller)
        try:
            yield
        finally:
            give_back()

    def take(self, caller: Principal) -> Callable[[], None]:
        """Take one; what is returned gives it back. `TooMuch` if the caller's share, its session's or all are taken."""
        shares = self._shares(caller)
        with self._lock:
            for name, most in shares.items():
                if self._taken[name] >= most:
                    raise TooMuch(f"Too many {self._what}: {most} of {name}, which is the limit", self._hint)
            self._taken.update(shares.keys())

        def give_back() -> None:
            with self._lock:
                self._taken.subtract(shares.keys())
                # Sessions come and go.
                self._taken = +self._taken

        return give_back

    def _shares(self, caller: Principal) -> dict[str, int]:
        """Whose they are, each with how many of them there may be."""
        if caller.is_owner:
            return {"all callers": self._limits.of_all}
        return {
            str(caller): self._limits.of_agent,
            f"agents of session {caller.session_id}": self._limits.of_session,
            "agents": self._limits.of_agents,
            "all callers": self._limits.of_all,
        }
