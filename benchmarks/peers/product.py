"""MAS as a side of the comparison: its server, asked over HTTP."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.site import Site

from benchmarks.peers.reports import Reports
from benchmarks.peers.server import UNREACHABLE, Refused, Server
from benchmarks.peers.sides import MAS, TEAM_SIZE, Serving
from mas.model.team import DEFAULT_TEAM

_PATIENCE = 60.0
_TEAMS = {1: "solo", TEAM_SIZE: "default"}


class Product(Serving):
    """Sessions by `POST /runs`, text by `POST …/messages`: kept on the disk, and sent once the agent is idle."""

    name = MAS
    variable = "MAS_AGENT_ID"

    def __init__(self, site: Site, reports: Reports, program: Sequence[str]) -> None:
        super().__init__(site, reports, program)
        site.mas("init", site.root)
        _write_provider(site, program)
        self.server = Server(site, [sys.executable, "-m", "mas", "serve"])
        self.server.headers["Authorization"] = f"Bearer {site.mas('token').stdout.strip()}"
        self._sessions: dict[str, str] = {}
        self._isolation: Any = "off"

    @contextmanager
    def isolating(self) -> Iterator[None]:
        """What is opened meanwhile has walls round each agent; its program and its pipe are let in."""
        self._isolation = {"enforce": "require", "read": [os.path.dirname(__file__)], "write": [self.program[-1]]}
        try:
            yield
        finally:
            self._isolation = "off"

    def open(self, session: str, agents: int) -> None:
        body = {"team": _TEAMS[agents], "provider": "peer", "name": session, "isolation": self._isolation}
        self._sessions[session] = self.server.ask("POST", "/runs", body=body)["sessionId"]

    def close(self, session: str) -> None:
        self.server.ask("POST", f"/sessions/{self._sessions.pop(session)}/stop")

    def list(self) -> int:
        sessions = self.server.ask("GET", "/sessions")["sessions"]
        return sum(session["status"] == "active" for session in sessions)

    def send(self, session: str, agent: int, text: str) -> None:
        body = {"target": _AGENTS[agent], "message": text, "wait": _PATIENCE}
        answer = self.server.ask("POST", f"/sessions/{self._sessions[session]}/messages", body=body)
        states = {delivery["state"] for delivery in answer["deliveries"]}
        if states != {"acknowledged"}:
            raise RuntimeError(f"not acknowledged: {answer}")

    def settle(self, session: str) -> None:
        question = {"until": "idle", "timeout": str(_PATIENCE)}
        self.server.ask("GET", f"/sessions/{self._sessions[session]}/wait", params=question)

    def ids(self, session: str) -> Sequence[str]:
        return _AGENTS

    def hand_in(self, session: str, agent: int, text: str) -> bool:
        body = {"target": _AGENTS[agent], "message": text}
        try:
            self.server.ask("POST", f"/sessions/{self._sessions[session]}/messages", body=body)
        except (Refused, *UNREACHABLE):
            return False
        return True

    def states(self, session: str) -> Sequence[str]:
        found = self.server.ask("GET", f"/sessions/{self._sessions[session]}")
        return [agent["state"] for agent in found["agents"]]

    def last_message(self, session: str, agent: int) -> str:
        params = {"agent": _AGENTS[agent], "box": "inbox"}
        found = self.server.ask("GET", f"/sessions/{self._sessions[session]}/messages", params=params)["messages"]
        return str(found[-1]["deliveries"][0]["state"]) if found else "no message"

    def bring_back(self, session: str) -> str:
        begun = time.monotonic()
        self.server.ask("POST", f"/sessions/{self._sessions[session]}/restore")
        runs = self.reports.restarts(TEAM_SIZE, _PATIENCE)
        return f"one request: {runs} of {TEAM_SIZE} agents run again after {time.monotonic() - begun:.1f} s"


_AGENTS = [agent.id for unit in DEFAULT_TEAM.units for agent in unit.agents]
"""Of the team; the only agent of the small one has the first id too."""


def _write_provider(site: Site, program: Sequence[str]) -> None:
    os.makedirs(site.path("providers"), exist_ok=True)
    words = ", ".join(f'"{word}"' for word in program)
    with open(site.path("providers", "peer.toml"), "w", encoding="utf-8") as file:
        file.write(
            'provider = { id = "peer" }\ninput = { submit_delay = 0.0, ack = "osc:working" }\n'
            f'[launch]\nargv = [{words}]\n[status]\nsources = ["osc7501"]\n'
        )
