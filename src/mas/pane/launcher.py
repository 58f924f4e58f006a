"""Runs one agent on a terminal of its own between it and tmux, and keeps the record of it.

tmux owns this process, so it outlives every other part of MAS. It never hands the pane to a shell: when the
agent ends, it ends what the agent left behind, says how it ended, and the pane stays dead.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found] # `signal` would import `enum`: a third of the launcher's start
import errno
import fcntl
import os
import select
import sys
import termios
import time

from mas.pane.processes import adopt_orphans, die_with_parent, kill_descendants, left_behind
from mas.pane.record import Record
from mas.store.launch import launch_path, read_launch, was_cut_short

_STOP_SIGNALS = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
_USUAL_SIGNALS = (
    *_STOP_SIGNALS,
    signal.SIGPIPE,
    signal.SIGXFSZ,
    signal.SIGCHLD,
    signal.SIGTSTP,
    signal.SIGTTIN,
    signal.SIGTTOU,
)
_DROPPED = ("TMUX", "TMUX_PANE", "MAS_DATA_DIR", "MAS_SESSION_MODE")
_BLOCK = 1 << 16
# How much may wait for a reader before its writer is left waiting too.
_HELD = 1 << 18
# A real agent saves its conversation when told to end; then it is made to.
_GRACE = 3.0
_UNRUNNABLE = 127
# Ends a sequence the agent left unfinished, then undoes what full-screen programs do to a terminal.
_RESET_SCREEN = b"\x1b\\\x1b[?1049l\x1b[?2004l\x1b[?1000l\x1b[?25h\x1b[0m\x0f\x1b(B"


def main(session_dir: str, agent: str) -> int:
    """Run the agent and answer its exit status."""
    # What waited at the gate left its lock open; an agent gets its terminal and nothing else.
    os.closerange(3, 16)
    argv, env, options = read_launch(launch_path(session_dir, agent))
    record = Record(session_dir, agent)
    if "opener" in options and was_cut_short(session_dir, options["opener"]):
        return _refuse(record, agent, "starting the session was cut short")
    try:
        _enter_unit(session_dir, agent, options.get("lazy"))
    except OSError as error:
        return _refuse(record, agent, f"cannot enter its unit directory: {error}")
    environ = {key: value for key, value in os.environ.items() if key not in _DROPPED} | env
    adopt_orphans()
    try:
        child, master = _spawn(argv, environ, options)
    except OSError as error:
        return _refuse(record, agent, f"cannot run {argv[0]}: {os.strerror(error.errno or 0)}")
    record.event("start", pid=child, launcher=os.getpid(), program=argv[0])
    status = _Relay(child, master, record).run()
    return _finish(record, agent, status)


def _enter_unit(session_dir: str, agent: str, lazy: str | None) -> None:
    unit = os.path.join(session_dir, "unit", agent)
    if lazy and not os.path.isdir(unit):
        from mas.store.tree import copy_tree, remove_tree

        half = os.path.join(session_dir, ".mas", f"unit-{agent}.tmp")
        remove_tree(half)
        copy_tree(lazy, half)
        os.rename(half, unit)
    os.chdir(unit)


def _spawn(argv: list[str], environ: dict[str, str], options: dict[str, str]) -> tuple[int, int]:
    """Start the program as leader of a new terminal session; `OSError` if it cannot be run."""
    master, slave = os.openpty()
    _copy_size(slave)
    failed, report = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            die_with_parent()
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for fd in (0, 1, 2):
                os.dup2(slave, fd)
            _limit_files(options.get("nofile"))
            # What Python, or whoever started tmux (`nohup`, a script's `&`), ignores would stay ignored in the program.
            for number in _USUAL_SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            os.execvpe(argv[0], argv, environ)  # noqa: S606 - no shell, on purpose
        except OSError as error:
            os.write(report, str(error.errno).encode())
        finally:
            os._exit(_UNRUNNABLE)
    # `slave` stays open here: a terminal that all have closed looks gone, and an agent may open its own again.
    os.close(report)
    # The pipe closes by itself when the program starts.
    reason = os.read(failed, 16)
    os.close(failed)
    if reason:
        os.waitpid(child, 0)
        os.close(master)
        raise OSError(int(reason), os.strerror(int(reason)))
    return child, master


def _limit_files(soft: str | None) -> None:
    """A server of ours runs with a raised descriptor limit; programs expect the usual one."""
    if soft:
        import resource

        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(int(soft), hard) if hard > 0 else int(soft), hard))


def _copy_size(terminal: int) -> None:
    """Give `terminal` the size of the pane."""
    try:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, fcntl.ioctl(0, termios.TIOCGWINSZ, b"\0" * 8))
    except OSError as error:
        if error.errno not in (errno.EIO, errno.ENOTTY):
            raise


class _Relay:
    """Carries bytes between the pane and the agent until the agent has ended."""

    def __init__(self, child: int, master: int, record: Record) -> None:
        self.child = child
        self.master = master
        self.record = record
        self.status: int | None = None
        self.to_agent = bytearray()
        self.to_pane = bytearray()
        self.pane_open = True
        self.master_open = True
        self.kill_at: float | None = None
        self.wake, self.waker = os.pipe()
        for fd in (self.wake, self.waker, master, 0, 1):
            os.set_blocking(fd, False)

    def run(self) -> int:
        saved = _raw_mode()
        signal.set_wakeup_fd(self.waker, warn_on_full_buffer=False)
        for number in (*_STOP_SIGNALS, signal.SIGWINCH, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        # A child that ended before the handler was there sent its signal to nobody.
        self._look_at_child()
        while self.status is None:
            self._step()
        self._drain()
        if saved is not None:
            _restore_mode(saved)
        return self.status

    def _step(self) -> None:
        """Wait until something can be moved, and move it."""
        wait = None if self.kill_at is None else max(0.0, self.kill_at - time.monotonic()) * 1000
        ready = dict(self._waiting().poll(wait))
        if self.wake in ready:
            self._handle_signals(os.read(self.wake, 256))
        if self.master in ready:
            self._read_master()
        if 0 in ready:
            self._read_pane()
        if self.master_open and self.to_agent:
            _write_some(self.master, self.to_agent)
        if self.to_pane:
            self._write_pane()
        if self.kill_at is not None and time.monotonic() >= self.kill_at:
            _signal_group(self.child, signal.SIGKILL)
            self.kill_at = None

    def _waiting(self) -> select.poll:
        """Whom to wait for: readers only while there is room for what they bring."""
        poll = select.poll()
        poll.register(self.wake, select.POLLIN)
        if self.master_open:
            reading = select.POLLIN if len(self.to_pane) < _HELD else 0
            poll.register(self.master, reading | (select.POLLOUT if self.to_agent else 0))
        if self.pane_open and len(self.to_agent) < _HELD:
            poll.register(0, select.POLLIN)
        if self.pane_open and self.to_pane:
            poll.register(1, select.POLLOUT)
        return poll

    def _handle_signals(self, numbers: bytes) -> None:
        if signal.SIGWINCH in numbers:
            _copy_size(self.master)
        if any(number in _STOP_SIGNALS for number in numbers) and self.kill_at is None:
            _signal_group(self.child, signal.SIGHUP)
            _signal_group(self.child, signal.SIGTERM)
            _signal_group(self.child, signal.SIGCONT)
            self.kill_at = time.monotonic() + _GRACE
        if signal.SIGCHLD in numbers:
            self._look_at_child()

    def _look_at_child(self) -> None:
        """Reap what has ended; orphans the agent left are ours too."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self.child:
                    self.status = status
        except ChildProcessError:
            return

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
        self.record.output(data)
        if self.pane_open:
            self.to_pane += data

    def _read_pane(self) -> None:
        try:
            data = os.read(0, _BLOCK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self.to_agent += data
        else:
            self._lose_pane()

    def _write_pane(self) -> None:
        try:
            _write_some(1, self.to_pane)
        except OSError:
            self._lose_pane()

    def _lose_pane(self) -> None:
        """tmux is gone; the hang-up signal that tells so may still be on its way."""
        self.pane_open = False
        self.to_pane.clear()

    def _drain(self) -> None:
        """What the agent wrote last is still in its terminal; a process it left may go on writing."""
        until = time.monotonic() + 1
        while self.master_open and time.monotonic() < until and select.select([self.master], [], [], 0)[0]:
            self._read_master()
        while self.pane_open and self.to_pane and time.monotonic() < until:
            select.select([], [1], [], 0.1)
            self._write_pane()


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


def _raw_mode() -> list[object] | None:
    """Let every byte pass the pane's terminal untouched."""
    try:
        saved = termios.tcgetattr(0)
    except termios.error:
        return None
    raw = termios.tcgetattr(0)
    raw[0] = 0
    raw[1] = 0
    raw[2] = raw[2] & ~(termios.CSIZE | termios.PARENB) | termios.CS8
    raw[3] = 0
    raw[6][termios.VMIN] = 1
    raw[6][termios.VTIME] = 0
    termios.tcsetattr(0, termios.TCSANOW, raw)
    return saved


def _restore_mode(saved: list[object]) -> None:
    try:
        termios.tcsetattr(0, termios.TCSANOW, saved)  # type: ignore[arg-type]
    except termios.error:
        return


def _finish(record: Record, agent: str, status: int) -> int:
    """End what the agent left, note how it ended, tell the person looking at the pane."""
    left = left_behind()
    undying = kill_descendants(time.monotonic() + _GRACE)
    code = os.waitstatus_to_exitcode(status)
    how = f"signal {-code}" if code < 0 else f"exit status {code}"
    record.event(
        "exit",
        status=code,
        left=[f"{pid} {name}" for pid, name in left.items()],
        undying=[str(pid) for pid in undying],
    )
    _say(f"agent {agent} ended: {how}")
    return code if code >= 0 else 128 - code


def _refuse(record: Record, agent: str, why: str) -> int:
    record.event("exit", status=_UNRUNNABLE, reason=why)
    _say(f"agent {agent} did not start: {why}")
    return _UNRUNNABLE


def _say(text: str) -> None:
    try:
        os.set_blocking(1, True)
        os.write(1, _RESET_SCREEN + f"\r\n[{text}]\r\n".encode("utf-8", "replace"))
    except OSError:
        sys.exit(1)
