"""Starts an agent's process inside its sandbox, in the only order in which all parts can be set up.

Limits, account and namespaces, capabilities, `no_new_privs`, Landlock, system calls, and only then the program. A
step that fails is the end of it: no program runs with fewer walls than its rules say.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found] # `signal` would import `enum`: a third of the launcher's start
import fcntl
import os
import termios

from mas.model.launch import LaunchPlan, Rules, plan_in, plan_text
from mas.runtime.sandbox import landlock, privileges
from mas.runtime.sandbox.init import keep_agent, keep_namespace
from mas.runtime.sandbox.namespaces import NoProc, build_view, enter_namespaces, fork_beside, furnish, seal_devices
from mas.runtime.sandbox.system import close_on_exec, die_with_parent
from mas.runtime.sandbox.view import of_root, split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mas.runtime.sandbox.shared_root import SharedRoot

_UNRUNNABLE = 127
_SIGNALS = range(1, 32)
_UNCHANGEABLE = (9, 19)
_ENOENT, _ENOTDIR = 2, 20
# What comes through the report: the agent has its terminal; why not; and that there can be no own processes.
_READY, _NOT_ISOLATED, _NOT_RUN, _NO_PROC = b"r", b"i", b"e", b"p"
_GO = b"g"
_TIOCGSID = 0x5429
_SIGKILL = 9


class SandboxFailed(Exception):
    """Why an agent could not be isolated; it did not start."""


class Started:
    """A running agent."""

    __slots__ = ("agent", "ended", "keepers")

    def __init__(self, agent: int, keepers: tuple[int, ...], ended: int) -> None:
        self.agent = agent
        """The process that runs the program, and leads a group and a session of its own."""
        self.keepers = keepers
        """Processes of ours, a child of this one first, without which nothing of the agent lives."""
        self.ended = ended
        """From here its wait status can be read, four bytes, once it has ended; -1 if it is this process's child."""


class SandboxProgram:
    """What to run, and what to do first, in its process, while that may still do everything."""

    __slots__ = ("argv", "environ", "join", "paths", "prepare")

    def __init__(
        self,
        argv: tuple[str, ...],
        environ: Mapping[str, str],
        prepare: Callable[[], None],
        join: Callable[[], None] | None = None,
    ) -> None:
        """`join` moves its process into the network of its session, if that has one."""
        self.argv = argv
        self.join = join
        self.environ = environ
        self.prepare = prepare
        name = argv[0]
        # Looked up before the walls: it may import something.
        self.paths = [name] if "/" in name else [os.path.join(place, name) for place in os.get_exec_path(environ)]


def start(rules: Rules, program: SandboxProgram, master: int, slave: int) -> Started:
    """Run the program on its terminal behind the walls; `SandboxFailed` or, if it cannot be run, `OSError`."""
    rules = _with_roots(rules)
    if rules.account:
        os.fchown(slave, *rules.account)
    started = _start_in_shared(rules, program, master, slave) if rules.shared_root else None
    if started:
        return started
    try:
        return _start(_Inner(rules, program, slave), master, rules.how == "namespaces")
    except _NoProcesses:
        return _start(_Inner(rules, program, slave), master, False)


def _start_in_shared(rules: Rules, program: SandboxProgram, master: int, slave: int) -> Started | None:
    """Do so in a copy of the root that the agents of a start share; None if there is no way into one."""
    from mas.runtime.sandbox.shared_root import open_root

    root = open_root(rules, program.join)
    if root is None:
        return None
    try:
        return _start(_Inner(rules, program, slave, root), master, own_processes=True)
    except (SandboxFailed, _NoProcesses):
        return None
    finally:
        # Other launchers open it through this process, until it exits.
        if not root.is_ours:
            root.close()


def _with_roots(rules: Rules) -> Rules:
    """The rules, and for an agent that is root what only root owns."""
    if os.geteuid() or (rules.account and rules.account[0]):
        return rules
    return rules.but(hide=(*rules.hide, *of_root(rules.tier)))


class _NoProcesses(Exception):
    """It cannot have a process namespace of its own."""


def _start(inner: _Inner, master: int, own_processes: bool) -> Started:
    pipes = [os.pipe() for _ in range(4)]
    (report, _), (_, gate), (ended, _), (words, _) = pipes
    ours = (report, gate, ended, words)
    theirs = tuple(end for pipe in pipes for end in pipe if end not in ours)
    child = os.fork()
    if child == 0:
        _close(master, *ours)
        inner.run(theirs, own_processes)
    _close(*theirs)
    tells_its_end = False
    try:
        born = os.read(ended, 8) if own_processes else b""
        started = _follow(child, born, master, ours)
        tells_its_end = started.ended >= 0
        return started
    finally:
        _close(report, gate, words, *(() if tells_its_end else (ended,)))


def _follow(child: int, born: bytes, master: int, pipes: tuple[int, int, int, int]) -> Started:
    """Wait until the program runs, or why it does not. `born` are the first process and the agent of a namespace."""
    report, gate, ended, words = pipes
    children = [child]
    if born:
        os.waitpid(child, 0)
        # The first one of a namespace is not dead before all others are collected.
        children = [int.from_bytes(born[4:], "little"), int.from_bytes(born[:4], "little")]
    outcome = os.read(report, 1)
    if outcome == _READY:
        agent, keepers = (children[0], (children[1],)) if born else _who(child, master)
        os.write(gate, _GO)
        outcome = os.read(report, 1)
        # It closes by itself when the program starts.
        if not outcome:
            return Started(agent, keepers, -1 if agent in children else ended)
    why = os.read(report, 1 << 12).decode("utf-8", "replace")
    for pid in children:
        os.kill(pid, _SIGKILL)
        os.waitpid(pid, 0)
    if outcome == _NO_PROC:
        raise _NoProcesses
    if outcome == _NOT_RUN:
        raise OSError(int(why), os.strerror(int(why)))
    os.set_blocking(words, False)
    raise SandboxFailed(why or _last_words(words) or "its process ended on the way")


def _who(child: int, master: int) -> tuple[int, tuple[int, ...]]:
    """The agent, which leads the session on that terminal, and who of ours is around it: as seen from here."""
    agent = int.from_bytes(fcntl.ioctl(master, _TIOCGSID, bytes(4)), "little")
    if agent == child:
        return agent, ()
    with open(f"/proc/{agent}/stat", "rb") as file:
        parent = int(file.read().rpartition(b")")[2].split()[1])
    return agent, (child,) if parent == child else (child, parent)


class _Inner:
    """The process on its way in."""

    def __init__(self, rules: Rules, program: SandboxProgram, slave: int, root: SharedRoot | None = None) -> None:
        self.rules = rules
        self.program = program
        self.slave = slave
        self.root = root
        self.own_processes = True
        self.building = -1
        """Closed once the view of the file system is complete."""

    def run(self, pipes: tuple[int, ...], own_processes: bool) -> None:
        """Go in and become the agent; `pipes` are its ends of them. Does not return."""
        try:
            self.report, self.gate, self.ended, self.words = pipes
            self.own_processes = own_processes
            self.filter = _filter(self.rules, own_processes)
            self.program.prepare()
            if self.program.join:
                self.program.join()
            if self.rules.how == "namespaces":
                self._go_by_namespaces()
            elif self.rules.how == "bwrap":
                self._go_by_bwrap()
            else:
                ruleset = landlock.ruleset(self.rules, os.ttyname(self.slave))
                privileges.gain_none(wholly=not os.geteuid())
                privileges.drop(self.rules.account)
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
        os.write(self.report, _NOT_ISOLATED + _reason(error).encode("utf-8", "replace"))

    def _give_birth(self) -> None:
        """Fork the namespace's first process, and the agent, as which this goes on; the launcher is parent to both."""
        built, self.building = os.pipe()
        first = fork_beside()
        if not first:
            os.close(self.building)
            privileges.drop(None)
            _usual_signals()
            keep_namespace(self.report, built)
        os.close(built)
        agent = fork_beside()
        if agent:
            os.write(self.ended, first.to_bytes(4, "little") + agent.to_bytes(4, "little"))
            os._exit(0)

    def _go_by_namespaces(self) -> None:
        directory = os.getcwd()
        build = self._unshare()
        privileges.gain_none(wholly=True)
        if self.own_processes:
            self._give_birth()
        mask = os.umask(0o022)
        build()
        if self.own_processes:
            os.close(self.building)
        # Where it was is below what has been laid over it.
        os.chdir(directory)
        os.umask(mask)
        ruleset = landlock.ruleset(self.rules)
        privileges.drop(self.rules.account)
        die_with_parent()
        self.become_agent(ruleset)

    def _unshare(self) -> Callable[[], None]:
        """Have new namespaces; returns what builds their view of the file system."""
        if self.root is None:
            enter_namespaces(self.own_processes)
            return lambda: build_view(self.rules, self.own_processes)
        proc = os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        own = split(self.rules)[1]
        mounts = self.root.enter(own)
        enter_namespaces(self.own_processes, proc)
        os.close(proc)
        return lambda: furnish(self.rules, own, mounts, new_proc=True)

    def _go_by_bwrap(self) -> None:
        from mas.runtime.sandbox.bwrap import command

        data = os.memfd_create("mas")
        plan = LaunchPlan(argv=self.program.argv, env=self.program.environ, isolation=self.rules)
        os.write(data, os.fsencode(f"{os.getcwd()}\0{plan_text(plan)}"))
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
            keep_agent(agent, self.ended)
        self.become_agent(ruleset)

    def become_agent(self, ruleset: int) -> None:
        """Take the terminal, shut the last doors, and run the program."""
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
        for fd in (0, 1, 2):
            os.dup2(self.slave, fd)
        os.write(self.report, _READY)
        landlock.restrict(ruleset)
        privileges.filter_calls(self.filter)
        _usual_signals()
        close_on_exec(3)
        # The process that started this one now knows its id; or it is gone, and this one must not run.
        if os.read(self.gate, 1) == _GO:
            os.write(self.report, _NOT_RUN + str(_run(self.program)).encode())


def go_on_inside(descriptors: list[int]) -> None:
    """In the view that bubblewrap made, do the rest. Does not return."""
    slave, report, gate, ended, data = descriptors
    for fd in descriptors:
        os.set_inheritable(fd, False)
    os.lseek(data, 0, os.SEEK_SET)
    with open(data, "rb") as file:
        directory, _, text = os.fsdecode(file.read()).partition("\0")
    plan = plan_in(text)
    rules = plan.isolation
    assert rules is not None
    inner = _Inner(rules, SandboxProgram(plan.argv, plan.env, _nothing), slave)
    inner.report, inner.gate, inner.ended = report, gate, ended
    try:
        inner.filter = _filter(rules, own_processes=True)
        if not os.geteuid():
            # No other code owns them.
            seal_devices()
        # The account's own directories are closed to a root that has no other capability.
        privileges.gain_none(wholly=True)
        privileges.drop(rules.account)
        os.chdir(directory)
        inner.become_init(landlock.ruleset(rules))
    except (OSError, MemoryError, ValueError) as error:
        inner.tell(error)
    finally:
        os._exit(_UNRUNNABLE)


def _filter(rules: Rules, own_processes: bool) -> bytes:
    """The filter of system calls: the one in the rules, unless it turned out that there are no own processes."""
    if rules.filter and (own_processes or rules.how != "namespaces"):
        return bytes.fromhex(rules.filter)
    # Before the walls: it imports something.
    from mas.runtime.sandbox.seccomp import packed

    return packed(rules, own_processes)


def _run(program: SandboxProgram) -> int:
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


def _nothing() -> None:
    """Bubblewrap was already run by a process that had done it."""


def _reason(error: Exception) -> str:
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
