"""Tries what it is given, one `verb:words` per argument, and writes how each went to a file: `ok`, or the error."""

from __future__ import annotations

import ctypes
import errno
import json
import multiprocessing
import os
import pty
import resource
import socket
import subprocess
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == "x86_64"
NEWNS, NEWUSER = 0x20000, 0x10000000
PTRACE_ATTACH, MS_REMOUNT, MS_BIND, MNT_DETACH = 16, 32, 4096, 2


def checked(answer: int) -> int:
    if answer == -1:
        raise OSError(ctypes.get_errno(), "")
    return answer


def write(path: str) -> None:
    with open(path, "ab") as file:
        file.write(b"was here")


def connect(family: int, kind: int, address: object) -> None:
    with socket.socket(family, kind) as one:
        one.settimeout(60)
        one.connect(address)  # type: ignore[arg-type]


def listen(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(path)
        one.listen()
        connect(socket.AF_UNIX, socket.SOCK_STREAM, path)


def bind(port: int) -> None:
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("127.0.0.1", port))


def listen_unbound() -> int:
    """The port that the kernel chooses for a listener without one."""
    with socket.socket() as one:
        one.listen()
        return int(one.getsockname()[1])


def use_udp() -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other,
    ):
        one.bind(("127.0.0.1", 0))
        other.sendto(b"through", one.getsockname())
        one.settimeout(60)
        assert one.recv(7) == b"through"


def watch(path: str) -> None:
    fd = checked(LIBC.inotify_init1(0))
    checked(LIBC.inotify_add_watch(fd, path.encode(), 0x100))


def shared_segment(words: str) -> str:
    """What is in a segment of System V's shared memory."""
    LIBC.shmat.restype = ctypes.c_void_p
    address = LIBC.shmat(int(words), None, 0o10000)
    if address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "")
    return ctypes.string_at(address).decode()


def read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(4096)


def new_pty() -> str:
    master, slave = pty.openpty()
    name = os.ttyname(slave)
    os.write(slave, b"through")
    assert os.read(master, 7) == b"through"
    os.close(os.open(name, os.O_RDWR | os.O_NOCTTY))
    return name


def share_memory(name: str) -> None:
    with multiprocessing.Lock():
        write(f"/dev/shm/{name}")


def in_new_user_namespace() -> None:
    checked(LIBC.unshare(NEWUSER))


def fork_into_user_namespace() -> None:
    child = checked(LIBC.syscall(56 if X86 else 220, NEWUSER | 17, 0, 0, 0, 0))
    if not child:
        os._exit(0)
    os.waitpid(child, 0)


def handle_of_root() -> None:
    handle = ctypes.create_string_buffer(b"\x08\0\0\0\x01\0\0\0" + b"\x02\0\0\0" + bytes(120))
    checked(LIBC.open_by_handle_at(os.open("/", os.O_RDONLY), handle, os.O_RDONLY))


def enter_namespace_of(pid: str) -> None:
    checked(LIBC.setns(os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY), NEWNS))


def status_of(name: str) -> str:
    with open("/proc/self/status", encoding="ascii") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file)[name]


def program(text: str) -> str:
    return subprocess.run(["sh", "-c", text], check=True, capture_output=True, text=True).stdout


def call(words: str) -> None:
    """A system call by its number, with numbers as arguments; it does no harm that it may be half done."""
    number, *arguments = map(int, words.split(" "))
    padded = [ctypes.c_long(one) for one in (*arguments, *[0] * (6 - len(arguments)))]
    checked(LIBC.syscall(ctypes.c_long(number), *padded))


VERBS = {
    "write": write,
    "read": read,
    "list": os.listdir,
    "readlink": os.readlink,
    "stat": lambda path: os.stat(path).st_size,
    "unlink": os.unlink,
    "truncate": lambda path: os.truncate(path, 0),
    "chmod": lambda path: os.chmod(path, os.stat(path).st_mode & 0o7777),
    "utime": lambda path: os.utime(path, (1, 1)),
    "mkdir": os.mkdir,
    "rename": lambda words: os.rename(*words.split(" ")),
    "link": lambda words: os.link(*words.split(" ")),
    "symlink": lambda words: os.symlink(*words.split(" ")),
    "kill": lambda pid: os.kill(int(pid), 0),
    "ptrace": lambda pid: checked(LIBC.ptrace(PTRACE_ATTACH, int(pid), None, None)),
    "pids": lambda _: [int(name) for name in os.listdir("/proc") if name.isdigit()],
    "unix": lambda path: connect(socket.AF_UNIX, socket.SOCK_STREAM, path),
    "dgram": lambda path: connect(socket.AF_UNIX, socket.SOCK_DGRAM, path),
    "abstract": lambda name: connect(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{name}"),
    "listen": listen,
    "socketpair": lambda _: len(socket.socketpair()),
    "tcp": lambda port: connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", int(port))),
    "bind": lambda port: bind(int(port)),
    "family": lambda number: socket.socket(int(number), socket.SOCK_STREAM).close(),
    "mptcp": lambda _: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).close(),
    "pty": lambda _: new_pty(),
    "shm": share_memory,
    "terminal": lambda _: os.close(os.open("/dev/tty", os.O_RDWR)),
    "umount": lambda path: checked(LIBC.umount2(path.encode(), MNT_DETACH)),
    "remount": lambda path: checked(LIBC.mount(None, path.encode(), None, MS_REMOUNT | MS_BIND, None)),
    "mount": lambda path: checked(LIBC.mount(b"tmpfs", path.encode(), b"tmpfs", 0, None)),
    "unshare": lambda _: in_new_user_namespace(),
    "clone": lambda _: fork_into_user_namespace(),
    "setns": enter_namespace_of,
    "mknod": lambda path: os.mknod(path, 0o060600, os.makedev(8, 0)),
    "handle": lambda _: handle_of_root(),
    "uring": lambda _: checked(LIBC.syscall(425, 1, ctypes.create_string_buffer(120))),
    "keyctl": lambda _: checked(LIBC.syscall(250 if X86 else 219, 0, -3, 0, 0, 0)),
    "call": call,
    "unbound": lambda _: listen_unbound(),
    "udp": lambda _: use_udp(),
    "watch": watch,
    "shared": shared_segment,
    "cpu": lambda pid: resource.prlimit(int(pid), resource.RLIMIT_CPU, (1000, 1000)),
    "priority": lambda pid: os.setpriority(os.PRIO_PROCESS, int(pid), 19),
    "priorities": lambda _: os.setpriority(os.PRIO_USER, 0, 19),
    "affinity": lambda pid: os.sched_setaffinity(int(pid), os.sched_getaffinity(0)),
    "scheduler": lambda pid: os.sched_setscheduler(int(pid), os.SCHED_BATCH, os.sched_param(0)),
    "chown": lambda path: os.chown(path, os.getuid(), os.getgid()),
    "setxattr": lambda path: os.setxattr(path, "user.mas", b"x"),
    "open": lambda path: os.close(os.open(path, os.O_RDWR | os.O_NOCTTY)),
    "netlink": lambda protocol: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, int(protocol)).close(),
    "x32": lambda _: checked(LIBC.syscall(0x40000000 | 39)),
    "setuid": lambda uid: os.setresuid(int(uid), int(uid), int(uid)),
    "status": status_of,
    "ids": lambda _: [os.getuid(), os.getgid(), os.getgroups()],
    "umask": lambda _: [os.umask(0), os.getcwd()],
    "descriptors": lambda _: sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1],
    "run": program,
}


def attempt(verb: str, words: str) -> object:
    try:
        answer = VERBS[verb](words)  # type: ignore[operator]
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))
    except subprocess.CalledProcessError as error:
        return [error.returncode, error.stderr]
    return "ok" if answer is None else answer


if __name__ == "__main__":
    report, *tries = sys.argv[1:]
    found = {one: attempt(*one.split(":", 1)) for one in tries}
    with open(report, "w", encoding="utf-8") as file:
        json.dump(found, file)
