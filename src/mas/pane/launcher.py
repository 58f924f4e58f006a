"""Runs one agent on its own pseudo-terminal, between the agent and tmux, and records it.

tmux owns this process, so it outlives every other part of MAS. It never hands the pane to a shell: when the
agent ends, it ends what the agent left behind, says how it ended, and the pane stays dead; unless a policy has it
run the agent once more, in the same pane.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found] # `signal` would import `enum`: a third of the launcher's start
import fcntl
import os
import sys
import termios
import time

from mas.pane.processes import Process, adopt_orphans, die_with_parent, mark_descendants
from mas.pane.terminal import copy_size, size_of, write_and_wait
from mas.store.agent.launch_plan import launch_path, read_plan, was_cut_short
from mas.store.files.descriptors import DIRECTORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mas.model.launch import LaunchPlan, Rules
    from mas.pane.home import Home
    from mas.pane.hooks import Hooks
    from mas.pane.logs import AgentLogs
    from mas.pane.relay import Relay
    from mas.pane.restarts import Restarts
    from mas.runtime.network.hold import Network
    from mas.runtime.sandbox.enter import SandboxProgram
    from mas.store.agent.agentlog import Fields

_USUAL_SIGNALS = (
    signal.SIGHUP,
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGPIPE,
    signal.SIGXFSZ,
    signal.SIGCHLD,
    signal.SIGTSTP,
    signal.SIGTTIN,
    signal.SIGTTOU,
)
# All that an agent has of the pane's environment: what its terminal can do. The rest is in its launch file.
_OF_THE_TERMINAL = ("TERM", "COLORTERM")
# How long what the agent left may take to die.
_GRACE = 3.0
# How long tmux may take to have read what an agent showed last.
_TAKEN = 1.0
_UNRUNNABLE = 127
# How long the rest of a workspace may take to be removed, once the session and the socket are gone.
_REMOVAL = 10.0
_LOOK_AGAIN = 0.1
# Where the sockets of a workspace's own tmux servers are.
_BESIDE_SESSIONS = "/sessions/.mas/tmux/"
# Ends a sequence the agent left unfinished, then undoes what full-screen programs do to a terminal.
_RESET_SCREEN = b"\x1b\\\x1b[?1049l\x1b[?2004l\x1b[?1000l\x1b[?25h\x1b[0m\x0f\x1b(B"


class Refused(Exception):
    """Why an agent that must be isolated cannot be."""


def main(session_dir: str, agent: str) -> int:
    """Run the agent and answer its exit status."""
    # What waited at the gate left its lock open; an agent gets its terminal and nothing else.
    os.closerange(3, 16)
    os.environ["PATH"] = _absolute_only(os.environ.get("PATH", ""))
    try:
        plan = read_plan(launch_path(session_dir, agent))
    except (OSError, ValueError) as error:
        command = f"mas restart-agent {os.path.basename(session_dir)} {agent}"
        return _refuse(session_dir, agent, f"{error}; start it again: {command}")
    if plan.opener and was_cut_short(session_dir, plan.opener):
        return _refuse(session_dir, agent, "starting the session was interrupted")
    try:
        _enter_unit(session_dir, agent, plan.lazy)
    except OSError as error:
        return _refuse(session_dir, agent, f"cannot enter its unit directory: {error}")
    environ = {key: os.environ[key] for key in _OF_THE_TERMINAL if key in os.environ} | dict(plan.env)
    adopt_orphans()
    try:
        network = _network(agent, plan)
    except OSError as error:
        return _refuse(session_dir, agent, f"cannot have a network of its own: {error.strerror or error}")
    runner = _Runner(session_dir, agent, environ.get("TERM", ""), plan, _hooks(session_dir, agent, plan))
    argv = plan.argv
    while True:
        try:
            process, master, slave = _spawn(argv, environ, plan, network)
        except Refused as refused:
            return _refuse(session_dir, agent, f"cannot be isolated: {refused}")
        except OSError as error:
            return _refuse(session_dir, agent, f"cannot run {argv[0]}: {os.strerror(error.errno or 0)}")
        code = runner.run(argv[0], process, master, network)
        os.close(slave)
        if not runner.starts_again(code):
            if runner.is_homeless:
                _close_pane(runner.home)
            return code if code >= 0 else 128 - code
        argv, plan = _argv_again(plan), _alone(plan)


class _Runner:
    """Runs the agent once or, as its policy has it, several times."""

    def __init__(self, session_dir: str, agent: str, term: str, plan: LaunchPlan, hooks: Hooks | None) -> None:
        self._session_dir = session_dir
        self._agent = agent
        self._term = term
        self._plan = plan
        self._hooks = hooks
        self._logs: AgentLogs | None = None
        self._relay: Relay | None = None
        self._restarts: Restarts | None = None

    def run(self, program: str, process: Process, master: int, network: Network | None) -> int:
        """Stay until the agent exits, and end what it left; returns how it exited."""
        # Only now: the agent is on its way, and has not waited for this.
        from mas.pane.leftovers import kill_descendants, left_behind
        from mas.pane.logs import AgentLogs
        from mas.pane.relay import Relay

        logs = self._logs = self._logs or AgentLogs(self._session_dir, self._agent)
        logs.film(*size_of(master), self._term)
        restarts: Fields = {"restarts": self._restarts.count} if self._restarts else {}
        logs.event(
            "start",
            pid=process.pid,
            launcher=os.getpid(),
            program=program,
            sources=list(self._plan.states.sources),
            **restarts,
        )
        pipe = (self._relay.wake, self._relay.waker) if self._relay else None
        self._relay = Relay(process, master, logs, self._plan, pipe, self._hooks)
        if network:
            self._relay.keep_network(network)
        status = self._relay.run()
        self._left = left_behind(process.keepers)
        self._undying = kill_descendants(time.monotonic() + _GRACE, process.keepers)
        code = os.waitstatus_to_exitcode(status)
        self._limit = self._relay.limits.ended(code) if self._relay.limits else ""
        os.close(master)
        if process.ended >= 0:
            os.close(process.ended)
        return code

    @property
    def home(self) -> Home:
        assert self._logs is not None
        return self._logs.home

    @property
    def is_homeless(self) -> bool:
        """Whether the session's directory is gone: then no one can see the agent or close its pane."""
        return self._logs is not None and self.home.is_gone

    def starts_again(self, code: int) -> bool:
        """Record how the agent exited and print it in the pane; returns whether to start it again, after the pause."""
        assert self._relay is not None
        pause, words = self._policy_on(code)
        if self.is_homeless:
            words = "; the session's directory is gone"
        self._note_end(code, words, again=pause is not None)
        if pause is None:
            return False
        if not self._relay.may_go_on(pause):
            self._note_end(code, "; not started again: it was asked to stop")
            return False
        try:
            # What was typed meanwhile had no reader.
            termios.tcflush(0, termios.TCIFLUSH)
        except termios.error:
            return False
        return True

    def _policy_on(self, code: int) -> tuple[float | None, str]:
        """How long to wait before the agent is started again, if it is; and the text about it."""
        if not self._plan.restart or not self._relay or not self._relay.may_go_on(0):
            return None, ""
        from mas.pane.restarts import Restarts

        restarts = self._restarts or Restarts(self._plan.restart, self._plan.restart_limit)
        if not restarts.covers(code):
            return None, ""
        pause = restarts.pause()
        if pause is None:
            return None, "; not started again: its restart limit is reached"
        self._restarts = restarts
        return pause, f"; starts again in {pause:g} s"

    def _note_end(self, code: int, words: str, again: bool = False) -> None:
        from mas.pane.logs import how_ended

        assert self._logs is not None
        how = f"{self._limit or how_ended(code)}{words}"
        reason: Fields = {"reason": how} if words or self._limit else {}
        if self._limit:
            reason["limit"] = 1
        if again:
            reason["again"] = 1
        left, undying = self._left, self._undying
        self._logs.event(
            "exit",
            status=code,
            **reason,
            left=[f"{pid} {name}" for pid, name in left.items()],
            undying=[str(pid) for pid in undying],
        )
        _say(f"agent {self._agent} exited: {how}")


def _absolute_only(path: str) -> str:
    """PATH for programs of our own: in the agent's directory, where this process is, `bin` or `.` is the agent's."""
    return ":".join(place for place in path.split(":") if place.startswith("/")) or os.defpath


def _hooks(session_dir: str, agent: str, plan: LaunchPlan) -> Hooks | None:
    """Where the agent's hooks are received, if it has some and cannot record them itself."""
    if not plan.spool:
        return None
    from mas.pane.hooks import Hooks

    try:
        return Hooks(session_dir, agent)
    except OSError:
        # A run before this one has left something in the way; the agent can do without.
        return None


def _network(agent: str, plan: LaunchPlan) -> Network | None:
    """The network of the agent's session, made if there is none yet."""
    if not plan.network:
        return None
    from mas.runtime.network.hold import Network

    return Network(plan.network, agent)


def _argv_again(plan: LaunchPlan) -> tuple[str, ...]:
    """What to run once more: what goes on with the conversation, where there is one."""
    from mas.store.files.matching import is_any

    return plan.resume if plan.resume and (not plan.resume_if or is_any(plan.resume_if)) else plan.argv


def _alone(plan: LaunchPlan) -> LaunchPlan:
    """The plan without the root that the agents of a start share: by now, the machine may have changed."""
    return plan.but(isolation=plan.isolation.but(shared_root="")) if plan.isolation else plan


def _enter_unit(session_dir: str, agent: str, lazy: str | None) -> None:
    unit = os.path.join(session_dir, "unit", agent)
    if lazy and not os.path.isdir(unit):
        from mas.store.files.tree import copy_tree, remove_tree

        half = os.path.join(session_dir, ".mas", f"unit-{agent}.tmp")
        remove_tree(half)
        copy_tree(lazy, half)
        os.rename(half, unit)
    # A link that some agent put there would lead this one where it must not be.
    fd = os.open(session_dir, DIRECTORY)
    for name in ("unit", agent):
        try:
            inner = os.open(name, DIRECTORY, dir_fd=fd)
        finally:
            os.close(fd)
        fd = inner
    os.fchdir(fd)
    os.close(fd)


def _spawn(
    argv: tuple[str, ...], environ: dict[str, str], plan: LaunchPlan, network: Network | None
) -> tuple[Process, int, int]:
    """Start the program as leader of a new terminal session; `OSError` if it cannot be run, `Refused` if not so.

    Returns the process and both ends of the terminal. The caller keeps the agent's end open too: a terminal that
    all have closed looks gone, and an agent may open its own again.
    """
    master, slave = os.openpty()
    copy_size(slave)
    try:
        if plan.isolation:
            from mas.runtime.sandbox.enter import SandboxProgram

            program = SandboxProgram(argv, environ, _limiter(plan), network.space.join if network else None)
            process = _start_isolated(plan.isolation, program, master, slave)
            if network:
                network.tell(process.pid)
        else:
            process = _start(argv, environ, _limiter(plan), slave)
        return process, master, slave
    except (Refused, OSError):
        os.close(master)
        os.close(slave)
        raise


def _start_isolated(rules: Rules, program: SandboxProgram, master: int, slave: int) -> Process:
    """Start the program behind the walls that its rules say."""
    from mas.runtime.sandbox.enter import SandboxFailed, start

    try:
        started = start(rules, program, master, slave)
    except SandboxFailed as refused:
        raise Refused(str(refused)) from None
    return Process(started.agent, started.keepers, started.ended)


def _start(argv: tuple[str, ...], environ: dict[str, str], limit: Callable[[], None], slave: int) -> Process:
    failed, report = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            die_with_parent()
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for fd in (0, 1, 2):
                os.dup2(slave, fd)
            limit()
            # Signals that Python or tmux's parent (`nohup`, a script's `&`) ignores would stay ignored in the program.
            for number in _USUAL_SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            os.execvpe(argv[0], argv, environ)  # noqa: S606 - no shell, on purpose
        except OSError as error:
            os.write(report, str(error.errno).encode())
        finally:
            os._exit(_UNRUNNABLE)
    os.close(report)
    # The pipe closes by itself when the program starts.
    reason = os.read(failed, 16)
    os.close(failed)
    if reason:
        os.waitpid(child, 0)
        raise OSError(int(reason), os.strerror(int(reason)))
    return Process(child)


def _set_limits(plan: LaunchPlan) -> None:
    """Mark the agent's process, and limit its files: a server of ours has a raised limit, programs expect the usual."""
    if plan.mark:
        mark_descendants(plan.mark)
    if soft := plan.nofile:
        import resource

        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, hard) if hard > 0 else soft, hard))


def _limiter(plan: LaunchPlan) -> Callable[[], None]:
    """What the agent's future process calls to set its limits."""
    limits = plan.limits
    if limits is None:
        return lambda: _set_limits(plan)
    from mas.runtime.limits.apply import enter, user_namespace

    outside = user_namespace()

    def limit() -> None:
        _set_limits(plan)
        enter(limits, user_namespace() != outside)

    return limit


def _close_pane(home: Home) -> None:
    """Have tmux close this pane, and this process with it; where that cannot be, the pane stays dead."""
    socket, _, numbers = os.environ.get("TMUX", "").partition(",")
    pane, parent = os.environ.get("TMUX_PANE"), os.getppid()
    if not socket or not pane:
        return
    try:
        if _BESIDE_SESSIONS in socket:
            socket = _moved(socket, home)
            if not socket:
                # The workspace's own server, whose socket was removed with it: no process can connect to it any more.
                if numbers.startswith(f"{parent},"):
                    os.kill(parent, signal.SIGTERM)
                return
        os.execvp("tmux", ["tmux", "-N", "-S", socket, "kill-pane", "-t", pane])  # noqa: S606 - no shell
    except OSError:
        return


def _moved(socket: str, home: Home) -> str:
    """Where a socket beside the sessions is now: another server may have its old path. Empty if all were removed."""
    until = time.monotonic() + _REMOVAL
    while sessions := home.beside():
        moved = f"{os.path.dirname(sessions)}{_BESIDE_SESSIONS}{os.path.basename(socket)}"
        if os.path.lexists(moved) or time.monotonic() > until:
            return moved
        time.sleep(_LOOK_AGAIN)
    return ""


def _refuse(session_dir: str, agent: str, why: str) -> int:
    from mas.pane.logs import AgentLogs

    AgentLogs(session_dir, agent).event("exit", status=_UNRUNNABLE, reason=why)
    _say(f"agent {agent} did not start: {why}")
    return _UNRUNNABLE


def _say(text: str) -> None:
    try:
        write_and_wait(_RESET_SCREEN + f"\r\n[{text}]\r\n".encode("utf-8", "replace"), _TAKEN)
    except OSError:
        sys.exit(1)
