"""Finds and ends every process of a session, by its parents, its marks, its control groups and its namespaces."""

import os
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from mas.model.ids import identity
from mas.model.launch import MARK_LIMIT
from mas.runtime.panes import MARK

if TYPE_CHECKING:
    import psutil

_LOOK_AGAIN = 0.005
_LONG_ENOUGH_TO_DIE = 0.02
# How long what was killed may take to be gone.
_PATIENCE = 5.0
# If more processes than this start in a second, some may never be seen: those that start another and exit. They are
# looked for, among this many of the newest and now and then among all, until there was none for this many seconds.
_FEW_A_SECOND = 20
_AMONG, _TURNS = 64, 20
_QUIET = 0.03
# A number that marks processes has these bits of the session's, and then the agent's number.
_SESSION_BITS, _AGENT_BITS = 55, 7


class Owner(NamedTuple):
    """Whose processes: a session's, or one agent's of it. `home` is the workspace's identity, which no copy shares."""

    session_id: str
    home: str
    agent: str = ""

    @property
    def mark(self) -> str:
        return f"{self.session_id}/{self.agent}/{self.home}"

    @property
    def number(self) -> int:
        """The same as a number, for the limit that marks processes."""
        from hashlib import sha256

        digest = sha256(f"{self.session_id}/{self.home}".encode()).digest()
        session = int.from_bytes(digest[:8], "big") >> 64 - _SESSION_BITS
        return session << _AGENT_BITS | int(self.agent or 0)

    @property
    def number_of_no_agent(self) -> int:
        """The number of a process that is the session's, and of none of its agents."""
        return self.number | (1 << _AGENT_BITS) - 1


class Found(NamedTuple):
    """The living processes of a session, and the workspace where others of the very same session live."""

    processes: "list[psutil.Process]"
    elsewhere: str | None


def processes_of(owner: Owner, roots: Iterable[int], held: Iterable[int] = ()) -> "list[psutil.Process]":
    """The living processes of a session or an agent, as `find_processes` finds them."""
    return find_processes(owner, roots, held).processes


def find_processes(owner: Owner, roots: Iterable[int], held: Iterable[int] = ()) -> Found:
    """The living processes of a session or an agent, and where else it runs: then one workspace is a copy of another.

    They are all below its launchers, all that are marked by a variable or a limit, those `held` in its control groups
    and what these started, and all in a pid namespace that began with one of them.
    """
    import psutil

    from mas.runtime.proc import children, has_children_lists

    found: dict[int, psutil.Process] = {}
    elsewhere: str | None = None
    for pid, environ in _marked(owner):
        if _home_of(pid, environ, owner.session_id) not in (owner.home, ""):
            elsewhere = elsewhere or _root_of(pid, environ, owner.session_id)
            continue
        with suppress(psutil.Error):
            found[pid] = psutil.Process(pid)
    for pid in _limited(owner):
        with suppress(psutil.Error):
            found.setdefault(pid, psutil.Process(pid))
    listed = has_children_lists()
    below = [*roots, *held]
    while below:
        pid = below.pop()
        try:
            found[pid] = process = psutil.Process(pid)
            # Without the lists of the kernel, psutil looks at all processes.
            below += children(pid) if listed else [child.pid for child in process.children()]
        except (psutil.Error, OSError):
            continue
    for pid in _in_namespaces_of(found):
        with suppress(psutil.Error):
            found.setdefault(pid, psutil.Process(pid))
    found.pop(os.getpid(), None)
    return Found([process for process in found.values() if _lives(process)], elsewhere)


def _in_namespaces_of(pids: Iterable[int]) -> list[int]:
    """Everything in the pid namespaces whose first process is one of these: no other process can get in there."""
    begun = {_pid_namespace(pid) for pid in pids if _is_first(pid)} - {None, _pid_namespace(os.getpid())}
    if not begun:
        return []
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and _pid_namespace(int(name)) in begun]


def _pid_namespace(pid: int) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None


def _is_first(pid: int) -> bool:
    """Whether a process is the first of a pid namespace, in which it has the number 1."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            numbers = next((line.split()[1:] for line in file if line.startswith("NSpid:")), [])
    except OSError:
        return False
    return len(numbers) > 1 and numbers[-1] == "1"


def _marked(owner: Owner) -> Iterator[tuple[int, bytes]]:
    """The processes that are marked, among all there are; where many run, this is most of what a stop takes.

    Each is answered as soon as it is found: by the time all are, its number may be another's.
    """
    name = f"{owner.session_id}/{owner.agent}" if owner.agent else owner.session_id
    mark = f"\0{MARK}={name}".encode()
    return ((pid, environ) for pid, environ in _environs() if mark + b"\0" in environ or mark + b"/" in environ)


def _limited(owner: Owner) -> Iterator[int]:
    """The processes with the owner's number as a limit: those that shed their parents and variables have it still."""
    import resource

    if hasattr(resource, "prlimit"):
        yield from (int(name) for name in os.listdir("/proc") if name.isdigit() and _has_number(int(name), owner))


def _has_number(pid: int, owner: Owner) -> bool:
    import resource

    dropped = 0 if owner.agent else _AGENT_BITS
    try:
        try:
            number = resource.prlimit(pid, MARK_LIMIT)[1]
        except PermissionError:
            number = _limit_of_another(str(pid))
    except (OSError, ValueError):
        return False
    return number >> dropped == owner.number >> dropped


def _limit_of_another(pid: str) -> int:
    """The marking limit of a process of another user, which only root has agents of; `ValueError` if it has none."""
    if os.geteuid():
        raise ValueError("not ours")
    # A root without all of its capabilities may not ask, but may read.
    with open(f"/proc/{pid}/limits", encoding="ascii") as file:
        found = [line.split()[-2] for line in file if line.startswith("Max file locks")]
    # The file of a process that is exiting is empty.
    return int(found[0] if found else "")


def session_and_home(pid: int) -> tuple[str, str] | None:
    """The session that a process is marked as one of, and its workspace's identity, empty if not known.

    None if it carries no mark, or cannot be looked at.
    """
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            environ = b"\0" + file.read() + b"\0"
    except OSError:
        return None
    session_id = _value(environ, MARK).partition("/")[0]
    return (session_id, _home_of(pid, environ, session_id)) if session_id else None


def _home_of(pid: int, environ: bytes, session_id: str) -> str:
    """The identity of the workspace that a marked process belongs to; empty if unknown.

    A process of an earlier version does not carry it: it is of the workspace where its session's directory is.
    """
    _, _, home = _value(environ, MARK).removeprefix(f"{session_id}/").partition("/")
    if home:
        return home
    directory = _value(environ, "MAS_SESSION_DIR")
    with suppress(OSError):
        if not directory:
            root, found, _ = os.readlink(f"/proc/{pid}/cwd").partition(f"/{session_id}/")
            directory = f"{root}{found}" if found else ""
        if directory:
            status = os.stat(os.path.dirname(directory.rstrip("/")))
            return identity(status.st_dev, status.st_ino)
    return ""


def orphans_of(root: str) -> list[int]:
    """The processes of sessions whose directories were removed from that workspace while they ran."""
    return [pid for pid, environ in _environs() if f"\0{MARK}=".encode() in environ and _is_orphan(pid, root)]


def _is_orphan(pid: int, root: str) -> bool:
    sessions = f"{root}/sessions/"
    try:
        directory, removed = os.readlink(f"/proc/{pid}/cwd"), os.stat(f"/proc/{pid}/cwd").st_nlink == 0
    except OSError:
        return False
    session_id = directory.removeprefix(sessions).partition("/")[0]
    return removed and directory.startswith(sessions) and not os.path.exists(sessions + session_id)


def _root_of(pid: int, environ: bytes, session_id: str) -> str:
    """The workspace that a marked process is of, for people."""
    with suppress(OSError):
        # Where it is now, should the workspace have been moved.
        root, found, _ = os.readlink(f"/proc/{pid}/cwd").partition(f"/sessions/{session_id}/")
        if found:
            return root
    return _value(environ, "MAS_WORKSPACE_ROOT") or "its place is not known"


def _value(environ: bytes, name: str) -> str:
    """A variable between zero bytes; empty if it is missing."""
    return os.fsdecode(environ.partition(f"\0{name}=".encode())[2].partition(b"\0")[0])


def _environs() -> Iterator[tuple[int, bytes]]:
    """Every process that lets us see its environment, with that between zero bytes."""
    if not os.path.exists("/proc/self/environ"):
        import psutil

        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                words = [f"{name}={value}" for name, value in process.environ().items()]
                yield process.pid, "\0".join(["", *words, ""]).encode("utf-8", "surrogateescape")
        return
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/environ", "rb", buffering=0) as file:
                yield int(name), b"\0" + file.read() + b"\0"


def end_agent(owner: Owner, launcher: int | None, grace: float) -> list[int]:
    """Have an agent's launcher end it, and kill what is left of it after `grace`; returns what would not die."""
    import psutil

    known = processes_of(owner, () if launcher is None else (launcher,))
    for process in known:
        if process.pid == launcher:
            try:
                process.terminate()
            except psutil.Error:
                continue
    # Without a launcher, no other process will end it.
    return end_processes(owner, known, 0.0 if launcher is None else grace)


def end_processes(owner: Owner, known: "list[psutil.Process]", grace: float) -> list[int]:
    """Wait up to `grace` for the processes to end, then kill them; returns what would not die."""
    import psutil

    newest, begun = _newest(), time.monotonic()
    left = _left_after(known, grace)
    deadline = time.monotonic() + _PATIENCE
    while left := [*left, *(process for process in processes_of(owner, ()) if process not in left)]:
        for process in left:
            try:
                process.kill()
            except psutil.Error:
                # Gone, or another user's: what is left at the end is reported.
                continue
        left = _left_after(left, _LONG_ENOUGH_TO_DIE)
        if time.monotonic() > deadline:
            break
    if _newest() - newest > _FEW_A_SECOND * (time.monotonic() - begun):
        return [*(process.pid for process in left), *_end_fleeting(owner)]
    return [process.pid for process in left]


def _end_fleeting(owner: Owner) -> list[int]:
    """End processes that are never there for long, because each starts another and exits; returns what is left.

    Between a list of all processes and their end each of these is another, so the newest are tried one by one, and
    ended as soon as they are found.
    """
    deadline = time.monotonic() + _PATIENCE
    quiet_since, found = time.monotonic(), 0
    while time.monotonic() - quiet_since < _QUIET:
        # On a busy machine a single round may take all the time there is, and find nothing.
        found = 0
        for _ in range(_TURNS):
            newest = _newest()
            for pid in range(newest, newest - _AMONG, -1):
                if _has_number(pid, owner) and pid != os.getpid() and _kill(pid, owner):
                    quiet_since, found = time.monotonic(), pid
        for pid in _limited(owner):
            if pid != os.getpid() and _kill(pid, owner):
                quiet_since, found = time.monotonic(), pid
        if time.monotonic() > deadline:
            return [found] if found else []
    return []


def _kill(pid: int, owner: Owner) -> bool:
    """Whether a process of the owner's was killed, and not another one that has its number by now."""
    try:
        process = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        is_owners = _has_number(pid, owner) and not _is_zombie(pid)
        if is_owners:
            signal.pidfd_send_signal(process, signal.SIGKILL)
        return is_owners
    except OSError:
        return False
    finally:
        os.close(process)


def _is_zombie(pid: int) -> bool:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[:1] == [b"Z"]


def _newest() -> int:
    """The number of the newest process; 0 where the system does not say."""
    try:
        with open("/proc/loadavg", encoding="ascii") as file:
            return int(file.read().split()[-1])
    except (OSError, ValueError):
        return 0


def wait_for_clients(tmux_session: str, patience: float) -> None:
    """Wait for tmux clients on their way to a tmux session: a killed process may have left one behind.

    What such a client asks of the server is still to come, and would be missed by a look at the server now.
    """
    import psutil

    clients = [process for process in psutil.process_iter() if _is_client_for(process, tmux_session)]
    deadline = time.monotonic() + patience
    while any(map(_still_client, clients)) and time.monotonic() < deadline:
        time.sleep(_LOOK_AGAIN)


def _is_client_for(process: "psutil.Process", tmux_session: str) -> bool:
    """Whether a process is a tmux client that opens, closes or types to the tmux session; watchers may stay."""
    import psutil

    try:
        words = process.cmdline()
        opens = "new-session" in words and tmux_session in words
        changes = any(word.startswith(f"={tmux_session}") for word in words)
        types = any(f"{tmux_session}/" in word for word in words)
        if not (opens or changes or types) or "attach-session" in words or "switch-client" in words:
            return False
        return "tmux" in process.name() and _still_client(process)
    except (psutil.Error, OSError):
        return False


def _still_client(process: "psutil.Process") -> bool:
    """Whether a client has not ended yet. A server keeps the arguments of the client it was, not the name."""
    import psutil

    try:
        return _lives(process) and "server" not in process.name()
    except psutil.NoSuchProcess:
        return False


def signal_and_wait(signals: dict[int, int], patience: float) -> None:
    """Send each of these launchers its signal, and wait until all have ended, for `patience` at most."""
    import psutil

    known = []
    for pid, number in signals.items():
        with suppress(psutil.Error, OSError):
            process = psutil.Process(pid)
            process.send_signal(number)
            known.append(process)
    _left_after(known, patience)


def _left_after(processes: "list[psutil.Process]", patience: float) -> "list[psutil.Process]":
    """Those still alive once all have ended or `patience` has. A zombie has ended, whenever its parent looks."""
    deadline = time.monotonic() + patience
    while (left := [process for process in processes if _lives(process)]) and time.monotonic() < deadline:
        time.sleep(_LOOK_AGAIN)
    return left


def _lives(process: "psutil.Process") -> bool:
    import psutil

    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
