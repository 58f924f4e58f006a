"""Other tools doing the same work, on the same server."""

from __future__ import annotations

import os
import subprocess
import sys

from libtmux import Server
from tests.site import Site

from benchmarks.arena import BIN
from benchmarks.floor import PROGRAM, TEAM, RawTmux
from benchmarks.measure import timed

_COMMAND = " ".join(PROGRAM)


def open_with_libtmux(server: Server, name: str) -> None:
    """The default team's 13 panes, one object after another, as libtmux is meant to be used."""
    (first, _), *others = TEAM
    session = server.new_session(session_name=name, window_name=first, window_command=_COMMAND, x=202, y=63)
    for window_name, panes in others:
        window = session.new_window(window_name=window_name, window_shell=_COMMAND)
        for _ in range(panes - 1):
            window.split(shell=_COMMAND)
            window.select_layout("tiled")


class Witnesses:
    """libtmux in a warm process, and `tmuxp load` as people run it."""

    def __init__(self, site: Site, raw: RawTmux) -> None:
        self._site = site
        self._raw = raw
        self._server = Server(socket_path=raw.socket, config_file=os.devnull)
        self._file = os.path.join(site.directory, "team.yaml")
        with open(self._file, "w", encoding="utf-8") as file:
            file.write(_tmuxp_file("tmuxp"))

    def libtmux(self) -> float:
        took = timed(lambda: open_with_libtmux(self._server, "libtmux"))
        self._raw.close("libtmux")
        return took

    def tmuxp(self) -> float:
        argv = [sys.executable, os.path.join(BIN, "tmuxp"), "load", "-d", "-y", "-S", self._raw.socket, self._file]
        took = timed(lambda: subprocess.run(argv, env=self._site.env, check=True, capture_output=True))
        self._raw.close("tmuxp")
        return took


def _tmuxp_file(name: str) -> str:
    lines = [f"session_name: {name}", "windows:"]
    for window, panes in TEAM:
        lines += [f"- window_name: {window}", "  layout: tiled", f"  window_shell: {_COMMAND}", "  panes:"]
        lines += [f"  - shell: {_COMMAND}"] * panes
    return "\n".join(lines) + "\n"
