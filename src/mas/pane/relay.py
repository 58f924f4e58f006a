"""Carries bytes between the pane and the agent, and reads what the agent reports about itself."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found] # `signal` would import `enum`: a third of the launcher's start
import os
import select
import time

from mas.pane.logs import AgentLogs
from mas.pane.osc import ReportFilter, Titles
from mas.pane.processes import Process
from mas.pane.states import States
from mas.pane.terminal import copy_size, raw_mode, restore_mode, size_of
from mas.pane.typed import Typed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from mas.model.launch import LaunchPlan
    from mas.pane.foreground import Foreground
    from mas.pane.hooks import Hooks
    from mas.pane.limits import LimitWatch
    from mas.pane.quit import Quit
    from mas.pane.screen import ScreenReader
    from mas.runtime.network.hold import Network

    class Part(Protocol):
        @property
        def due(self) -> float | None: ...

    # What to look at when it is due, and how.
    Timed = tuple[Part, Callable[[float], None]]

_STOP_SIGNALS = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
# Makes the agent quit by its own keys first. The sender has checked that the agent asks no question.
_QUIT_SIGNAL = signal.SIGUSR1
_BLOCK = 1 << 16
# How much may wait for a reader before its writer is left waiting too.
_HELD = 1 << 18
# A real agent saves its conversation when it is asked to end; after this long it is killed.
_GRACE = 3.0
# At most this many queries a second are answered. A terminal that echoes the answer would ask again with it, for ever.
_ANSWERS = 16


class Relay:
    """Runs until the agent has ended. `plan` says by which sources its state is known.

    `pipe` is that of the agent that ran here before, so that no signal between the two is missed. `hooks` are received
    here if the agent cannot record them itself.
    """

    def __init__(
        self,
        process: Process,
        master: int,
        logs: AgentLogs,
        plan: LaunchPlan,
        pipe: tuple[int, int] | None = None,
        hooks: Hooks | None = None,
    ) -> None:
        self.child = process.pid
        self.keepers = process.keepers
        self.ended = process.ended
        # Our own child, if the agent is not.
        self.keeper = process.keepers[0] if process.ended >= 0 else None
        self.master = master
        self.logs = logs
        self.status: int | None = None
        self.to_agent = bytearray()
        self.to_pane = bytearray()
        self.pane_open = True
        self.master_open = True
        self.plan = plan
        self.quit: Quit | None = None
        self.kill = _Deadline()
        self.must_end = False
        now = time.monotonic()
        self.reports = ReportFilter()
        self.titles = Titles(plan.states.title_map) if plan.states.title_map else None
        self.foreground = self._foreground()
        self.typed = Typed(lambda what, name: logs.event(what, id=name))
        self.states = States(logs, plan.states.sources, now, plan.states.start_timeout, plan.states.titles_wait)
        self.screen = self._screen(now)
        self.limits = self._limits(now)
        self.hooks = hooks
        self.network: Network | None = None
        self.answers = (0, _ANSWERS)
        self.wake, self.waker = pipe or os.pipe()
        for fd in (self.wake, self.waker, master, 0, 1):
            os.set_blocking(fd, False)
        if self.foreground:
            self.foreground.stir(now)
        self.timed = self._timed()

    def keep_network(self, network: Network) -> None:
        """See to it that the egress process of the session's network is running."""
        self.network = network
        network.refused = self.logs.refused
        self.timed.append((network, network.look))

    def _timed(self) -> list[Timed]:
        """The parts that are looked at when they are due."""
        timed: list[Timed] = [
            (self.typed, lambda _: self.to_agent.extend(self.typed.release())),
            (self.logs, self.logs.look),
            (self.logs.home, self._look_at_home),
            (self.states, self.states.look),
            (self.kill, self._kill_agent),
        ]
        if self.foreground:
            timed.append((self.foreground, self._look_at_foreground))
        if self.screen:
            timed.append((self.screen, self._look_at_screen))
        if self.limits:
            timed.append((self.limits, self.limits.look))
        if self.hooks:
            timed.append((self.hooks, self.hooks.look))
        return timed

    def _foreground(self) -> Foreground | None:
        """What runs in the foreground of a shell."""
        if "foreground" not in self.plan.states.sources:
            return None
        from mas.pane.foreground import Foreground

        return Foreground(self.master, self.child)

    def _screen(self, now: float) -> ScreenReader | None:
        """The screen, for programs whose state can be read there."""
        if not self.plan.states.dialogs and not self.plan.states.screen_map:
            return None
        from mas.pane.screen import screen_of

        return screen_of(self.plan.states, self._see, now)

    def _limits(self, now: float) -> LimitWatch | None:
        """The agent's limits, if it has any."""
        if self.plan.limits is None:
            return None
        from mas.pane.limits import LimitWatch

        return LimitWatch(self.plan.limits, self.keepers, now, self.logs.warn)

    def run(self) -> int:
        saved = raw_mode()
        signal.set_wakeup_fd(self.waker, warn_on_full_buffer=False)
        for number in (*_STOP_SIGNALS, _QUIT_SIGNAL, signal.SIGWINCH, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        # The signal of a child that exited before the handler was set is lost.
        self._look_at_child()
        while self.status is None:
            self._step()
        self._drain()
        if saved is not None:
            restore_mode(saved)
        return self.status

    def may_go_on(self, pause: float) -> bool:
        """Whether an agent may be started here after a pause: not if tmux is gone, or it was asked to end."""
        deadline = time.monotonic() + pause
        while self.pane_open and not self.must_end:
            left = deadline - time.monotonic()
            if left <= 0:
                return True
            if select.select([self.wake], [], [], left)[0]:
                numbers = os.read(self.wake, 256)
                self.must_end = any(number in (*_STOP_SIGNALS, _QUIT_SIGNAL) for number in numbers)
        return False

    def _step(self) -> None:
        """Wait until something can be moved, and move it."""
        ready = dict(self._waiting().poll(self._patience()))
        if self.ended in ready:
            self._hear_of_end()
        if self.wake in ready:
            self._handle_signals(os.read(self.wake, 256))
        if self.master in ready:
            self._read_master()
        if 0 in ready:
            self._read_pane()
        if self.screen and self.screen.fd in ready:
            self.screen.read()
        if self.hooks and self.hooks.fd in ready:
            self.hooks.hear(time.monotonic())
        if self.network and self.network.fd in ready:
            self.network.hear(time.monotonic())
        if self.master_open and self.to_agent:
            _write_some(self.master, self.to_agent)
        self.typed.tell()
        if self.to_pane:
            self._write_pane()
        self._do_what_is_due(time.monotonic())

    def _patience(self) -> float:
        """How long to wait until something is due, in milliseconds."""
        due = [due for part, _ in self.timed if (due := part.due) is not None]
        return max(0.0, min(due) - time.monotonic()) * 1000

    def _do_what_is_due(self, now: float) -> None:
        for part, look in self.timed:
            if (due := part.due) is not None and now >= due:
                look(now)

    def _waiting(self) -> select.poll:
        """What to wait for: input only while there is room for it."""
        poll = select.poll()
        poll.register(self.wake, select.POLLIN)
        if self.ended >= 0:
            poll.register(self.ended, select.POLLIN)
        if self.master_open:
            reading = select.POLLIN if len(self.to_pane) < _HELD else 0
            poll.register(self.master, reading | (select.POLLOUT if self.to_agent else 0))
        if self.pane_open and len(self.to_agent) < _HELD:
            poll.register(0, select.POLLIN)
        if self.pane_open and self.to_pane:
            poll.register(1, select.POLLOUT)
        if self.screen and self.screen.fd >= 0:
            poll.register(self.screen.fd, select.POLLIN)
        if self.hooks and self.hooks.fd >= 0:
            poll.register(self.hooks.fd, select.POLLIN)
        if self.network and self.network.fd >= 0:
            poll.register(self.network.fd, select.POLLIN)
        return poll

    def _handle_signals(self, numbers: bytes) -> None:
        if signal.SIGWINCH in numbers:
            copy_size(self.master)
            self.logs.resize(*size_of(self.master))
        is_stopped = any(number in _STOP_SIGNALS for number in numbers)
        self.must_end = self.must_end or is_stopped or _QUIT_SIGNAL in numbers
        if is_stopped:
            self._end_agent()
        elif _QUIT_SIGNAL in numbers and self.quit is None and self.kill.due is None:
            from mas.pane.quit import Quit

            # A stopped program reads no key.
            _signal_group(self.child, signal.SIGCONT)
            self.quit = Quit(self.plan, self.master, self.child, time.monotonic())
            self.timed.append((self.quit, self._go_on_quitting))
        if signal.SIGCHLD in numbers:
            self._look_at_child()

    def _look_at_home(self, now: float) -> None:
        self.logs.home.look(now)
        if self.logs.home.is_gone:
            self.must_end = True
            self._end_agent()

    def _look_at_foreground(self, now: float) -> None:
        state = self.foreground.look(now) if self.foreground else None
        if state:
            self.states.say("foreground", state, "", "", now)

    def _go_on_quitting(self, now: float) -> None:
        asks = any(self.states.last(source)[0] == "blocked" for source in self.plan.states.sources)
        key = self.quit.key(now) if self.quit and not asks else None
        if key is None:
            self._end_agent()
        else:
            self.to_agent += key

    def _end_agent(self) -> None:
        """Ask the agent to exit by signals; if it does not exit in time, it is killed."""
        if self.quit:
            self.quit.due = None
        if self.kill.due is None:
            for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGCONT):
                _signal_group(self.child, number)
            self.kill.due = time.monotonic() + _GRACE

    def _kill_agent(self, _: float) -> None:
        self.kill.due = None
        _signal_group(self.child, signal.SIGKILL)

    def _look_at_child(self) -> None:
        """Reap what has ended; orphans the agent left are ours too."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if self.hooks:
                    self.hooks.ended(pid)
                if pid == self.child:
                    self.status = status
                elif pid == self.keeper:
                    self._hear_of_end()
                    # Without its keeper the agent is no more, however that ended.
                    self.status = status if self.status is None else self.status
                elif self.screen:
                    self.screen.ended(pid, status, time.monotonic())
        except ChildProcessError:
            return

    def _hear_of_end(self) -> None:
        """How the agent exited, from its keeper; nothing if the keeper was killed."""
        if self.ended < 0:
            return
        status = os.read(self.ended, 4)
        self.ended = -1
        if status:
            self.status = int.from_bytes(status, "little")

    def _read_master(self) -> None:
        try:
            data = os.read(self.master, _BLOCK)
        except BlockingIOError:
            return
        except OSError:
            # The agent and all that shared its terminal have closed it.
            data = b""
        if not data:
            self.master_open = False
            return
        shown = self.reports.feed(data)
        # Titles first: code that has seen a report can rely on the titles before it having been seen, too.
        if self.titles:
            self._read_titles(shown)
        if self.reports.reports or self.reports.queries:
            self._hear()
        if self.foreground:
            self.foreground.stir(time.monotonic())
        self._show(shown)

    def _hear(self) -> None:
        """Record what the agent reports, and answer its queries."""
        now = time.monotonic()
        for state, kind, _, text in self.reports.reports:
            if state != "idle":
                self.typed.begins_to_work()
            self.states.say("osc7501", state, kind, text, now)
        for query in self.reports.queries:
            second, left = self.answers if self.answers[0] == int(now) else (int(now), _ANSWERS)
            if left and len(self.to_agent) < _HELD:
                self.to_agent += query
                self.answers = (second, left - 1)
        self.reports.reports = []
        self.reports.queries = []

    def _read_titles(self, shown: bytes) -> None:
        assert self.titles is not None
        for state, kind, _, text in self.titles.feed(shown):
            # Titles are animated: another text is no news.
            if self.states.last("title") != (state, kind):
                self.states.say("title", state, kind, text, time.monotonic())

    def _look_at_screen(self, now: float) -> None:
        if self.screen and not self.states.know_better("screen"):
            self.screen.look(now)
        else:
            self._close_screen()

    def _close_screen(self) -> None:
        if self.screen:
            self.screen.close()
            self.screen = None

    def _see(self, state: str, kind: str, text: str) -> None:
        """What the screen means counts as long as no better source reports."""
        if not self.states.know_better("screen"):
            self.states.say("screen", state, kind, text, time.monotonic())

    def _show(self, shown: bytes) -> None:
        if shown:
            self.logs.output(shown)
            if self.pane_open:
                self.to_pane += shown
            else:
                self.logs.drawn()

    def _read_pane(self) -> None:
        try:
            data = os.read(0, _BLOCK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self.to_agent += self.typed.feed(data)
            if self.screen:
                self.screen.hear(data, time.monotonic())
            if self.foreground:
                self.foreground.stir(time.monotonic())
        else:
            self._lose_pane()

    def _write_pane(self) -> None:
        try:
            _write_some(1, self.to_pane)
        except OSError:
            self._lose_pane()
        if not self.to_pane:
            self.logs.drawn()
        if self.screen:
            self.screen.stir(time.monotonic())

    def _lose_pane(self) -> None:
        """tmux is gone; its hang-up signal may still be on its way."""
        self.pane_open = False
        self.to_pane.clear()
        self.logs.drawn()

    def _drain(self) -> None:
        """What the agent wrote last is still in its terminal; a process it left may go on writing."""
        # They hold this relay, which another follows if the agent runs again.
        self.timed.clear()
        self._close_screen()
        if self.hooks:
            self.hooks.rest()
        until = time.monotonic() + 1
        while self.master_open and time.monotonic() < until and select.select([self.master], [], [], 0)[0]:
            self._read_master()
        self.typed.tell()
        self._show(self.reports.rest())
        self.states.finish()
        self.logs.close()
        while self.pane_open and self.to_pane and time.monotonic() < until:
            select.select([], [1], [], 0.1)
            self._write_pane()


class _Deadline:
    """A time by the monotonic clock, or none."""

    due: float | None = None


def _write_some(fd: int, data: bytearray) -> None:
    try:
        del data[: os.write(fd, data)]
    except BlockingIOError:
        return


def _signal_group(pid: int, number: int) -> None:
    """Signal the agent's own group and whatever it has in the foreground."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return
