"""Forwards: ports of this machine that lead into the networks of sessions, kept by this process."""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

from mas.model.errors import BadInput, Conflict, NotFound, TooMuch
from mas.model.forwards import LARGEST_PORT, Forward, OpenPort, PortList, host_of
from mas.model.ids import SessionId
from mas.model.isolation import NetworkMode
from mas.model.session import Session
from mas.runtime.forward.ports import OF_MAS, listening
from mas.runtime.forward.start import ForwardPlan, ForwardProcess
from mas.runtime.sweep import Owner
from mas.service.agents.living import running_panes
from mas.service.isolation.network import SessionNetwork
from mas.service.world import World

_MOST_OF_SESSION, _MOST = 16, 64


class _Way(NamedTuple):
    """How to a session's ports: the directory of its own network, and the ports there that lead outside."""

    network: NetworkMode
    directory: str | None
    outwards: frozenset[int]


class Forwards:
    """The forwards of this process. They end with it, and each with its session."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._open: dict[tuple[SessionId, int], tuple[Forward, ForwardProcess]] = {}
        self._lock = Lock()

    def ports(self, session_id: SessionId) -> PortList:
        """The ports that the session's programs listen at; `Conflict` if it is not running."""
        session = self._world.records.load(session_id)
        way = self._way(session)
        _, panes = running_panes(self._world, session)
        launchers = {agent: pane.pid for agent, pane in panes.items() if not pane.dead}
        found = listening(launchers, way.directory, way.outwards)
        return PortList(way.network, tuple(OpenPort(one.port, one.agent) for one in found))

    def open(self, session_id: SessionId, port: int, local: int | None, any_user: bool = False) -> Forward:
        """Open a forward, or return the one to that port that is open."""
        for number in filter(None, (port, local)):
            if not 1 <= number <= LARGEST_PORT:
                raise BadInput(f"Not a port: {number}")
        way = self._way(self._world.records.load(session_id))
        is_heard = any(one.port == port for one in self.ports(session_id).ports)
        name = host_of(session_id, port)
        made = Forward(session_id, port, port, f"http://{name}:{port}/", way.network, is_heard)
        if way.directory is None:
            return made
        if port in OF_MAS or port in way.outwards:
            raise BadInput(f"Port {port} of a session's network is MAS's own: it leads to MAS, or outside")
        with self._lock:
            self._forget_ended()
            if there := self._open.get((session_id, port)):
                return self._same(there[0], local)
            self._check_room(session_id)
            owner = Owner(session_id, self._world.layout.home())
            process = ForwardProcess(ForwardPlan(way.directory, port, local or 0, name, any_user), owner.mark)
            made = made._replace(local=process.local, url=f"http://{name}:{process.local}/")
            self._open[session_id, port] = made, process
            return made

    def list(self, session_id: SessionId) -> tuple[Forward, ...]:
        """Those of a session that are open."""
        with self._lock:
            self._forget_ended()
            return tuple(one for one, _ in self._open.values() if one.session_id == session_id)

    def end(self, session_id: SessionId, port: int) -> Forward:
        """Close one, with all its connections; `NotFound` if there is none."""
        with self._lock:
            self._forget_ended()
            if (session_id, port) not in self._open:
                raise NotFound(f"No forward leads to port {port} of session {session_id}", "mas forward --list")
            forward, process = self._open.pop((session_id, port))
        process.end()
        return forward

    def wait(self, session_id: SessionId, port: int) -> None:
        """Wait until one has ended."""
        there = self._open.get((session_id, port))
        if there:
            there[1].wait()

    def tidy(self) -> None:
        """Forget those that have ended."""
        with self._lock:
            self._forget_ended()

    def close(self) -> None:
        """End all. Closing twice is fine."""
        with self._lock:
            ending, self._open = self._open, {}
        for _, process in ending.values():
            process.end()

    def _way(self, session: Session) -> _Way:
        isolation = session.isolation
        if isolation is None or isolation.network is NetworkMode.SHARED:
            return _Way(NetworkMode.SHARED, None, frozenset())
        plan = SessionNetwork(self._world, session.id, isolation).plan()
        return _Way(isolation.network, plan.directory, frozenset(port for _, port in plan.listen if port))

    def _forget_ended(self) -> None:
        for key, (_, process) in list(self._open.items()):
            if not process.is_running:
                process.end()
                del self._open[key]

    def _check_room(self, session_id: SessionId) -> None:
        of_session = sum(1 for one, _ in self._open.values() if one.session_id == session_id)
        if of_session >= _MOST_OF_SESSION or len(self._open) >= _MOST:
            raise TooMuch(
                f"Too many forwards: at most {_MOST_OF_SESSION} of a session and {_MOST} in all", "close some"
            )

    def _same(self, there: Forward, local: int | None) -> Forward:
        if local not in (None, there.local):
            words = f"Port {there.port} of the session is forwarded already, to port {there.local} of this machine"
            raise Conflict(words, f"mas forward --stop {there.session_id[:8]} {there.port}")
        return there
