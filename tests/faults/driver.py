"""Runs one verb of the product in a process of its own and cuts in at a chosen step of it.

A step is anything the process does to the workspace's file system, and each start of a program or thread. Most
steps announce themselves to Python's audit hooks; those that do not are wrapped, in the child only. The
product knows nothing of this.
"""

from __future__ import annotations

import builtins
import errno
import fcntl
import io
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import StrEnum
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, NamedTuple
from uuid import uuid4

from mas.model.errors import MasError
from mas.model.ids import SessionId
from mas.service.local import LocalMas
from mas.settings import ServerMode
from tests.site import REPOSITORY, Site, until

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Kind(StrEnum):
    """What a step does."""

    CREATE = "create"
    OPEN = "open"
    WRITE = "write"
    COPY = "copy"
    SYNC = "sync"
    MKDIR = "mkdir"
    RENAME = "rename"
    REMOVE = "remove"
    CHANGE = "change"
    TIMES = "times"
    LINK = "link"
    ASK = "ask"
    SPAWN = "spawn"
    SPAWNED = "spawned"
    THREAD = "thread"


# These leave everything as it is: being killed before one is being killed before the next step.
_IDLE = frozenset({Kind.OPEN, Kind.SYNC, Kind.TIMES, Kind.ASK, Kind.THREAD})
_NEEDS_ROOM = frozenset({Kind.CREATE, Kind.WRITE, Kind.COPY, Kind.MKDIR, Kind.LINK})
_NEEDS_LEAVE = frozenset(Kind) - {Kind.WRITE, Kind.COPY, Kind.SYNC, Kind.ASK, Kind.SPAWN, Kind.SPAWNED, Kind.THREAD}


class Cut(StrEnum):
    """What happens at the chosen step."""

    KILL = "the process is killed"
    TEAR = "half of a write is done and the process is killed"
    INTERRUPT = "the person presses Ctrl-C"
    FULL = "this once there is no room, for a file or for another process or thread"
    REFUSED = "this once it is not allowed"
    STAYS_FULL = "there is no room from here on"
    READ_ONLY = "nothing can be changed from here on"
    PAUSE = "the process waits until told to go on"
    SHORT = "every write from here on is done in small pieces"
    WATCH = "nothing; the steps at which it could be killed are noted"
    WATCH_ALL = "nothing; all steps are noted, those that bring something to the disk too"


_AT: dict[Cut, frozenset[Kind]] = {
    Cut.KILL: frozenset(Kind) - _IDLE,
    Cut.TEAR: frozenset({Kind.WRITE}),
    Cut.INTERRUPT: frozenset(Kind) - _IDLE,
    Cut.FULL: _NEEDS_ROOM | {Kind.RENAME, Kind.SYNC, Kind.SPAWN, Kind.ASK, Kind.THREAD},
    Cut.REFUSED: _NEEDS_LEAVE,
    Cut.STAYS_FULL: _NEEDS_ROOM,
    Cut.READ_ONLY: _NEEDS_ROOM | _NEEDS_LEAVE,
    # Nobody else looks at a file before it has its name, nor at its mode.
    Cut.PAUSE: frozenset(Kind) - _IDLE - {Kind.WRITE, Kind.COPY, Kind.CHANGE},
    Cut.SHORT: frozenset({Kind.WRITE, Kind.COPY}),
    Cut.WATCH: frozenset(Kind) - _IDLE,
    Cut.WATCH_ALL: frozenset(Kind),
}
_LASTING = frozenset({Cut.STAYS_FULL, Cut.READ_ONLY, Cut.SHORT, Cut.WATCH, Cut.WATCH_ALL})
_ERRNO = {
    Cut.FULL: errno.ENOSPC,
    Cut.REFUSED: errno.EACCES,
    Cut.STAYS_FULL: errno.ENOSPC,
    Cut.READ_ONLY: errno.EROFS,
}


# What a thread does meanwhile has no place in the order of steps; this number means it.
ASIDE = 0


class Fault(NamedTuple):
    """Cut in at the `step`-th step that `cut` applies to; counted from 1."""

    cut: Cut
    step: int


class Call(NamedTuple):
    """One verb of `LocalMas`, what must cut it short, and the ids it must draw."""

    site: str
    env: dict[str, str]
    server: ServerMode
    verb: str
    args: tuple[Any, ...]
    fault: Fault | None
    ids: tuple[str, ...]


class Reached(NamedTuple):
    """The chosen step, as the child came to it."""

    what: str


class Blocked(NamedTuple):
    """The child waits for a lock."""


class Ended(NamedTuple):
    """How a verb ended. `what` is the step it was cut at, or None if it never got there."""

    what: str | None = None
    killed: bool = False
    answer: Any = None
    error: str | None = None
    kinds: tuple[str, ...] = ()
    trace: str = ""
    steps: tuple[str, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether it ended with an error of the product's own."""
        return MasError.__name__ in self.kinds


class Driver:
    """A process that is ready to run verbs: each in a fork of it, which costs next to nothing."""

    def __init__(self, site: Site, server: ServerMode = ServerMode.DEFAULT) -> None:
        self._site = site
        self._server = server
        ours, theirs = socket.socketpair()
        os.set_inheritable(theirs.fileno(), True)
        self._process = subprocess.Popen(
            # The last word tells this one's processes from those of any other.
            [sys.executable, "-m", "tests.faults", str(theirs.fileno()), uuid4().hex],
            cwd=REPOSITORY,
            env={**site.env, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        self._connection = Connection(ours.detach())

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.send(None)
        self._connection.close()
        self._process.wait(60)

    def call(self, verb: str, *args: Any, fault: Fault | None = None) -> Ended:
        """Run a verb to its end, whatever that is."""
        self.begin(verb, *args, fault=fault)
        ended = self.next(waiting_is_news=False)
        assert isinstance(ended, Ended)
        return ended

    def begin(self, verb: str, *args: Any, fault: Fault | None = None, ids: tuple[str, ...] = ()) -> None:
        """Set a verb going."""
        self._connection.send(Call(self._site.directory, self._site.env, self._server, verb, args, fault, ids))

    def next(self, waiting_is_news: bool = True) -> Reached | Blocked | Ended:
        """What happens next: it pauses, it waits for a lock, or it ends."""
        while True:
            assert self._connection.poll(60), "a verb hangs"
            message = self._connection.recv()
            if waiting_is_news or not isinstance(message, Blocked):
                assert isinstance(message, (Reached, Blocked, Ended))
                return message

    def has_news(self, patience: float) -> bool:
        """Whether something happens within `patience` seconds."""
        return self._connection.poll(patience)

    def resume(self) -> None:
        """Let a paused verb go on."""
        self._connection.send(True)


def serve(connection: Connection) -> None:
    """Run what a `Driver` asks for, until it asks for nothing more."""
    _warm()
    while (call := connection.recv()) is not None:
        ours, theirs = Pipe()
        pid = os.fork()
        if pid == 0:
            try:
                ours.close()
                connection.close()
                _Child(theirs, call).run()
            finally:
                os._exit(0)
        theirs.close()
        ended = _relay(connection, ours, call)
        ours.close()
        # Not before it is all gone: until then the kernel may not have let go of its locks.
        os.waitpid(pid, 0)
        until(lambda: not _copies(), "the end of what was about to become a program")
        connection.send(ended)


def _copies() -> list[int]:
    """Forks of a killed process that are not yet what its thread started: they have its locks as long as that lasts."""
    with open("/proc/self/cmdline", "rb") as file:
        own = file.read()
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            with suppress(OSError), open(f"/proc/{name}/cmdline", "rb") as file:
                found += [int(name)] * (file.read() == own)
    return found


def _relay(connection: Connection, child: Connection, call: Call) -> Ended:
    """Pass what the child reports on to the test until the child has exited; returns how it exited."""
    what = None
    ended = Ended(killed=True)
    try:
        while True:
            message = child.recv()
            if isinstance(message, Ended):
                ended = message
            elif isinstance(message, Reached):
                what = message.what
                if call.fault and call.fault.cut is Cut.PAUSE:
                    connection.send(message)
                    child.send(connection.recv())
            else:
                connection.send(message)
    except EOFError:
        return ended._replace(what=what)


class _Child:
    """One verb under way, its steps counted."""

    def __init__(self, report: Connection, call: Call) -> None:
        self._report = report
        self._call = call
        self._main = threading.get_ident()
        self._count = 0
        self._steps: list[str] = []
        self._on = False
        self._root = os.path.join(call.site, "ws")

    def run(self) -> None:
        call = self._call
        site = Site(call.site)
        site.env = call.env
        world = site.world(call.server)
        if call.ids:
            drawn: Iterator[str] = iter(call.ids)
            world = world._replace(new_id=lambda: SessionId(next(drawn)))
        verb = getattr(LocalMas(world), call.verb)
        self._wrap()
        try:
            self._on = call.fault is not None
            answer = verb(*call.args)
            self._on = False
        except BaseException as error:  # noqa: BLE001 - the test judges it
            self._on = False
            kinds = tuple(kind.__name__ for kind in type(error).__mro__)
            self._report.send(Ended(error=str(error), kinds=kinds, trace=traceback.format_exc()))
        else:
            self._report.send(Ended(answer=answer, steps=tuple(self._steps)))

    def _wrap(self) -> None:
        """Make every step known to `_step`."""
        sys.addaudithook(self._audit)
        write, fsync, copy, flock = os.write, os.fsync, os.copy_file_range, fcntl.flock
        plain_open, start, begin = builtins.open, subprocess.Popen.__init__, threading.Thread.start

        def stepping_write(fd: int, data: Any, /) -> int:
            if self._of_workspace(fd) and self._step(Kind.WRITE, fd, lambda: write(fd, _half(data))):
                data = _half(data)
            return write(fd, data)

        def stepping_fsync(fd: int) -> None:
            if self._of_workspace(fd):
                self._step(Kind.SYNC, fd)
            fsync(fd)

        def stepping_copy(source: int, target: int, count: int, *rest: Any) -> int:
            if self._of_workspace(target) and self._step(Kind.COPY, target):
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
            return copy(source, target, count, *rest)

        def stepping_open(file: Any, mode: str = "r", *rest: Any, **options: Any) -> Any:
            if isinstance(file, int) and mode == "wb":
                return io.BufferedWriter(_Raw(file))
            return plain_open(file, mode, *rest, **options)

        def stepping_start(popen: Any, *args: Any, **options: Any) -> None:
            start(popen, *args, **options)
            words = _words(popen.args)
            if not _only_asks(words):
                self._step(Kind.SPAWNED, words)

        def stepping_begin(thread: threading.Thread) -> None:
            self._step(Kind.THREAD, thread.name)
            begin(thread)

        def telling_flock(fd: Any, operation: int) -> None:
            if operation == fcntl.LOCK_EX:
                try:
                    flock(fd, operation | fcntl.LOCK_NB)
                    return
                except BlockingIOError:
                    self._report.send(Blocked())
            flock(fd, operation)

        for module, name, wrapped in (
            (os, "write", stepping_write),
            (os, "fsync", stepping_fsync),
            (os, "copy_file_range", stepping_copy),
            (fcntl, "flock", telling_flock),
            (builtins, "open", stepping_open),
            (subprocess.Popen, "__init__", stepping_start),
            (threading.Thread, "start", stepping_begin),
        ):
            setattr(module, name, wrapped)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if self._on and event in _EVENTS:
            found = _EVENTS[event](self._root, args)
            if found:
                self._step(*found)

    def _of_workspace(self, fd: int) -> bool:
        return self._on and _lies_in(self._root, fd)

    def _step(self, kind: Kind, what: object, half: Callable[[], object] | None = None) -> bool:
        """Count one step and cut in if it is the chosen one. True asks the step to be done in small pieces."""
        fault = self._call.fault
        if not self._on or fault is None or kind not in _AT[fault.cut]:
            return False
        if threading.get_ident() == self._main:
            self._count += 1
            here = self._count
        else:
            here = ASIDE
        if here != fault.step and (here < fault.step or fault.cut not in _LASTING):
            return False
        shown = f"{kind} {_shown(self._root, what)}"
        if fault.cut in (Cut.WATCH, Cut.WATCH_ALL):
            self._steps.append(shown)
            return False
        if here == fault.step:
            self._report.send(Reached(shown))
        return self._cut(fault.cut, kind, half)

    def _cut(self, cut: Cut, kind: Kind, half: Callable[[], object] | None) -> bool:
        if cut is Cut.PAUSE:
            self._on = False
            self._report.recv()
            self._on = True
            return False
        if cut is Cut.SHORT:
            return True
        if half and cut is not Cut.KILL:
            half()
        if cut in (Cut.KILL, Cut.TEAR):
            os.kill(os.getpid(), signal.SIGKILL)
        if cut is Cut.INTERRUPT:
            raise KeyboardInterrupt
        if kind is Kind.THREAD:
            raise RuntimeError("can't start new thread")
        number = errno.EAGAIN if kind in (Kind.SPAWN, Kind.ASK) else _ERRNO[cut]
        raise OSError(number, os.strerror(number))


class _Raw(io.RawIOBase):
    """A file whose writes go through `os.write`, as a step each."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._fd

    def write(self, data: Any) -> int:
        return os.write(self._fd, data)

    def close(self) -> None:
        if not self.closed:
            super().close()
            os.close(self._fd)


def _half(data: Any) -> Any:
    return memoryview(data)[: max(1, len(data) // 2)]


def _words(args: Any) -> str:
    return " ".join(args) if isinstance(args, list) else str(args)


def _only_asks(words: str) -> bool:
    """Whether a program is tmux and only prints something."""
    return "list-" in words and "new-session" not in words and "kill-" not in words


def _shown(root: str, what: object) -> str:
    text = _path_of(what) if isinstance(what, int) else str(what)
    return text.replace(f"{root}/", "")


def _path_of(fd: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return f"descriptor {fd}"


def _lies_in(root: str, path: Any) -> bool:
    """Whether a path or descriptor is of the workspace. A relative path belongs to a directory descriptor."""
    if isinstance(path, int):
        try:
            mode = os.fstat(path).st_mode
        except OSError:
            return False
        where = _path_of(path)
        return (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and (where.startswith(("descriptor", f"{root}/")))
    text = os.fsdecode(path)
    return not os.path.isabs(text) or text.startswith(f"{root}/")


def _at(fd: Any) -> int | None:
    return fd if isinstance(fd, int) and fd >= 0 else None


_Found = tuple[Kind, object] | None


def _opening(root: str, args: tuple[Any, ...]) -> _Found:
    path, _, flags = args
    if isinstance(path, int) or not flags & _WRITING or not _lies_in(root, path):
        return None
    new = flags & os.O_TRUNC or (flags & os.O_CREAT and not os.path.lexists(path))
    return (Kind.CREATE if new else Kind.OPEN), path


def _making(root: str, args: tuple[Any, ...]) -> _Found:
    path, _, fd = args
    if not _lies_in(root, path):
        return None
    try:
        os.stat(path, dir_fd=_at(fd), follow_symlinks=False)
    except OSError:
        return Kind.MKDIR, path
    # It is there already: nothing will be done.
    return None


def _named(kind: Kind) -> Callable[[str, tuple[Any, ...]], _Found]:
    def found(root: str, args: tuple[Any, ...]) -> _Found:
        return (kind, args[0]) if _lies_in(root, args[0]) else None

    return found


def _removing(root: str, args: tuple[Any, ...]) -> _Found:
    path, fd = args
    if not _lies_in(root, path):
        return None
    try:
        os.stat(path, dir_fd=_at(fd), follow_symlinks=False)
    except OSError:
        return None
    return Kind.REMOVE, path


def _linking(root: str, args: tuple[Any, ...]) -> _Found:
    return (Kind.LINK, args[1]) if _lies_in(root, args[1]) else None


def _starting(root: str, args: tuple[Any, ...]) -> _Found:
    words = _words(args[1])
    return (Kind.ASK if _only_asks(words) else Kind.SPAWN), words


def _syncing(root: str, args: tuple[Any, ...]) -> _Found:
    # The product looks up `syncfs` this way, each time it calls it.
    return (Kind.SYNC, "the whole file system") if args[0] is None else None


_EVENTS: dict[str, Callable[[str, tuple[Any, ...]], _Found]] = {
    "open": _opening,
    "os.mkdir": _making,
    "os.rename": _named(Kind.RENAME),
    "os.remove": _removing,
    "os.rmdir": _removing,
    "os.chmod": _named(Kind.CHANGE),
    "os.truncate": _named(Kind.CHANGE),
    "os.utime": _named(Kind.TIMES),
    "os.symlink": _linking,
    "os.link": _linking,
    "subprocess.Popen": _starting,
    "ctypes.dlopen": _syncing,
}


def _warm() -> None:
    """Import now what a verb would import, so that no child has to."""
    import ctypes  # noqa: F401
    import hashlib  # noqa: F401
    import tarfile  # noqa: F401

    import psutil  # noqa: F401
    import zstandard  # noqa: F401
