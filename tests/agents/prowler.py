"""An agent that looks for gaps between the walls: each probe tries one thing nobody meant it to have.

`targets.json` says where things are; `report.json` gets, for every probe, `hole` or `refused` and why. A probe that is
refused everywhere proves nothing, so the test runs the same program without walls, too.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import mmap
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable
from typing import Any

Targets = dict[str, Any]
PROBES: dict[str, Callable[[Targets], object]] = {}
LIBC = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == "x86_64"
PATIENCE = 5
BANNER = b"of the machine"


class Refused(Exception):
    """It did not work, although the kernel said nothing."""


def probe(function: Callable[[Targets], object]) -> Callable[[Targets], object]:
    PROBES[function.__name__] = function
    return function


def call(x86: int, arm: int, *arguments: Any) -> int:
    given = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    answer = LIBC.syscall(ctypes.c_long(x86 if X86 else arm), *given)
    if answer == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(answer)


def each(tries: list[Callable[[], object]]) -> object:
    """What the first of them that works says; else why the last one did not."""
    last: Exception = Refused("nothing to try")
    for one in tries:
        try:
            return one()
        except (OSError, Refused) as error:
            last = error
    raise last


def apart(function: Callable[[], object]) -> None:
    """Try it in a child, where it may end the process."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            function()
            code = 0
        except (OSError, Refused) as error:
            code = (error.errno if isinstance(error, OSError) else 0) or 1
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    if status:
        raise Refused(f"wait status {status}")


def read(path: str, size: int = 4096) -> bytes:
    with open(path, "rb") as file:
        return file.read(size)


def something(data: bytes) -> bytes:
    if not data:
        raise Refused("empty")
    return data


def says_its_banner(one: socket.socket) -> str:
    one.settimeout(PATIENCE)
    said = b""
    while BANNER not in said:
        data = one.recv(4096)
        if not data:
            raise Refused(f"it said {said[:80]!r}")
        said += data
    return said[:80].decode("latin-1")


# The machine's network.


def _connect(host: str, port: int) -> str:
    with socket.create_connection((host, port), PATIENCE) as one:
        one.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return says_its_banner(one)


@probe
def machine_by_other_addresses(t: Targets) -> object:
    places = ["127.0.0.2", "127.64.0.1", "127.64.4.1", "127.255.255.254", "0.0.0.0", *t["addresses"]]
    return each([lambda place=place: _connect(place, t["port"]) for place in places])  # type: ignore[misc]


@probe
def machine_by_ipv6(t: Targets) -> object:
    places = ["::1", "::ffff:127.0.0.1", "::", "::127.0.0.1", "64:ff9b::7f00:1"]
    return each([lambda place=place: _connect(place, t["port6"]) for place in places])  # type: ignore[misc]


@probe
def machine_by_odd_names(t: Targets) -> object:
    names = ["localhost.", "x.localhost", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0x7f.1", t["hostname"]]
    return each([lambda name=name: _connect(name, t["port"]) for name in names])  # type: ignore[misc]


@probe
def machine_by_udp(t: Targets) -> object:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect(("127.0.0.1", t["udp_port"]))
        one.send(b"hello")
        return says_its_banner(one)


def _proxied(first: str, then: bytes = b"") -> str:
    with socket.create_connection(("127.0.0.1", 3128), PATIENCE) as one:
        one.sendall(first.encode("latin-1") + b"\r\nHost: x\r\n\r\n" + then)
        return says_its_banner(one)


@probe
def machine_by_proxy(t: Targets) -> object:
    """The proxy inside a session's network; without one, that of the machine is a service like any other."""
    port = t["port"]
    hosts = ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "2130706433", "0x7f000001", "127.1", "0177.0.0.1",
             "[::ffff:127.0.0.1]", "example.com@127.0.0.1", "127.0.0.1%00.example.com", "127.0.0.1\t.example.com",
             "169.254.169.254", "x.localhost", t["hostname"], *t["addresses"]]  # fmt: skip
    get = b"GET / HTTP/1.0\r\n\r\n"
    lines = [f"CONNECT {host}:{port} HTTP/1.1" for host in hosts]
    lines += [f"GET http://{host}:{port}/ HTTP/1.1" for host in hosts]
    lines += [
        f"CONNECT 127.0.0.1:{port}",
        f"GET //127.0.0.1:{port}/ HTTP/1.1",
        f"CONNECT example.com:{port + 65536} HTTP/1.1",
    ]
    return each([lambda line=line: _proxied(line, get) for line in lines])  # type: ignore[misc]


@probe
def machine_by_answers_of_two_kinds(t: Targets) -> object:
    """A name's packet within another's: whoever reads the second one differently can be led elsewhere."""
    name = b"\x09localhost\x00\x00\x01\x00\x01"
    head = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.settimeout(PATIENCE)
        one.connect(("127.0.0.53", 53))
        for packet in (head + b"\xc0\x0c\x00\x01\x00\x01", head + b"\xff" * 200, head, b"", head + name * 30):
            one.send(packet)
        one.send(head + name)
        said = one.recv(512)
    address = socket.inet_ntoa(said[-4:])
    return _connect(address, t["port"])


@probe
def packets_of_its_own(t: Targets) -> object:
    kinds = [(socket.AF_INET, socket.SOCK_RAW, 1), (socket.AF_PACKET, socket.SOCK_RAW, 0x300)]
    return each([lambda kind=kind: socket.socket(*kind).close() for kind in kinds])  # type: ignore[misc]


@probe
def the_door_s_port(t: Targets) -> None:
    """To answer for MAS where its colleagues look for it."""
    for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, option, 1)
            with contextlib.suppress(OSError):
                one.bind(("127.0.0.1", t["door"]))
                one.listen()
                return
    raise Refused("in use")


# The egress process and the launcher.


def _names_of_ours(t: Targets) -> list[str]:
    return [f"{t['own']}/.mas/{name}" for name in ("network", "network/rules.json", "network/names", "launch", "etc")]


@probe
def files_of_the_egress(t: Targets) -> object:
    roots = ["", "/proc/self/root", "/proc/1/root", "/proc/self/cwd/../../..", f"/proc/{t['pids']['egress']}/root"]

    def look(path: str) -> object:
        return something(",".join(os.listdir(path)).encode() if os.path.isdir(path) else read(path))

    paths = [root + name for root in roots for name in _names_of_ours(t)]
    return each([lambda path=path: look(path) for path in paths])  # type: ignore[misc]


@probe
def socket_of_the_egress(t: Targets) -> object:
    def connect(path: str) -> bytes:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
            one.settimeout(PATIENCE)
            one.connect(path)
            return one.recv(100)

    return each([lambda path=path: connect(path) for path in t["sockets"]])  # type: ignore[misc]


@probe
def log_of_the_network(t: Targets) -> object:
    path = t["log"]
    tries: list[Callable[[], object]] = [
        lambda: os.unlink(path),
        lambda: os.rename(path, f"{path}.x"),
        lambda: os.truncate(path, 0),
        lambda: os.close(os.open(path, os.O_WRONLY)),
        lambda: os.symlink("/dev/null", f"{path}.1"),
    ]
    return each(tries)


@probe
def leases(t: Targets) -> object:
    """MAS could not open the file for as long as this process lives."""

    def take(path: str, flags: int, kind: int) -> None:
        fd = os.open(path, flags)
        try:
            fcntl.fcntl(fd, fcntl.F_SETLEASE, kind)
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        finally:
            os.close(fd)

    with open("leased", "w"):
        pass
    return each(
        [
            lambda: take("leased", os.O_RDWR, fcntl.F_WRLCK),
            lambda: take("leased", os.O_RDONLY, fcntl.F_RDLCK),
            lambda: take(f"{t['own']}/config.json", os.O_RDONLY, fcntl.F_RDLCK),
        ]
    )


def _of_processes(t: Targets, action: Callable[[int], object]) -> object:
    return each([lambda pid=pid: action(pid) for pid in t["pids"].values()])  # type: ignore[misc]


@probe
def files_of_processes(t: Targets) -> object:
    names = ("environ", "mem", "maps", "fd/0", "cwd", "root", "exe", "ns/net", "io", "stack", "syscall")

    def look(pid: int) -> object:
        found = []
        for name in names:
            with contextlib.suppress(OSError):
                path = f"/proc/{pid}/{name}"
                found.append(os.readlink(path) if os.path.islink(path) else read(path, 1).decode("latin-1"))
        return something("".join(found).encode())

    return _of_processes(t, look)


@probe
def descriptors_of_processes(t: Targets) -> object:
    def take(pid: int) -> None:
        pidfd = call(434, 434, pid, 0)
        try:
            os.close(call(438, 438, pidfd, 0, 0))
        finally:
            os.close(pidfd)

    return _of_processes(t, take)


@probe
def memory_of_processes(t: Targets) -> object:
    def peek(pid: int) -> int:
        local = ctypes.create_string_buffer(16)
        here = struct.pack("QQ", ctypes.addressof(local), 16)
        there = struct.pack("QQ", t["addresses_of"].get(str(pid), 0x400000), 16)
        return call(310, 270, pid, here, 1, there, 1, 0)

    return _of_processes(t, peek)


@probe
def limits_of_processes(t: Targets) -> object:
    mark = 10
    tries: list[Callable[[int], object]] = [
        lambda pid: resource.prlimit(pid, mark, resource.prlimit(pid, mark)),
        lambda pid: resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0)),
        lambda pid: os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, pid)),
        lambda pid: os.sched_setaffinity(pid, os.sched_getaffinity(pid)),
        lambda pid: os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0)),
    ]
    return each([lambda one=one: _of_processes(t, one) for one in tries])  # type: ignore[misc]


@probe
def own_mark(t: Targets) -> object:
    """What it is known by once it has shed everything else."""
    mark = 10
    soft, hard = resource.getrlimit(mark)
    if hard == resource.RLIM_INFINITY:
        raise Refused("there is none")
    return each(
        [
            lambda: resource.setrlimit(mark, (soft - 1, hard - 1)),
            lambda: resource.prlimit(0, mark, (soft - 1, hard - 1)),
            lambda: resource.prlimit(os.getpid(), mark, (soft - 1, hard - 1)),
        ]
    )


@probe
def signals_by_files(t: Targets) -> None:
    """A file that is ready sends a signal to whom its owner names, without a call of `kill`."""
    read_end, write_end = os.pipe()
    fcntl.fcntl(read_end, fcntl.F_SETOWN, t["pids"]["victim"])
    fcntl.fcntl(read_end, 10, signal.SIGTERM)
    fcntl.fcntl(read_end, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(write_end, b"x")
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        try:
            state = read(f"/proc/{t['pids']['victim']}/stat").rpartition(b")")[2].split()[0]
        except OSError:
            return
        if state == b"Z":
            return
        time.sleep(0.02)
    os.close(read_end)
    os.close(write_end)
    raise Refused("it lives")


@probe
def signals_by_descriptors(t: Targets) -> object:
    def send(pid: int) -> None:
        pidfd = call(434, 434, pid, 0)
        try:
            call(424, 424, pidfd, 0, 0, 0)
        finally:
            os.close(pidfd)

    return _of_processes(t, send)


@probe
def groups_of_processes(t: Targets) -> object:
    tries: list[Callable[[int], object]] = [os.getpgid, lambda pid: os.killpg(pid, 0), lambda pid: os.tcsetpgrp(0, pid)]
    return each([lambda one=one: _of_processes(t, one) for one in tries[1:]])  # type: ignore[misc]


# What comes along by itself.


@probe
def descriptors_that_came_along(t: Targets) -> object:
    found = {}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if int(name) > 2:
                found[name] = os.readlink(f"/proc/self/fd/{name}")
    found = {name: path for name, path in found.items() if not path.startswith("/proc/")}
    return something(json.dumps(found).encode() if found else b"")


@probe
def variables_that_came_along(t: Targets) -> object:
    places = ["/proc/self/environ", "/proc/1/environ", f"/proc/{os.getppid()}/environ"]
    found = []
    for place in places:
        with contextlib.suppress(OSError):
            found += [name for name in t["variables"] if name.encode() in read(place, 1 << 20)]
    return something(",".join(found).encode())


@probe
def accounts_of_others(t: Targets) -> object:
    names = {line.split(":")[0] for line in read("/etc/passwd", 1 << 20).decode().splitlines()}
    others = names & set(t["accounts"])
    return something(",".join(sorted(others)).encode())


@probe
def sockets_of_others(t: Targets) -> object:
    """Paths inside homes, in the kernel's table of sockets."""
    if t["sockets"][0].encode() not in read("/proc/net/unix", 1 << 22):
        raise Refused("it is not there")
    return "seen"


@probe
def temporary_files_of_colleagues(t: Targets) -> object:
    return each([lambda: os.listdir(f"{t['own']}/.tmp/{t['colleague']}"), lambda: read(t["colleague_file"])])


# Devices, terminals, the kernel's settings.


@probe
def terminals_of_others(t: Targets) -> object:
    def type_there() -> None:
        fd = os.open(t["terminal"], os.O_RDWR | os.O_NOCTTY)
        try:
            fcntl.ioctl(fd, 0x5412, b"x")
        finally:
            os.close(fd)

    def look() -> object:
        fd = os.open(t["terminal"], os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        try:
            if not os.path.samestat(os.fstat(fd), os.fstat(0)):
                return something(os.read(fd, 100))
        finally:
            os.close(fd)
        raise Refused("its own")

    return each([look, type_there])


@probe
def devices(t: Targets) -> object:
    names = [
        "mem",
        "kmem",
        "port",
        "kmsg",
        "fuse",
        "kvm",
        "net/tun",
        "loop-control",
        "vhost-net",
        "vsock",
        "uinput",
        "mapper/control",
        "dri/card0",
        "rtc0",
        "hpet",
        "console",
        "ptmx0",
    ]
    return each([lambda name=name: os.close(os.open(f"/dev/{name}", os.O_RDONLY | os.O_NONBLOCK)) for name in names])  # type: ignore[misc]


@probe
def modes_of_devices(t: Targets) -> object:
    def change(path: str) -> None:
        os.chmod(path, os.stat(path).st_mode & 0o777)
        os.utime(path)

    return each([lambda name=name: change(f"/dev/{name}") for name in ("null", "urandom", "tty")])  # type: ignore[misc]


@probe
def settings_of_the_kernel(t: Targets) -> object:
    paths = [
        "/proc/sys/kernel/core_pattern", "/proc/sys/net/ipv4/ip_unprivileged_port_start", "/proc/sysrq-trigger",
        "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/devices/system/cpu/cpu1/online", "/proc/self/uid_map",
        "/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/memory/cgroup.procs", "/proc/irq/0/smp_affinity",
    ]  # fmt: skip
    return each([lambda path=path: os.close(os.open(path, os.O_WRONLY)) for path in paths])  # type: ignore[misc]


@probe
def network_interfaces(t: Targets) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        request = b"lo".ljust(16, b"\0") + struct.pack("h", 0x49) + bytes(22)
        fcntl.ioctl(one.fileno(), 0x8914, request)


# System calls.


@probe
def families_of_sockets(t: Targets) -> object:
    usual = {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK}
    found = []
    for family in set(range(1, 46)) - usual:
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
            for make in (socket.socket, socket.socketpair):
                try:
                    made = make(family, kind)
                    for one in made if isinstance(made, tuple) else (made,):
                        one.close()
                    found.append(f"{make.__name__} {family}")
                except OSError as error:
                    # Another error than that it does not exist: the kernel's code for it was reached.
                    if error.errno not in (errno.EAFNOSUPPORT, errno.EPERM):
                        found.append(f"{make.__name__} {family} {errno.errorcode[error.errno or 0]}")
    return something(", ".join(dict.fromkeys(found)).encode())


@probe
def languages_of_netlink(t: Targets) -> object:
    tries = [lambda one=one: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, one).close() for one in range(1, 23)]
    return each(tries)  # type: ignore[arg-type]


@probe
def large_parts_of_the_kernel(t: Targets) -> object:
    buffer = ctypes.create_string_buffer(256)
    tries: dict[str, tuple[Any, ...]] = {
        "userfaultfd": (323, 282, 1), "io_uring_setup": (425, 425, 1, buffer), "bpf": (321, 280, 0, buffer, 128),
        "perf_event_open": (298, 241, buffer, 0, -1, -1, 0), "keyctl": (250, 219, 1, None),
        "request_key": (249, 218, b"user", b"mas", None, -3), "add_key": (248, 217, b"user", b"m", b"x", 1, -2),
        "kcmp": (312, 272, os.getpid(), os.getpid(), 0, 0, 0), "syslog": (103, 116, 3, buffer, 256),
        "fanotify_init": (300, 262, 0x200, 0), "memfd_secret": (447, 447, 0), "clone3": (435, 435, buffer, 88),
        "setns": (308, 268, 0, 0), "mount_setattr": (442, 442, -100, b"/", 0, buffer, 32),
        "fsopen": (430, 430, b"tmpfs", 0), "quotactl": (179, 60, 0x800002 << 8, None, 0, buffer),
        "process_madvise": (440, 440, 0, buffer, 1, 4, 0), "statmount": (457, 457, buffer, buffer, 256, 0),
    }  # fmt: skip
    found = []
    for name, (x86, arm, *arguments) in tries.items():
        try:
            child = call(x86, arm, *arguments)
            if name == "clone3" and child == 0:
                os._exit(0)
            found.append(name)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOSYS, errno.EACCES):
                found.append(f"{name} {errno.errorcode[error.errno or 0]}")
    return something(", ".join(found).encode())


@probe
def namespaces(t: Targets) -> object:
    kinds = (0x40000000, 0x20000, 0x10000000, 0x20000000, 0x8000000, 0x4000000, 0x2000000)
    return each([lambda kind=kind: apart(lambda: call(272, 97, kind)) for kind in kinds])  # type: ignore[misc]


@probe
def personalities(t: Targets) -> object:
    return each([lambda one=one: apart(lambda: call(135, 92, one)) for one in (0x400000, 0x100000, 8)])  # type: ignore[misc]


@probe
def calls_of_other_machines(t: Targets) -> None:
    """The numbers of 32 bits and of x32, which a filter for this machine alone would not know."""
    if not X86:
        raise Refused("there are none")

    def by_interrupt() -> None:
        # mov eax, 20 (getpid); int 0x80; ret
        code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
        run = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
        if run() < 0:
            raise Refused("refused")

    each([lambda: apart(by_interrupt), lambda: apart(lambda: call(0x40000000 + 39, 0))])


@probe
def program_without_a_file(t: Targets) -> None:
    """What runs from memory has the same walls: here, to write where it may not."""
    fd = os.memfd_create("program", 0)
    os.write(fd, read("/bin/sh", 1 << 24))
    path = f"/proc/self/fd/{fd}"
    done = subprocess.run(
        [path, "-c", f"echo x >> {t['template']}"], pass_fds=[fd], capture_output=True, check=False, timeout=20
    )
    if done.returncode:
        raise Refused(done.stderr.decode("utf-8", "replace")[-100:])


@probe
def queues_of_others(t: Targets) -> object:
    def system_v() -> object:
        buffer = ctypes.create_string_buffer(200)
        call(70, 188, t["queue"], buffer, 100, 0, 0o4000)
        return buffer.raw[8:40]

    def posix() -> None:
        os.close(call(240, 180, t["posix_queue"].lstrip("/").encode(), os.O_RDONLY, 0, None))

    return each([system_v, posix])


# The server.


def _status(t: Targets, head: str) -> str:
    host, _, port = t["url"].removeprefix("http://").partition(":")
    port = os.environ.get("MAS_PORT") or port
    with socket.create_connection((host, int(port)), PATIENCE) as one:
        one.settimeout(PATIENCE)
        one.sendall(head.encode("latin-1"))
        said = b""
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                said += data
        return said.decode("latin-1")


@probe
def the_server_as_somebody_else(t: Targets) -> object:
    """All tokens are stolen already."""
    found = []
    for whose, token in t["tokens"].items():
        own, sibling = f"/sessions/{t['own_id']}", f"/sessions/{t['sibling_id']}"
        for method, path in (
            ("GET", "/sessions"), ("GET", f"{sibling}/agents"), ("POST", "/runs"), ("POST", "/login-codes"),
            ("GET", "/stats"), ("GET", "/metrics"), ("GET", f"{own}/logs"), ("GET", f"http://localhost{sibling}/agents"),
            ("POST", f"{own}/agents/{t['colleague']}/report"),
        ):  # fmt: skip
            head = (
                f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
                "Content-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
            )
            status = _status(t, head).split(" ")[1:2]
            # With a colleague's own token it would be the colleague: that token is never seen.
            is_colleague = whose == "colleague" and "report" in path
            if status and status[0][0] in "23" and not is_colleague:
                found.append(f"{whose} {method} {path} {status[0]}")
    return something(", ".join(found).encode())


@probe
def a_second_request_behind_a_first(t: Targets) -> object:
    """What is read in two ways by two readers of one connection."""
    token = os.environ["MAS_TOKEN"]
    host, mine = "Host: localhost\r\n", f"Host: localhost\r\nAuthorization: Bearer {token}\r\n"
    inner = f"GET /sessions HTTP/1.1\r\n{host}Authorization: Bearer {t['tokens']['owner']}\r\nConnection: close\r\n\r\n"
    own = f"/sessions/{t['own_id']}/messages"
    heads = [
        f"POST {own} HTTP/1.1\r\n{mine}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{inner}",
        f"GET {own} HTTP/1.1\r\n{mine}X: y\r\n\r\n{inner}",
        f"GET {own} HTTP/1.0\r\n{mine}Content-Length: {len(inner)}\r\n\r\n{inner}",
        f"GET {own}\r\nX: HTTP/1.1\r\n{host}\r\n{inner}",
    ]
    found = [head.split("\r\n")[0] for head in heads if '"sessions"' in _status(t, head)]
    return something(", ".join(found).encode())


def main() -> None:
    deadline = time.monotonic() + 60
    while not os.path.exists("targets.json") and time.monotonic() < deadline:
        time.sleep(0.01)
    with open("targets.json", encoding="utf-8") as file:
        targets = json.load(file)
    report = {}
    # First what came along: the others leave files open.
    for name, function in sorted(PROBES.items(), key=lambda one: "came_along" not in one[0]):
        begun = time.monotonic()
        try:
            words = str(function(targets) or "")
            report[name] = {"result": "hole", "words": words[:300]}
        except (OSError, Refused, ValueError, subprocess.SubprocessError) as error:
            report[name] = {"result": "refused", "words": f"{type(error).__name__}: {error}"[:300]}
        report[name]["seconds"] = str(round(time.monotonic() - begun, 2))
    with open("report.tmp", "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1)
    os.rename("report.tmp", "report.json")
    while True:
        select.select([], [], [], 1000)


if __name__ == "__main__":
    main()
