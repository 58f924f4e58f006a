"""The crowd: all open connections by whose they are, so that no caller's connections keep the owner out.

A connection is unknown until a request on it shows a good token. The oldest of too many unknown ones makes room for the
newest. Those of agents have shares. What is left is the owner's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from mas.http.limits import ServerLimits
from mas.http.peer import Arrival, Entrance
from mas.model.principal import NOBODY, Principal
from mas.service.shares import Shares


class Guest(Protocol):
    """A connection."""

    def turn_out(self) -> None:
        """Close it at once."""


class Crowd:
    """For the event loop's thread only."""

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._shares = Shares(limits.connection_shares, "connections are open", "close some; try again later")
        # The oldest first, for each way in; each process at the agents' file has its own.
        self._unknown: dict[tuple[Entrance, int], dict[Guest, None]] = {}
        self._ways: dict[Guest, tuple[Entrance, int]] = {}
        self._owners: dict[Guest, tuple[Principal, Callable[[], None]]] = {}

    def enter(self, guest: Guest, arrival: Arrival, is_full: bool) -> bool:
        """A connection came in; whether it may stay. `is_full`: there are as many as there may be in all."""
        way = (arrival.entrance, arrival.process if arrival.entrance is Entrance.AGENTS else 0)
        others = self._unknown.setdefault(way, {})
        if is_full or len(others) >= self._limits.unknown_connections:
            oldest = next(iter(others), None)
            if oldest is None:
                return False
            self.leave(oldest)
            oldest.turn_out()
            others = self._unknown.setdefault(way, {})
        others[guest] = None
        self._ways[guest] = way
        return True

    def recognise(self, guest: Guest, principal: Principal) -> None:
        """A request on it showed who it is; `TooMuch` if that caller has its share of connections already."""
        known = self._owners.get(guest)
        is_no_news = known is not None and (known[0].is_owner or not principal.is_owner)
        if principal is NOBODY or guest not in self._ways or is_no_news:
            return
        give_back = self._shares.take(principal)
        if known is not None:
            known[1]()
        self._owners[guest] = (principal, give_back)
        self._forget(guest)

    def leave(self, guest: Guest) -> None:
        """It is closed, or became something else. Leaving twice is fine."""
        self._forget(guest)
        self._ways.pop(guest, None)
        if known := self._owners.pop(guest, None):
            known[1]()

    def _forget(self, guest: Guest) -> None:
        """It is not unknown any more."""
        way = self._ways.get(guest)
        if way is not None and (others := self._unknown.get(way)) is not None:
            others.pop(guest, None)
            if not others:
                del self._unknown[way]
