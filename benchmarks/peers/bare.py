"""tmux without a server beside it: alone, through libtmux, through tmuxp."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence

from libtmux import Pane, Server
from tests.site import Site

from benchmarks.arena import BIN
from benchmarks.floor import RawTmux, opening
from benchmarks.peers.reports import Reports
from benchmarks.peers.sides import LIBTMUX, RAW, TMUXP, Side, Talking, windows
from benchmarks.witnesses import open_with_libtmux, tmuxp_file


class Raw(Talking):
    """One invocation of tmux for each thing that is wanted."""

    name = RAW

    def __init__(self, site: Site, reports: Reports, program: Sequence[str]) -> None:
        super().__init__(site, reports, program)
        self.tmux = RawTmux(site, site.user_socket)
        self._panes: dict[str, list[str]] = {}

    def open(self, session: str, agents: int) -> None:
        self.tmux.run(*opening(session, lambda _: self.program, windows(agents)))

    def close(self, session: str) -> None:
        self.tmux.close(session)
        self._panes.pop(session, None)

    def list(self) -> int:
        # One is there so that the server stays.
        return len(self.tmux.run(["list-sessions", "-F", "#{session_name}"]).split()) - 1

    def send(self, session: str, agent: int, text: str) -> None:
        pane = self._pane(session, agent)
        self.tmux.run(
            ["load-buffer", "-b", pane, "-"],
            ["paste-buffer", "-p", "-r", "-d", "-b", pane, "-t", pane],
            ["send-keys", "-t", pane, "Enter"],
            stdin=text.encode(),
        )

    def settle(self, session: str) -> None:
        self._pane(session, 0)

    def _pane(self, session: str, agent: int) -> str:
        if session not in self._panes:
            found = self.tmux.run(["list-panes", "-s", "-t", f"={session}:", "-F", "#{pane_id}"]).decode().split()
            self._panes[session] = found
        return self._panes[session][agent]


class Libtmux(Talking):
    """Its objects in a process that already runs."""

    name = LIBTMUX

    def __init__(self, site: Site, reports: Reports, program: Sequence[str]) -> None:
        super().__init__(site, reports, program)
        self._server = Server(socket_path=site.user_socket, config_file=os.devnull)
        self._panes: dict[str, list[Pane]] = {}

    def open(self, session: str, agents: int) -> None:
        open_with_libtmux(self._server, session, shlex.join(self.program), windows(agents))

    def close(self, session: str) -> None:
        self._server.kill_session(session)
        self._panes.pop(session, None)

    def list(self) -> int:
        return len(self._server.sessions) - 1

    def send(self, session: str, agent: int, text: str) -> None:
        self._panes[session][agent].send_keys(text, enter=True, literal=True)

    def settle(self, session: str) -> None:
        if session not in self._panes:
            self._panes[session] = list(self._server.sessions.filter(session_name=session)[0].panes)


class Tmuxp(Side):
    """`tmuxp load -d` of a file, as people run it."""

    name = TMUXP

    def open(self, session: str, agents: int) -> None:
        path = os.path.join(self.site.directory, f"{agents}.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(tmuxp_file(session, shlex.join(self.program), windows(agents)))
        argv = [sys.executable, os.path.join(BIN, "tmuxp"), "load", "-d", "-y", "-S", self.site.user_socket, path]
        subprocess.run(argv, env=self.site.env, check=True, capture_output=True)

    def close(self, session: str) -> None:
        RawTmux(self.site, self.site.user_socket).close(session)
