"""A person at the tmux of the teams, who does ordinary things there: none of them ends an agent."""

from __future__ import annotations

import random
from typing import NamedTuple

from tests.site import Site

_OWN = "person"
# Reads from a terminal at which nothing is typed; ends with its pane.
_PROGRAM = ("cat", "-")


class _Target(NamedTuple):
    """An agent's pane, and where it is at the moment."""

    socket: str
    pane: str
    window: str
    session: str


class Person:
    """Does one thing after the other, as the dice say."""

    def __init__(self, site: Site, dice: random.Random) -> None:
        self._site = site
        self._dice = dice

    def act(self) -> bool:
        """Do something to a team; False if there is none."""
        found = self._targets()
        if not found:
            return False
        one = self._dice.choice(found)
        others = [other for other in found if other.socket == one.socket]
        if not self._site.tmux("list-sessions", "-f", f"#{{==:#{{session_name}},{_OWN}}}", socket=one.socket):
            self._tmux(one, "new-session", "-d", "-s", _OWN, "-x", "200", "-y", "100", *_PROGRAM)
        self._tmux(one, *self._dice.choice(self._verbs(one, self._dice.choice(others))))
        return True

    def _verbs(self, one: _Target, other: _Target) -> list[tuple[str, ...]]:
        name = f"{_OWN}-{self._dice.getrandbits(24):06x}"
        return [
            ("new-session", "-d", "-t", f"={one.session}", "-s", name),
            ("link-window", "-d", "-s", one.window, "-t", f"{_OWN}:"),
            ("rename-session", "-t", f"={one.session}", name),
            ("rename-window", "-t", one.window, name),
            ("move-window", "-d", "-s", one.window, "-t", f"{_OWN}:"),
            ("join-pane", "-d", "-s", one.pane, "-t", other.pane),
            ("break-pane", "-d", "-s", one.pane),
            ("swap-pane", "-d", "-s", one.pane, "-t", other.pane),
            ("swap-window", "-d", "-s", one.window, "-t", other.window),
            ("split-window", "-d", "-t", one.pane, *_PROGRAM),
            ("new-window", "-d", "-t", f"={one.session}:", *_PROGRAM),
            ("select-layout", "-t", one.window, "even-vertical"),
            ("copy-mode", "-t", one.pane),
        ]

    def _targets(self) -> list[_Target]:
        """Every pane of an agent; those that are in several tmux sessions once for each."""
        found = []
        shape = "#{pane_id} #{window_id} #{session_name}"
        for socket in sorted(self._site.sockets()):
            listed = self._site.tmux("list-panes", "-a", "-f", "#{@mas_agent}", "-F", shape, socket=socket)
            found += [_Target(socket, *line.split(" ", 2)) for line in sorted(listed.splitlines())]
        return found

    def _tmux(self, target: _Target, *command: str) -> None:
        # What cannot be, because there is no room or it has gone meanwhile, tmux refuses.
        self._site.tmux(*command, socket=target.socket)
