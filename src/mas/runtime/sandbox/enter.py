"""Starts an agent's process behind its walls, in the one order in which each wall can still be built.

Limits, account and namespaces, capabilities, `no_new_privs`, Landlock, system calls, and only then the program. A
step that fails is the end of it: no program runs with fewer walls than its rules say.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found] # `signal` would import `enum`: a third of the launcher's start
import fcntl
import os
import termios

from mas.runtime.sandbox import landlock, privileges, seccomp
from mas.runtime.sandbox.bwrap import command, packed, unpacked
from mas.runtime.sandbox.init import keep
from mas.runtime.sandbox.namespaces import NoProc, build_view, clone, keep_ids, seal_devices
from mas.runtime.sandbox.rules import Rules, from_options, to_options
from mas.runtime.sandbox.system import close_on_exec, die_with_parent
from mas.runtime.sandbox.view import of_root

# Whatever is for nothing but its name costs nothing at the start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_UNRUNNABLE = 127
_SIGNALS = range(1, 32)
_UNCHANGEABLE = (9, 19)
_ENOENT, _ENOTDIR = 2, 20
# What comes through the report: the agent has its terminal; why not; and that there can be no own processes.
_READY, _NOT_ISOLATED, _NOT_RUN, _NO_PROC = b"r", b"i", b"e", b"p"
_GO = b"g"
_TIOCGSID = 0x5429


class NotIsolated(Exception):
    """Why an agent could not be shut in, in words; it did not start."""


class Started:
    """A running agent."""

    __slots__ = ("agent", "ended", "keepers")

    def __init__(self, agent: int, keepers: tuple[int, ...], ended: int) -> None:
        self.agent = agent
        """The process that runs the program, and leads a group and a session of its own."""
        self.keepers = keepers
        """Processes of ours around it, the one first that is this process's child; none if the agent itself is that."""
        self.ended = ended
        """From here its wait status can be read, four bytes, once it has ended; -1 if it is this process's child."""


class Program:
    """What to run, and what to do first, in its process, while that may still do everything."""

    __slots__ = ("argv", "environ", "paths", "prepare")

    def __init__(self, argv: list[str], environ: dict[str, str], prepare: Callable[[], None]) -> None:
        self.argv = argv
        self.environ = environ
        self.prepare = prepare
        name = argv[0]
        # Looked up before the walls: it may import something.
        self.paths = [name] if "/" in name else [os.path.join(place, name) for place in os.get_exec_path(environ)]


def start(rules: Rules, program: Program, master: int, slave: int) -> Started:
    """Run the program on its terminal behind the walls; `NotIsolated` or, if it cannot be run, `OSError`."""
    rules = _with_roots(rules)
    if rules.account:
        os.fchown(slave, *rules.account)
    own_processes = rules.how == "namespaces"
    started = _start(rules, program, master, slave, own_processes) or _start(rules, program, master, slave, False)
    if started is None:
        raise NotIsolated("there is no /proc")
    return started


def _with_roots(rules: Rules) -> Rules:
    """The rules, and for an agent that is root what only root owns."""
    if os.geteuid() or (rules.account and rules.account[0]):
        return rules
    options = to_options(rules)
    options |= {f"isolation.hide.root{number}": path for number, path in enumerate(of_root(rules.tier))}
    return from_options(options) or rules


def _start(rules: Rules, program: Program, master: int, slave: int, own_processes: bool) -> Started | None:
    """None if it cannot have processes of its own."""
    pipes = [os.pipe() for _ in range(4)]
    (report, _), (_, gate), (ended, _), (words, _) = pipes
    ours = (report, gate, ended, words)
    theirs = tuple(end for pipe in pipes for end in pipe if end not in ours)
    ids = os.geteuid(), os.getegid()
    new_user = False
    try:
        if rules.how == "namespaces":
            child, new_user = clone(own_processes)
        else:
            child = os.fork()
    except OSError as error:
        _close(*ours, *theirs)
        raise NotIsolated(_said(error)) from None
    if child == 0:
        _close(master, *ours)
        _Inner(rules, program, slave, theirs).run(own_processes, ids if new_user else None)
    _close(*theirs)
    try:
        started = _follow(child, master, ours)
    except (NotIsolated, OSError):
        _close(*ours)
        raise
    _close(report, gate, words)
    if started is None or started.ended < 0:
        _close(ended)
    return started


def _follow(child: int, master: int, pipes: tuple[int, int, int, int]) -> Started | None:
    """Wait until the program runs, or why it does not."""
    report, gate, ended, words = pipes
    said = os.read(report, 1)
    if said == _READY:
        agent, keepers = _who(child, master)
        os.write(gate, _GO)
        said = os.read(report, 1)
        # It closes by itself when the program starts.
        if not said:
            return Started(agent, keepers, ended if keepers else -1)
    why = os.read(report, 1 << 12).decode("utf-8", "replace")
    os.waitpid(child, 0)
    if said == _NO_PROC:
        return None
    if said == _NOT_RUN:
        raise OSError(int(why), os.strerror(int(why)))
    os.set_blocking(words, False)
    raise NotIsolated(why or _last_words(words) or "its process ended on the way")


def _who(child: int, master: int) -> tuple[int, tuple[int, ...]]:
    """The agent, which leads the session on that terminal, and who of ours is around it: as seen from here."""
    agent = int.from_bytes(fcntl.ioctl(master, _TIOCGSID, bytes(4)), "little")
    if agent == child:
        return agent, ()
    with open(f"/proc/{agent}/stat", "rb") as file:
        parent = int(file.read().rpartition(b")")[2].split()[1])
    return agent, (child,) if parent == child else (child, parent)


class _Inner:
    """The process on its way in; `pipes` are its ends of them."""

    def __init__(self, rules: Rules, program: Program, slave: int, pipes: tuple[int, ...]) -> None:
        self.rules = rules
        self.program = program
        self.slave = slave
        self.report, self.gate, self.ended, self.words = pipes

    def run(self, own_processes: bool, new_user: tuple[int, int] | None) -> None:
        """Go in and become the agent. Does not return."""
        try:
            self.program.prepare()
            if self.rules.how == "namespaces":
                self._go_into_namespaces(own_processes, new_user)
            elif self.rules.how == "bwrap":
                self._go_by_bwrap()
            else:
                ruleset = landlock.ruleset(self.rules)
                privileges.drop(self.rules.account, wholly=not os.geteuid())
                die_with_parent()
                self.become_agent(ruleset)
        except NoProc:
            os.write(self.report, _NO_PROC)
        except (OSError, MemoryError, ValueError) as error:
            self.tell(error)
        finally:
            os._exit(_UNRUNNABLE)

    def tell(self, error: Exception) -> None:
        """Say why the agent cannot be shut in."""
        os.write(self.report, _NOT_ISOLATED + _said(error).encode("utf-8", "replace"))

    def _go_into_namespaces(self, own_processes: bool, new_user: tuple[int, int] | None) -> None:
        directory = os.getcwd()
        mask = os.umask(0o022)
        if new_user:
            keep_ids(*new_user)
        build_view(self.rules, own_processes)
        # Where it was is below what has been laid over it.
        os.chdir(directory)
        os.umask(mask)
        ruleset = landlock.ruleset(self.rules)
        privileges.drop(self.rules.account, wholly=True)
        die_with_parent()
        self.become_init(ruleset) if own_processes else self.become_agent(ruleset)

    def _go_by_bwrap(self) -> None:
        data = os.memfd_create("mas")
        pairs = [
            [f"{key}={value}" for key, value in part.items()] for part in (self.program.environ, to_options(self.rules))
        ]
        os.write(data, packed([os.getcwd()], self.program.argv, *pairs))
        descriptors = (self.slave, self.report, self.gate, self.ended, data)
        argv = command(self.rules, descriptors)
        die_with_parent()
        # Of a terminal there it would make a console inside.
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for fd, to in ((nothing, 0), (nothing, 1), (self.words, 2)):
            os.dup2(fd, to)
        for fd in descriptors:
            os.set_inheritable(fd, True)
        os.execve(argv[0], argv, {})  # noqa: S606 - no shell, on purpose

    def become_init(self, ruleset: int) -> None:
        """Be the first process of the namespace, and start the agent as another: the first one ignores signals."""
        _usual_signals()
        os.setsid()
        agent = os.fork()
        if agent:
            keep(agent, self.ended)
        self.become_agent(ruleset)

    def become_agent(self, ruleset: int) -> None:
        """Take the terminal, shut the last doors, and run the program."""
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
        for fd in (0, 1, 2):
            os.dup2(self.slave, fd)
        os.write(self.report, _READY)
        landlock.restrict(ruleset)
        seccomp.install(unix_sockets=self.rules.tier == "A", all_ports=self.rules.ports is None)
        _usual_signals()
        close_on_exec(3)
        # Whoever started this knows by now which process it is; or is gone, and it must not run.
        if os.read(self.gate, 1) == _GO:
            os.write(self.report, _NOT_RUN + str(_run(self.program)).encode())


def go_on_inside(descriptors: list[int]) -> None:
    """In the view that bubblewrap made, do the rest. Does not return."""
    slave, report, gate, ended, data = descriptors
    for fd in descriptors:
        os.set_inheritable(fd, False)
    os.lseek(data, 0, os.SEEK_SET)
    with open(data, "rb") as file:
        (directory,), argv, environ, options = unpacked(file.read())
    rules = from_options(_pairs(options))
    assert rules is not None
    inner = _Inner(rules, Program(argv, _pairs(environ), _nothing), slave, (report, gate, ended, -1))
    try:
        if not os.geteuid():
            # Nobody else owns them.
            seal_devices()
        # The account's own directories are closed to a root that has no other capability.
        privileges.drop(rules.account, wholly=True)
        os.chdir(directory)
        inner.become_init(landlock.ruleset(rules))
    except (OSError, MemoryError, ValueError) as error:
        inner.tell(error)
    finally:
        os._exit(_UNRUNNABLE)


def _run(program: Program) -> int:
    """Does not return, unless the program cannot be run: then why, as an error number."""
    why = _ENOENT
    for path in program.paths:
        try:
            os.execve(path, program.argv, program.environ)  # noqa: S606 - no shell, on purpose
        except OSError as error:
            if why == _ENOENT and error.errno:
                why = error.errno if error.errno != _ENOTDIR or len(program.paths) == 1 else _ENOENT
    return why


def _usual_signals() -> None:
    for number in _SIGNALS:
        if number not in _UNCHANGEABLE:
            signal.signal(number, signal.SIG_DFL)


def _pairs(words: list[str]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words)


def _nothing() -> None:
    """Bubblewrap was already run by a process that had done it."""


def _said(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def _last_words(words: int) -> str:
    try:
        return os.read(words, 1 << 12).decode("utf-8", "replace").strip()
    except BlockingIOError:
        return ""


def _close(*descriptors: int) -> None:
    for fd in descriptors:
        os.close(fd)
