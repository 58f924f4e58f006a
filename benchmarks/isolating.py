"""What isolation adds: 13 agents behind namespaces and Landlock, against the same without."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
import time

from benchmarks.arena import arena
from benchmarks.floor import RawTmux
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
        raw = RawTmux(site, site.user_socket)
        os.makedirs(os.path.dirname(raw.socket), mode=0o700, exist_ok=True)
        raw.keep()
        try:
            # Whoever starts first finds out what the machine can do; that is kept until it boots.
            _close(mas, mas.start(started.run(_TIER_A)).session_id)
        except NotIsolated as error:
            return Group(_TITLE, (), (f"Not measured: {error.message}",))
        answered, answered_off, running, running_off, floor = in_turns(
            effort.repeats(9),
            lambda: _answered(mas, started.run(_TIER_A)),
            lambda: _answered(mas, started.run(_OFF)),
            lambda: started.running(mas, started.run(_TIER_A)),
            lambda: started.running(mas, started.run(_OFF)),
            lambda: started.running_in(raw),
        )
    return Group(
        _TITLE,
        (
            times("start 13 agents, tier A", answered, "isolation off", answered_off, 2.5),
            times(
                "start 13 agents, tier A, until each program really runs", running, "isolation off", running_off, 2.5
            ),
            Row("the same, less what it takes without", running - running_off, bound="1 s", limit=1.0),
            Row("the same, beside panes that tmux alone opened", running, "13 programs run by tmux itself", floor),
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
    """Programs that each say so in a pipe when they run, which their policy opens for them."""

    def __enter__(self) -> Started:
        self._directory = tempfile.mkdtemp(prefix="mas-started-")
        pipe = os.path.join(self._directory, "pipe")
        os.mkfifo(pipe)
        # Open for writing too: there is always a writer, and so never an end.
        self._listening = os.open(pipe, os.O_RDWR | os.O_CLOEXEC)
        self._command = f"bash -c 'echo > {pipe}; exec sleep 1000'"
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._listening)
        shutil.rmtree(self._directory)

    def run(self, policy: Policy) -> Run:
        return Run(command=self._command, isolation=policy._replace(write=(self._directory,)))

    def running(self, mas: LocalMas, run: Run) -> float:
        self._forget()
        begun = time.perf_counter()
        session = mas.start(run)
        self._wait()
        took = time.perf_counter() - begun
        _close(mas, session.session_id)
        return took

    def running_in(self, raw: RawTmux) -> float:
        """The same programs, started by tmux alone."""
        self._forget()
        begun = time.perf_counter()
        raw.open("floor", shlex.split(self._command))
        self._wait()
        took = time.perf_counter() - begun
        raw.close("floor")
        return took

    def _wait(self) -> None:
        """Until each program has said that it runs."""
        for _ in range(_TEAM_SIZE):
            os.read(self._listening, 1)

    def _forget(self) -> None:
        """What earlier programs wrote is not about the next ones."""
        os.set_blocking(self._listening, False)
        try:
            while True:
                os.read(self._listening, 64)
        except BlockingIOError:
            os.set_blocking(self._listening, True)
