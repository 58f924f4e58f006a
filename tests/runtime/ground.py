"""A runtime under test, the teams it opens, and a second pair of eyes on what it opened."""

from __future__ import annotations

import os
from typing import NamedTuple

import libtmux
import psutil

from mas.runtime.control import Connections
from mas.runtime.runtime import PanePlan, Place, TeamPlan, WindowPlan
from mas.settings import ServerMode
from tests.site import Site

NAME = "mas-1234abcd"
SLEEPER = ("sleep", "1000")
DEFAULT_TEAM = {
    "meta": "00",
    "design": "10 11 12 13",
    "development": "20 21 22 23",
    "business": "30 31 32 33",
}


class Seen(NamedTuple):
    """A pane as libtmux sees it."""

    window: str
    pane: str
    width: int
    height: int
    command: str


class Ground:
    """One runtime and the site it works in."""

    def __init__(self, site: Site, mode: ServerMode, connections: Connections | None = None) -> None:
        self.site = site
        self.mode = mode
        self.world = site.world(mode, connections)
        self.runtime = self.world.runtime
        os.makedirs(self.world.layout.sockets, mode=0o700, exist_ok=True)

    def plan(self, units: dict[str, str], name: str = NAME, argv: tuple[str, ...] = SLEEPER) -> TeamPlan:
        """A team in which every agent runs the same."""
        windows = tuple(
            WindowPlan(unit, tuple(PanePlan(agent, f"role of {agent}", argv) for agent in agents.split()))
            for unit, agents in units.items()
        )
        return TeamPlan(name, self.site.directory, windows)

    def open(self, team: TeamPlan) -> tuple[Place, dict[str, str]]:
        socket = self.runtime.place(team.name, team.size)
        return Place(socket, team.name), self.runtime.open(socket, team)

    def solo(self, *argv: str, name: str = NAME) -> tuple[Place, str]:
        """A team of one agent, and its pane."""
        place, panes = self.open(self.plan({"meta": "00"}, name, argv or SLEEPER))
        return place, panes["00"]


def seen(place: Place) -> list[Seen]:
    """The panes of a team, as a client that shares no code with ours finds them."""
    sessions = [one for one in libtmux.Server(socket_path=place.socket).sessions if one.session_name == place.name]
    return [
        Seen(
            window.window_name or "",
            pane.pane_id or "",
            int(pane.pane_width or 0),
            int(pane.pane_height or 0),
            pane.pane_current_command or "",
        )
        for session in sessions
        for window in session.windows
        for pane in window.panes
    ]


def teams_seen(socket: str) -> set[str]:
    """The tmux sessions of a server, found in the same independent way; none if there is no server."""
    return {session.session_name or "" for session in libtmux.Server(socket_path=socket).sessions}


def started_by(site: Site, *names: str) -> list[str]:
    """The living processes of a site with one of these names."""
    found = []
    for process in site.processes():
        try:
            if process.name() in names:
                found.append(process.name())
        except psutil.Error:
            continue
    return found
