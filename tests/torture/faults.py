"""What goes wrong in a round: things are killed; disk, clock and process table misbehave for a while."""

from __future__ import annotations

import os
import random
import resource
import signal
import struct
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum

import psutil

from tests.checker import processes_of_sessions
from tests.served import Served
from tests.site import Site
from tests.torture.person import Person

_CGROUPS = ("/sys/fs/cgroup/pids", "/sys/fs/cgroup")
# Where the clock goes, in seconds: back and forth by a moment, an hour, a day, years.
_JUMPS = (-10 * 365 * 86400.0, -86400.0, -3600.0, -1.5, 1.5, 3600.0, 86400.0, 10 * 365 * 86400.0)
_FEWEST_FREE = 4096


class Fault(StrEnum):
    """One thing that goes wrong."""

    CLIENTS = "a client is killed"
    SERVER = "the server is killed"
    TMUX = "a tmux server is killed"
    AGENTS = "an agent or its launcher is killed"
    DISK = "the disk is full for a while"
    CLOCK = "the clock jumps"
    PROCESSES = "no process can be started for a while"
    SLOW = "the disk is slow for a while"
    EGRESS = "the egress process of a session is killed"
    PERSON = "a person groups, links, renames, moves, joins, breaks, swaps and splits in tmux"


class Shared:
    """The memory from which every Python program of a round has its clock and how slow its disk is."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.set(0.0, 0.0)

    def set(self, clock: float | None = None, slow: float | None = None) -> None:
        with open(self.path, "r+b" if os.path.exists(self.path) else "w+b", buffering=0) as file:
            now = struct.unpack("=dd", file.read(16) or bytes(16))
            file.seek(0)
            file.write(struct.pack("=dd", now[0] if clock is None else clock, now[1] if slow is None else slow))


class Squeeze(ABC):
    """Something there is no more of, until it is let go."""

    words: str

    @abstractmethod
    def tighten(self) -> None: ...

    @abstractmethod
    def let_go(self) -> None: ...

    def take_in(self, pid: int) -> None:  # noqa: B027 - most hold for all there are
        """Let it hold for a process and for all that it starts."""


class FullDisk(Squeeze):
    """A file that takes all the room on a file system of our own."""

    words = "a file system in memory, filled to its last block"

    def __init__(self, directory: str) -> None:
        self._path = os.path.join(directory, "filler")

    def tighten(self) -> None:
        with open(self._path, "wb", buffering=0) as file, suppress(OSError):
            while file.write(b"x" * (1 << 16)):
                pass
        with open(self._path, "ab", buffering=0) as file, suppress(OSError):
            while file.write(b"x" * _FEWEST_FREE):
                pass

    def let_go(self) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._path)


class Limit(Squeeze):
    """A limit on every process of the site, as any user may lower and raise it."""

    def __init__(self, site: Site, kind: int, words: str, most: Callable[[], int]) -> None:
        self.words = words
        self._site = site
        self._kind = kind
        self._most = most

    def tighten(self) -> None:
        self._set(self._most())

    def let_go(self) -> None:
        # Whoever was started while others were seen to has the old limit.
        while self._set(None):
            pass

    def _set(self, most: int | None) -> int:
        changed = 0
        for process in self._site.processes():
            with suppress(psutil.Error, OSError):
                soft, hard = resource.prlimit(process.pid, self._kind)
                wanted = hard if most is None else most
                if soft != wanted:
                    resource.prlimit(process.pid, self._kind, (wanted, hard))
                    changed += 1
        return changed


class Group(Squeeze):
    """A control group whose processes may not become more."""

    words = "a control group that holds as many processes as it may"

    def __init__(self, path: str) -> None:
        self.path = path

    def take_in(self, pid: int) -> None:
        self._write("cgroup.procs", str(pid))

    def tighten(self, more: int = 0) -> None:
        """Allow `more` processes than there are now."""
        with open(os.path.join(self.path, "pids.current"), encoding="ascii") as file:
            now = int(file.read())
        self._write("pids.max", str(max(1, now + more)))

    def let_go(self) -> None:
        self._write("pids.max", "max")

    def _write(self, name: str, text: str) -> None:
        with open(os.path.join(self.path, name), "w", encoding="ascii") as file:
            file.write(text)


@contextmanager
def group() -> Iterator[Group | None]:
    """A control group of our own; None if there cannot be one."""
    path = next((made for place in _CGROUPS if (made := _made_below(place))), None)
    try:
        yield Group(path) if path else None
    finally:
        if path:
            os.rmdir(path)


def _made_below(place: str) -> str | None:
    path = os.path.join(place, f"mas-torture-{os.getpid()}")
    try:
        os.mkdir(path)
    except OSError:
        return None
    if os.path.exists(os.path.join(path, "pids.max")):
        return path
    os.rmdir(path)
    return None


@contextmanager
def small_disk(directory: str, megabytes: int) -> Iterator[bool]:
    """Mount a small file system at a directory; False where that is not allowed."""
    argv = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", directory]
    mounted = subprocess.run(argv, capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", directory], check=True)


def disk_of(site: Site, mounted: str | None) -> Squeeze:
    """The best full disk that this machine allows."""
    if mounted:
        return FullDisk(mounted)
    words = "a limit on the size of files (no file system can be mounted here)"
    return Limit(site, resource.RLIMIT_FSIZE, words, lambda: 0)


def table_of(site: Site, group: Group | None) -> Squeeze | None:
    """The best full process table; None as root without control groups: nothing else holds root."""
    if group or os.getuid() == 0:
        return group
    return Limit(site, resource.RLIMIT_NPROC, "a limit on the processes of this user", _threads)


def _threads() -> int:
    """The processes of this user, as the kernel counts them."""
    count = 0
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            count += process.num_threads() if process.uids().real == os.getuid() else 0
    return count


class Trouble:
    """Makes things go wrong, as the dice say."""

    def __init__(
        self, served: Served, shared: Shared, disk: Squeeze, table: Squeeze | None, dice: random.Random
    ) -> None:
        self._served = served
        self._site = served.site
        self._shared = shared
        self._disk = disk
        self._table = table
        self._dice = dice

    def cause(self, fault: Fault, clients: list[int]) -> bool:
        """Let something go wrong; False if there was nothing it could happen to."""
        match fault:
            case Fault.CLIENTS:
                return self._kill_client(clients)
            case Fault.SERVER:
                return self._kill_server()
            case Fault.TMUX:
                return self._kill_one(list(self._tmux_servers()))
            case Fault.AGENTS:
                return self._kill_one([one.pid for one, _ in processes_of_sessions(self._site.path("sessions"))])
            case Fault.EGRESS:
                return self._kill_one(list(self._egress_processes()))
            case Fault.PERSON:
                return Person(self._site, self._dice).act()
            case Fault.CLOCK:
                self._shared.set(clock=self._dice.choice(_JUMPS))
                return True
            case Fault.SLOW:
                self._shared.set(slow=self._dice.uniform(0.005, 0.08))
                self._hold(clients)
                self._shared.set(slow=0.0)
                return True
            case Fault.DISK | Fault.PROCESSES:
                return self._squeeze(self._disk if fault is Fault.DISK else self._table, clients)

    def heal(self) -> None:
        """All is as it should be from now on."""
        self._shared.set(0.0, 0.0)
        self._disk.let_go()
        if self._table:
            self._table.let_go()

    def _squeeze(self, what: Squeeze | None, clients: list[int]) -> bool:
        if what is None:
            return False
        what.tighten()
        try:
            self._hold(clients)
        finally:
            what.let_go()
        return True

    def _hold(self, clients: list[int]) -> None:
        """Let it last, and now and then kill a client meanwhile."""
        time.sleep(self._dice.uniform(0.2, 1.5))
        if self._dice.random() < 0.3:
            self._kill_client(clients)
            time.sleep(self._dice.uniform(0.0, 0.3))

    def _kill_client(self, clients: list[int]) -> bool:
        """Kill a client, or the command that one runs."""
        found = list(clients)
        for pid in clients:
            with suppress(psutil.Error):
                found += [child.pid for child in psutil.Process(pid).children() if self._is_mas(child)]
        return self._kill_one(found)

    def _is_mas(self, process: psutil.Process) -> bool:
        return "mas" in process.cmdline()

    def _kill_server(self) -> bool:
        self._served.kill()
        time.sleep(self._dice.uniform(0.0, 0.5))
        self._served.restart()
        if self._table:
            self._table.take_in(self._served.pid)
        return True

    def _tmux_servers(self) -> Iterator[int]:
        for socket in self._site.sockets():
            pid = self._site.tmux("display-message", "-p", "#{pid}", socket=socket)
            if pid:
                yield int(pid)

    def _egress_processes(self) -> Iterator[int]:
        """Also those that have been forked off their launcher and are not yet what they will be."""
        for process, _ in processes_of_sessions(self._site.path("sessions")):
            with suppress(psutil.Error):
                words = process.cmdline()
                if any(word.endswith("/.mas/network") for word in words) or (process.ppid() == 1 and "-ISE" in words):
                    yield process.pid

    def _kill_one(self, pids: list[int]) -> bool:
        if not pids:
            return False
        with suppress(ProcessLookupError):
            os.kill(self._dice.choice(sorted(pids)), signal.SIGKILL)
        return True
