"""A launcher's share in its session's network: it starts the egress process if there is none, and keeps it running.

The egress process exits when the last launcher has closed its connection. A launcher that loses its connection starts
the process again, with the same sockets: connections wait for it in the meantime, and no agent can take a port.
Runs in launchers, which start once per agent, so this imports nothing but C modules.
"""

from __future__ import annotations

import _socket
import fcntl
import os
import sys
import time

from mas.runtime.descriptors import receive
from mas.runtime.network.space import Space, make_space
from mas.runtime.sandbox.system import PR_SET_CHILD_SUBREAPER, SAFE, prctl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mas.model.launch import NetworkPlan

_MAIN = os.path.join(os.path.dirname(__file__), "__main__.py")
SOCKET = "egress.sock"
APPLY = b"rules"
"""What MAS sends after it has written other rules; the reply begins with the same word, and then has what failed."""
REFUSED = b"refused\0"
"""Before what was refused, in a message to a launcher: agent, name, port, why, and the list that would allow it."""
NEW = "new"
"""The last word to an egress process that is the first of its session."""
_SPACE = "space"
_LOCK = "lock"
_ERRORS = "errors.log"
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | SAFE
_READY = b"+"
_BACKLOG = 512
# How long to wait for another launcher to start again what was killed, before a new network is made.
_PATIENCE = 2.0
_LOOK_AGAIN = 0.02
_TRY_AGAIN = 1.0
# How long the egress process waits at most before it starts to serve, in milliseconds.
_AFTER_THE_START = 400
# What marks the processes of a session, and here no single agent's.
_MARK = "MAS_PANE"


class Lost(OSError):
    """The egress process exited just now."""


class Network:
    """The network of an agent's session, kept while this is open. `fd` is readable when `hear` should be called."""

    def __init__(self, plan: NetworkPlan, agent: str) -> None:
        self._plan = plan
        self._agent = agent
        self._pid = 0
        self._directory = os.open(plan.directory, DIRECTORY)
        self._connection: _socket.socket | None = None
        self._sockets: list[int] = []
        self.due: float | None = None
        """When to try again to start the egress process."""
        self.refused: Callable[..., None] = _nothing
        """Called with what the egress process has refused to an agent, as `REFUSED` says."""
        deadline = time.monotonic() + _PATIENCE
        while not self._open(None, may_wait=time.monotonic() < deadline):
            time.sleep(_LOOK_AGAIN)

    @property
    def fd(self) -> int:
        return self._connection.fileno() if self._connection else -1

    def tell(self, pid: int) -> None:
        """Report the agent's process, by which the egress process knows who is asking."""
        self._pid = pid
        if self._connection and pid:
            try:
                self._connection.send(f"{self._agent} {pid}".encode())
            except OSError:
                # It is gone, which is heard in a moment.
                return

    def hear(self, now: float) -> None:
        """Take the sockets that the egress process hands out, or what it reports; if it has exited, start it again."""
        if self._connection is None:
            return
        try:
            words, found = receive(self._connection)
        except OSError:
            words, found = b"", []
        if found:
            self._replace_sockets(found)
        elif not words:
            self._connection.close()
            self._connection = None
            self.look(now)
        elif words.startswith(REFUSED):
            self.refused(*words.decode("utf-8", "replace").split("\0")[1:])

    def look(self, now: float) -> None:
        """Start the egress process again in the same namespace; if that fails, try again later."""
        self.due = None
        try:
            self._open(self.space, may_wait=False)
        except OSError:
            self.due = now + _TRY_AGAIN
        self.tell(self._pid)

    def close(self) -> None:
        """Give it up. With the last one the egress process ends, and the namespace."""
        if self._connection:
            self._connection.close()
            self._connection = None
        self._replace_sockets([])
        self.space.close()
        os.close(self._directory)

    def _replace_sockets(self, found: list[int]) -> None:
        for fd in self._sockets:
            os.close(fd)
        self._sockets = found

    def _open(self, space: Space | None, may_wait: bool) -> bool:
        """Connect to the egress process, and start it if there is none; False if another launcher will do so."""
        lock = os.open(_LOCK, os.O_RDWR | os.O_CREAT | SAFE, 0o600, dir_fd=self._directory)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                self._connect(space)
            except (FileNotFoundError, ConnectionRefusedError, Lost) as error:
                if space is None and may_wait and not isinstance(error, FileNotFoundError):
                    return False
                self._connect(self._start(space))
            return True
        finally:
            # The process that was started has it open, too.
            fcntl.flock(lock, fcntl.LOCK_UN)
            os.close(lock)

    def _connect(self, space: Space | None) -> None:
        """Connect to the process that runs; with the namespaces of that process, unless this has them already."""
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET | _socket.SOCK_CLOEXEC)
        try:
            connection.connect(_path(self._directory, SOCKET))
            found = space_at(self._directory)
            if space is not None:
                same = os.fstat(found.net).st_ino == os.fstat(space.net).st_ino
                found.close()
                if not same:
                    raise OSError(1, "the session has another network by now; restart the agent")
        except OSError:
            connection.close()
            raise
        self._connection = connection
        self.space = space or found

    def _start(self, space: Space | None) -> Space:
        """Start the egress process, detached from this one, in a new namespace or the one given; returns which."""
        is_new = space is None
        if space is None or not self._sockets:
            # Kept here, too: the process may be killed before it has handed them out, and no agent may have its ports.
            space, sockets = self._make_space(space)
            self._replace_sockets(sockets)
        report, write = os.pipe()
        # It is no orphan of the agent's, which this process would have to end.
        prctl(PR_SET_CHILD_SUBREAPER, 0)
        try:
            middle = os.fork()
            if middle == 0:
                self._detach(space, is_new, write)
            os.waitpid(middle, 0)
        finally:
            prctl(PR_SET_CHILD_SUBREAPER, 1)
            os.close(write)
        words = os.read(report, 1 << 12)
        os.close(report)
        if words != _READY:
            raise OSError(1, words.decode("utf-8", "replace") or "the egress process did not start")
        return space

    def _detach(self, space: Space, is_new: bool, report: int) -> None:
        """Fork once more, become the egress process there, and exit here. Does not return."""
        try:
            os.setsid()
            if os.fork() == 0:
                self._become_egress(space, is_new, report)
        except OSError as error:
            os.write(report, (error.strerror or str(error)).encode("utf-8", "replace"))
        finally:
            os._exit(0)

    def _become_egress(self, space: Space, is_new: bool, report: int) -> None:
        _note_space(self._directory, space)
        if self._plan.pasta:
            from mas.runtime.network.pasta import keep_pasta

            keep_pasta(self._plan.pasta, self._directory, space, self._plan.mark)
        path = _path(self._directory, SOCKET)
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        door = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        door.bind(path)
        door.listen(_BACKLOG)
        given = (door.detach(), space.user, space.net, *self._sockets)
        for fd in given:
            os.set_inheritable(fd, True)
        os.chdir("/")
        errors = os.open(_ERRORS, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | SAFE, 0o600, dir_fd=self._directory)
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for fd, to in ((nothing, 0), (nothing, 1), (errors, 2)):
            os.dup2(fd, to)
        os.write(report, _READY)
        os.close(report)
        argv = [sys.executable, "-ISE", _MAIN, self._plan.directory, *map(str, given), *([NEW] if is_new else [])]
        # At once: until then it has the marks of the agent whose launcher this is, and would end with that agent.
        os.execve(argv[0], argv, _environ())  # noqa: S606 - no shell, on purpose

    def _make_space(self, space: Space | None) -> tuple[Space, list[int]]:
        if not self._plan.pasta:
            return make_space(space, self._plan.listen)
        from mas.runtime.network.pasta import be_nobody

        return make_space(space, self._plan.listen, be_nobody)


def _nothing(*_: str) -> None:
    """For what no caller has asked for."""


def wait_for_use(descriptors: list[int]) -> None:
    """Wait until an agent uses the network, or a moment: the start of a team needs the processor for its agents."""
    import select

    poll = select.poll()
    # Behind the launchers' socket and the two namespaces.
    for fd in descriptors[3:]:
        poll.register(fd, select.POLLIN)
    poll.poll(_AFTER_THE_START)


def _environ() -> dict[str, str]:
    """That of the launcher, marked as the session's but no single agent's: it outlives each of them."""
    environ = dict(os.environ)
    session, _, rest = environ.get(_MARK, "").partition("/")
    home = rest.partition("/")[2]
    return environ | ({_MARK: f"{session}//{home}"} if session else {})


def _path(directory: int, name: str) -> str:
    """A path that is short enough for a socket, however deep the workspace is."""
    return f"/proc/self/fd/{directory}/{name}"


def _note_space(directory: int, space: Space) -> None:
    """Say where the namespaces are, as the target of a link: that needs no room, so a full disk stops no agent."""
    inodes = (os.fstat(space.user).st_ino, os.fstat(space.net).st_ino)
    half = f".{_SPACE}.tmp"
    try:
        os.unlink(half, dir_fd=directory)
    except FileNotFoundError:
        pass
    os.symlink(" ".join(map(str, (os.getpid(), space.user, space.net, *inodes))), half, dir_fd=directory)
    os.rename(half, _SPACE, src_dir_fd=directory, dst_dir_fd=directory)


def egress_of(directory: int) -> list[int]:
    """The egress process, which of its descriptors are the user and the network namespace, and their inodes."""
    words = os.readlink(_SPACE, dir_fd=directory).split()
    try:
        pid, user, net, user_inode, net_inode = map(int, words)
    except ValueError:
        raise Lost(3, "the session's network is not known") from None
    return [pid, user, net, user_inode, net_inode]


def space_at(directory: int) -> Space:
    """The namespaces that the running egress process has open; `Lost` if it has exited meanwhile."""
    pid, user, net, *inodes = egress_of(directory)
    opened: list[int] = []
    try:
        opened += [os.open(f"/proc/{pid}/fd/{number}", os.O_RDONLY | os.O_CLOEXEC) for number in (user, net)]
        if [os.fstat(one).st_ino for one in opened] != inodes:
            raise Lost(3, "it has exited")
    except OSError as error:
        for one in opened:
            os.close(one)
        raise Lost(3, f"the session's network cannot be opened: {error}") from None
    return Space(*opened)
