"""`pasta` (of passt): carries what a session's network of the kind `full` sends to public addresses, by any protocol.

It is tried and never trusted: private networks are closed inside the namespace, where no agent can open them again, and
a process inside then shows that the machine's own services are out of reach. It runs beside the egress process, which
ends it. Runs in launchers, so this imports little.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found] # `signal` would import `enum`
import _socket
import os
import resource
import select
import time

from mas.model.launch import MARK_LIMIT
from mas.runtime.network.walls import close_what_is_not_public, machine_addresses
from mas.runtime.sandbox.system import PR_SET_DUMPABLE, SAFE, die_with_parent, prctl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mas.runtime.network.space import Space

PROGRAM = "pasta"
# Nothing of the machine leads inside or the other way round, also where newer versions would have it so.
_FLAGS = (
    "--foreground", "--quiet", "--config-net", "--no-map-gw", "--no-netns-quit", "--no-dhcp", "--no-dhcpv6",
    "--tcp-ports", "none", "--udp-ports", "none", "--tcp-ns", "none", "--udp-ns", "none",
)  # fmt: skip
_TUN = "/dev/net/tun"
_OPEN_TO_ALL = 0o006
# Whom pasta runs as if MAS runs as root: that user has the namespace, and so no agent has any power over it.
NOBODY = 65534
_FILE = "pasta"
_PATIENCE = 10.0
_LOOK_AGAIN = 0.01
_ANSWERS_WITHIN = 0.3
_LONGEST_WORDS = 1 << 12
_FINE = b"+"


def why_no_tun() -> str:
    """Why pasta could not make its interface; empty if nothing is known to be in its way."""
    try:
        is_open = os.stat(_TUN).st_mode & _OPEN_TO_ALL == _OPEN_TO_ALL
        # A user may have been given it in another way; nobody, whom pasta runs as for root, has not.
        is_open = is_open or (os.geteuid() != 0 and os.access(_TUN, os.R_OK | os.W_OK))
    except FileNotFoundError:
        return f"there is no {_TUN}: modprobe tun"
    return "" if is_open else f"{_TUN} is not open to every user: chmod 666 {_TUN}"


def be_nobody() -> None:
    """If this process is root's, become the user that pasta runs as. For a process that does nothing else."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        # Its own files in /proc would be root's.
        prctl(PR_SET_DUMPABLE, 1)


def keep_pasta(program: str, directory: int, space: Space, mark: int = 0) -> None:
    """See to it that pasta runs for a namespace; `OSError` says why it cannot, and then nothing is left of it."""
    if running_pasta(directory):
        return
    if why := why_no_tun():
        raise OSError(1, why)
    pid = _start(program, space, mark)
    try:
        fd = os.open(_FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | SAFE, 0o600, dir_fd=directory)
        os.write(fd, f"{pid} {_begun(pid)}".encode())
        os.close(fd)
    except OSError:
        # As on a full disk: what is not noted would not be found again.
        end_pasta(pid)
        raise


def running_pasta(directory: int) -> int:
    """The process that an earlier start of the egress process has left running; 0 if there is none."""
    try:
        fd = os.open(_FILE, os.O_RDONLY | SAFE, dir_fd=directory)
        pid, begun = map(int, os.read(fd, 64).split())
        os.close(fd)
        return pid if _begun(pid) == begun else 0
    except (OSError, ValueError):
        return 0


def _begun(pid: int) -> int:
    """When a process began, which tells it from a later one of the same number; 0 if it has exited."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        words = file.read().rpartition(b")")[2].split()
    return 0 if words[0] in (b"Z", b"X") else int(words[19])


def end_pasta(pid: int) -> None:
    """End it, with all it has started."""
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except OSError:
            continue
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        # An earlier egress process has started it.
        return


def _start(program: str, space: Space, mark: int) -> int:
    services = [made for made in (_service(_socket.AF_INET), _service(_socket.AF_INET6)) if made]
    ports = [service.getsockname()[1] for service in services]
    report, write = os.pipe()
    go, start = os.pipe()
    holder = os.fork()
    if holder == 0:
        _look_from_inside(space, write, go, ports)
    for fd in (write, go):
        os.close(fd)
    output = os.memfd_create("pasta", os.MFD_CLOEXEC)
    pid = 0
    try:
        why = os.read(report, _LONGEST_WORDS)
        if why == _FINE:
            pid = _run(program, holder, output, mark)
            os.write(start, _FINE)
            why = _first_report(report, pid)
        if why == _FINE and any(_was_reached(service) for service in services):
            why = b"it opens the machine's own services to agents"
        if why == _FINE and not _is_dead(pid):
            return pid
        printed = os.pread(output, _LONGEST_WORDS, 0).strip().splitlines()
        words = why if why not in (_FINE, b"") else printed[-1] if printed else b"it exited"
        raise OSError(1, f"{PROGRAM}: {words.decode('utf-8', 'replace')}")
    except OSError:
        if pid:
            end_pasta(pid)
        raise
    finally:
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
        for fd in (report, start, output):
            os.close(fd)
        for service in services:
            service.close()


def _service(family: int) -> _socket.socket | None:
    """A service of the machine, at its loopback."""
    made = _socket.socket(family, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC | _socket.SOCK_NONBLOCK)
    try:
        made.bind(("127.0.0.1" if family == _socket.AF_INET else "::1", 0))
        made.listen(8)
    except OSError:
        made.close()
        return None
    return made


def _was_reached(service: _socket.socket) -> bool:
    return bool(select.select([service], [], [], 0)[0])


def _run(program: str, holder: int, output: int, mark: int) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        if mark:
            resource.setrlimit(MARK_LIMIT, (mark, mark))
        be_nobody()
        nothing = os.open(os.devnull, os.O_RDWR)
        for fd, to in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(fd, to)
        # It takes one that is ignored already, as Python has it, for a failure.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.closerange(3, 1 << 12)
        os.chdir("/")
        os.execve(program, [program, *_FLAGS, str(holder)], dict(os.environ))  # noqa: S606 - no shell, on purpose
    except OSError as error:
        os.write(2, (error.strerror or "it cannot be run").encode())
    finally:
        os._exit(127)


def _first_report(report: int, pid: int) -> bytes:
    """What the process inside says, or nothing if pasta exits first or takes too long."""
    watched = os.pidfd_open(pid)
    try:
        ready = select.select([report, watched], [], [], 2 * _PATIENCE)[0]
    finally:
        os.close(watched)
    return os.read(report, _LONGEST_WORDS) if report in ready else b"" if ready else b"it took too long"


def _is_dead(pid: int) -> bool:
    return os.waitpid(pid, os.WNOHANG)[0] != 0


def _look_from_inside(space: Space, report: int, go: int, ports: list[int]) -> None:
    """Be a process of the namespace that pasta can join; then close what is not public, and try to get out."""
    try:
        own = machine_addresses()
        be_nobody()
        space.join(with_user=True)
        die_with_parent()
        # Pasta opens its namespaces.
        prctl(PR_SET_DUMPABLE, 1)
        os.write(report, _FINE)
        os.read(go, 1)
        gateways = _gateways()
        close_what_is_not_public(own)
        _try_to_get_out(("127.0.0.1", "::1", *gateways), ports)
        os.write(report, _FINE)
    except OSError as error:
        os.write(report, (error.strerror or str(error)).encode("utf-8", "replace"))
    finally:
        os._exit(0)


def _gateways() -> list[str]:
    """Where the ways out lead, once there is one."""
    deadline = time.monotonic() + _PATIENCE
    while not (found := [*_older_gateways(), *_newer_gateways()]):
        if time.monotonic() > deadline:
            raise OSError(1, "it made no way out")
        time.sleep(_LOOK_AGAIN)
    return found


def _older_gateways() -> Iterator[str]:
    with open("/proc/self/net/route", encoding="ascii") as file:
        for words in map(str.split, file):
            if words[1] == words[7] == "00000000":
                yield _socket.inet_ntoa(bytes.fromhex(words[2])[::-1])


def _newer_gateways() -> Iterator[str]:
    if os.path.exists("/proc/self/net/ipv6_route"):
        with open("/proc/self/net/ipv6_route", encoding="ascii") as file:
            for words in map(str.split, file):
                if words[0] == "0" * 32 and words[1] == "00" and words[9] != "lo":
                    yield _socket.inet_ntop(_socket.AF_INET6, bytes.fromhex(words[4]))


def _try_to_get_out(addresses: tuple[str, ...], ports: list[int]) -> None:
    """Connect to the machine's own services; those see whether it worked."""
    tried = []
    for address in addresses:
        for port in ports:
            one = _socket.socket(_socket.AF_INET6 if ":" in address else _socket.AF_INET, _socket.SOCK_STREAM)
            one.setblocking(False)
            tried.append(one)
            try:
                one.connect_ex((address, port))
            except OSError:
                continue
    deadline = time.monotonic() + _ANSWERS_WITHIN
    while tried and (left := deadline - time.monotonic()) > 0:
        done = select.select([], tried, [], left)[1]
        tried = [one for one in tried if one not in done]
