"""What isolation adds: 13 agents behind namespaces and Landlock, against the same without."""

from __future__ import annotations

import socket
import time

from benchmarks.arena import arena
from benchmarks.measure import Effort, Group, Row, in_turns, timed, times
from mas.model.errors import NotIsolated
from mas.model.ids import SessionId
from mas.model.isolation import Mode, Policy
from mas.model.run import Run
from mas.service.local import LocalMas
from mas.settings import ServerMode

_TITLE = "Isolation: 13 agents in tier A"
_TEAM_SIZE = 13
_OFF, _TIER_A = Policy(Mode.OFF), Policy(Mode.REQUIRE)


def measure(effort: Effort) -> Group:
    with arena() as site, Started() as started:
        mas = site.local(ServerMode.AUTO)
        try:
            # Whoever starts first finds out what the machine can do; that is kept until it boots.
            _close(mas, mas.start(started.run(_TIER_A)).session_id)
        except NotIsolated as error:
            return Group(_TITLE, (), (f"Not measured: {error.message}",))
        answered, answered_off, running, running_off = in_turns(
            effort.repeats(9),
            lambda: _answered(mas, started.run(_TIER_A)),
            lambda: _answered(mas, started.run(_OFF)),
            lambda: started.running(mas, started.run(_TIER_A)),
            lambda: started.running(mas, started.run(_OFF)),
        )
    return Group(
        _TITLE,
        (
            times("start 13 agents, tier A", answered, "isolation off", answered_off, 2.5),
            times(
                "start 13 agents, tier A, until each program really runs", running, "isolation off", running_off, 2.5
            ),
            Row("the same, less what it takes without", running - running_off, bound="1 s", limit=1.0),
        ),
        ("The first row is what a caller waits for; a program really runs once it has said so itself.",),
    )


def _answered(mas: LocalMas, run: Run) -> float:
    sessions = []
    took = timed(lambda: sessions.append(mas.start(run)))
    _close(mas, sessions[0].session_id)
    return took


def _close(mas: LocalMas, session_id: str) -> None:
    mas.stop(SessionId(session_id))


class Started:
    """Programs that each say so at a port when they run; it is one of the few things that walls leave open."""

    def __enter__(self) -> Started:
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        port = self._listening.getsockname()[1]
        self._command = f"bash -c 'echo > /dev/tcp/127.0.0.1/{port}; exec sleep 1000'"
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()

    def run(self, policy: Policy) -> Run:
        return Run(command=self._command, isolation=policy)

    def running(self, mas: LocalMas, run: Run) -> float:
        self._forget()
        begun = time.perf_counter()
        session = mas.start(run)
        for _ in range(_TEAM_SIZE):
            self._listening.accept()[0].close()
        took = time.perf_counter() - begun
        _close(mas, session.session_id)
        return took

    def _forget(self) -> None:
        """Whoever came while nobody listened is none of the next ones."""
        self._listening.setblocking(False)
        try:
            while True:
                self._listening.accept()[0].close()
        except BlockingIOError:
            self._listening.setblocking(True)
