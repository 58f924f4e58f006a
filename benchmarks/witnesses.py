"""Other tools doing the same work, on the same server."""

from __future__ import annotations

import os
import subprocess
import sys

from libtmux import Server, Session
from tests.site import Site

from benchmarks.arena import BIN
from benchmarks.floor import PROGRAM, TEAM, RawTmux, Windows
from benchmarks.measure import timed

_COMMAND = " ".join(PROGRAM)


def open_with_libtmux(server: Server, name: str, command: str = _COMMAND, team: Windows = TEAM) -> Session:
    """The team's panes, one object after another, as libtmux is meant to be used."""
    (first, _), *others = team
    session = server.new_session(session_name=name, window_name=first, window_command=command, x=202, y=63)
    for window_name, panes in others:
        window = session.new_window(window_name=window_name, window_shell=command)
        for _ in range(panes - 1):
            window.split(shell=command)
            window.select_layout("tiled")
    return session


class Witnesses:
    """libtmux in a warm process, and `tmuxp load` as people run it."""

    def __init__(self, site: Site, raw: RawTmux) -> None:
        self._site = site
        self._raw = raw
        self._server = Server(socket_path=raw.socket, config_file=os.devnull)
        self._file = os.path.join(site.directory, "team.yaml")
        with open(self._file, "w", encoding="utf-8") as file:
            file.write(tmuxp_file("tmuxp"))

    def libtmux(self) -> float:
        took = timed(lambda: open_with_libtmux(self._server, "libtmux"))
        self._raw.close("libtmux")
        return took

    def tmuxp(self) -> float:
        argv = [sys.executable, os.path.join(BIN, "tmuxp"), "load", "-d", "-y", "-S", self._raw.socket, self._file]
        took = timed(lambda: subprocess.run(argv, env=self._site.env, check=True, capture_output=True))
        self._raw.close("tmuxp")
        return took


def tmuxp_file(name: str, command: str = _COMMAND, team: Windows = TEAM) -> str:
    lines = [f"session_name: {name}", "windows:"]
    for window, panes in team:
        lines += [f"- window_name: {window}", "  layout: tiled", f"  window_shell: {command}", "  panes:"]
        lines += [f"  - shell: {command}"] * panes
    return "\n".join(lines) + "\n"
