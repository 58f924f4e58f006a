"""Tries every way out of its session that it knows, and reports which were open.

One program with nothing but the standard library. Waits for `targets.json` in its directory, tries, and writes
`report.json`: for each probe whether what must work did (`ok`), what must not be was `refused`, or was open (`hole`),
and the error number or a few words with it. Then it waits, and notes in `signals` what its terminal tells it.

Leaves nothing that cannot be undone: it signals with 0, unmounts what it mounted, and changes only what it is told of.
"""

import ctypes
import errno
import fcntl
import json
import os
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

Targets = dict[str, Any]
Probe = Callable[[Targets], object]
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID = 0x00020000, 0x10000000, 0x20000000
MS_REMOUNT, MS_BIND, MNT_DETACH = 32, 4096, 2
PTRACE_SEIZE = 0x4206
X86 = os.uname().machine == "x86_64"
SYSCALLS = {
    "ptrace": 101 if X86 else 117,
    "mount": 165 if X86 else 40,
    "umount2": 166 if X86 else 39,
    "unshare": 272 if X86 else 97,
    "setns": 308 if X86 else 268,
    "keyctl": 250 if X86 else 219,
    "add_key": 248 if X86 else 217,
    "name_to_handle_at": 303 if X86 else 264,
    "open_by_handle_at": 304 if X86 else 265,
    "process_vm_readv": 310 if X86 else 270,
    "pidfd_open": 434,
    "pidfd_getfd": 438,
    "open_tree": 428,
    "io_uring_setup": 425,
    "bpf": 321 if X86 else 280,
    "userfaultfd": 323 if X86 else 282,
}
libc = ctypes.CDLL(None, use_errno=True)
PROBES: dict[str, tuple[Probe, str]] = {}


class Refused(Exception):
    """An attack did not come through, for a reason other than an error of the system."""


def attack(function: Probe) -> Probe:
    """A probe that must be refused: one that returns is a hole, with what it returns as the words."""
    PROBES[function.__name__] = (function, "hole")
    return function


def need(function: Probe) -> Probe:
    """A probe that must work."""
    PROBES[function.__name__] = (function, "ok")
    return function


def call(name: str, *args: Any) -> int:
    """A system call; `OSError` if it is refused."""
    words = [ctypes.c_long(SYSCALLS[name])]
    words += [ctypes.c_long(word) if isinstance(word, int) else word for word in args]
    answer = int(libc.syscall(*words))
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return answer


def apart(do: Callable[[], object]) -> None:
    """Try it in a process of its own, which takes what it did with it when it ends."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = b"0"
        try:
            do()
        except OSError as error:
            code = str(error.errno).encode()
        except Refused:
            code = b"-1"
        finally:
            os.write(writer, code)
            os._exit(0)
    os.close(writer)
    code = os.read(reader, 16)
    os.close(reader)
    os.waitpid(child, 0)
    if code == b"-1" or not code:
        raise Refused("it could not")
    if code != b"0":
        raise OSError(int(code), os.strerror(int(code)))


def read(path: str, most: int = 200) -> bytes:
    with open(path, "rb") as file:
        return file.read(most)


# What it was handed down.


@attack
def descriptors_left_open(t: Targets) -> object:
    """Whatever its launcher had open."""
    left = []
    for fd in range(3, 256):
        try:
            os.fstat(fd)
        except OSError:
            continue
        left.append(f"{fd}={os.readlink(f'/proc/self/fd/{fd}')}")
    if not left:
        raise Refused("none")
    return " ".join(left)


# Templates.


@attack
def template_overwrite(t: Targets) -> None:
    with open(t["template"], "r+b") as file:
        file.write(b"overwritten")


@attack
def template_create(t: Targets) -> None:
    with open(t["templates"] + "/planted", "x"):
        pass


@attack
def template_mkdir(t: Targets) -> None:
    os.mkdir(t["templates"] + "/planted-directory")


@attack
def template_unlink(t: Targets) -> None:
    os.unlink(t["template_to_lose"])


@attack
def template_rename_into(t: Targets) -> None:
    with open("mine", "w"):
        pass
    os.rename("mine", t["templates"] + "/renamed")


@attack
def template_rename_away(t: Targets) -> None:
    os.rename(t["template"], "stolen")
    os.rename("stolen", t["template"])


@attack
def template_truncate(t: Targets) -> None:
    os.truncate(t["template"], 1)


@attack
def template_hard_link(t: Targets) -> None:
    os.link(t["template"], "hard")
    with open("hard", "ab") as file:
        file.write(b"through a second name")


@attack
def template_through_link(t: Targets) -> None:
    os.symlink(t["template"], "soft")
    with open("soft", "ab") as file:
        file.write(b"through a link")


@attack
def template_through_proc(t: Targets) -> None:
    fd = os.open(t["template"], os.O_RDONLY)
    try:
        with open(f"/proc/self/fd/{fd}", "ab") as file:
            file.write(b"through /proc")
    finally:
        os.close(fd)


@attack
def template_chmod(t: Targets) -> None:
    os.chmod(t["template"], 0o666)


@attack
def template_utime(t: Targets) -> None:
    os.utime(t["template"], (1, 1))


@attack
def template_setxattr(t: Targets) -> None:
    os.setxattr(t["template"], "user.planted", b"1")


# Other sessions, the registry, MAS's own state.


@attack
def sibling_read(t: Targets) -> object:
    return read(t["sibling_file"]).decode()


@attack
def sibling_list(t: Targets) -> object:
    return str(os.listdir(t["sibling"]))


@attack
def sibling_write(t: Targets) -> None:
    with open(t["sibling"] + "/unit/00/planted", "x"):
        pass


@attack
def sibling_stat(t: Targets) -> None:
    os.stat(t["sibling"])


@attack
def sibling_chmod(t: Targets) -> None:
    os.chmod(t["sibling_file"], 0o600)


@attack
def sibling_named(t: Targets) -> None:
    if os.path.basename(t["sibling"]) not in os.listdir(t["sessions"]):
        raise Refused("not listed")


@attack
def registry_read(t: Targets) -> object:
    return read(t["registry"]).decode()


@attack
def registry_write(t: Targets) -> None:
    with open(t["registry"], "ab"):
        pass


@attack
def journal_write(t: Targets) -> None:
    with open(t["journal"], "ab"):
        pass


@attack
def owner_token(t: Targets) -> object:
    return str(read(t["token_file"]))


@attack
def colleague_token(t: Targets) -> object:
    """The launch file of a colleague, with its token."""
    return str(read(t["colleague_launch"]))


@attack
def colleague_state(t: Targets) -> object:
    return str(os.listdir(t["colleague_state"]))


@attack
def own_record_write(t: Targets) -> None:
    with open(t["own"] + "/.session", "ab"):
        pass


@attack
def own_config_write(t: Targets) -> None:
    with open(t["own"] + "/config.json", "ab"):
        pass


@attack
def own_config_replace(t: Targets) -> None:
    with open("config.json", "w") as file:
        file.write("{}")
    os.rename("config.json", t["own"] + "/config.json")


@attack
def own_log_write(t: Targets) -> None:
    with open(t["own"] + "/logs/agent-00.log", "ab"):
        pass


@attack
def own_lock(t: Targets) -> None:
    """Whoever holds it cannot be stopped."""
    with open(t["own"] + "/.session.lock", "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@attack
def address_write(t: Targets) -> None:
    with open(t["address"], "r+b") as file:
        file.write(b"http://127.0.0.1:1")


@attack
def workspace_config_write(t: Targets) -> None:
    with open(t["workspace"] + "/config.json", "ab"):
        pass


@attack
def workspace_provider(t: Targets) -> None:
    """What the workspace would run at the next start, outside."""
    os.makedirs(t["workspace"] + "/providers", exist_ok=True)
    with open(t["workspace"] + "/providers/planted.toml", "x"):
        pass


@attack
def python_packages(t: Targets) -> None:
    """What MAS itself would import."""
    with open(t["package"], "ab"):
        pass


# The user's home, the machine.


@attack
def home_secret(t: Targets) -> object:
    return read(t["secret"]).decode()


@attack
def home_write(t: Targets) -> None:
    with open(t["home"] + "/.bashrc", "ab") as file:
        file.write(b"")


@attack
def home_list(t: Targets) -> None:
    if ".ssh" not in os.listdir(t["home"]):
        raise Refused("nothing of it")


@attack
def root_write(t: Targets) -> None:
    path = "/usr/mas-hostile-was-here"
    with open(path, "x"):
        pass
    os.unlink(path)


@attack
def shadow_read(t: Targets) -> object:
    return str(read("/etc/shadow", 1))


@attack
def devices(t: Targets) -> object:
    """A disk, the memory, the kernel's log."""
    names = [f"/dev/{name}" for name in ("mem", "kmsg", *_block_devices())]
    for name in names:
        try:
            os.close(os.open(name, os.O_RDONLY | os.O_NONBLOCK))
            return name
        except OSError:
            continue
    raise Refused("none")


def _block_devices() -> list[str]:
    try:
        return [name for name in os.listdir("/sys/class/block") if not name.startswith(("loop", "ram"))]
    except OSError:
        return []


@attack
def kernel_settings(t: Targets) -> None:
    os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))


@attack
def cgroup_write(t: Targets) -> object:
    for root in ("/sys/fs/cgroup", *(f"/sys/fs/cgroup/{name}" for name in _listed("/sys/fs/cgroup"))):
        try:
            os.mkdir(f"{root}/mas-hostile")
        except OSError:
            continue
        os.rmdir(f"{root}/mas-hostile")
        return root
    raise Refused("nowhere")


def _listed(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []


# Other processes.


def _each(t: Targets) -> list[tuple[str, int]]:
    return [(name, t["pids"][name]) for name in sorted(t["pids"])]


def _any(t: Targets, do: Callable[[int], object]) -> str:
    """The first of the processes outside with which it works."""
    last: OSError | None = None
    for name, pid in _each(t):
        try:
            do(pid)
        except OSError as error:
            last = error
        else:
            return name
    assert last
    raise last


@attack
def signals(t: Targets) -> object:
    return _any(t, lambda pid: os.kill(pid, 0))


@attack
def proc_environ(t: Targets) -> object:
    return _any(t, lambda pid: _not_empty(read(f"/proc/{pid}/environ")))


def _not_empty(data: bytes) -> None:
    if not data:
        raise OSError(errno.ENODATA, "empty")


@attack
def proc_cwd(t: Targets) -> object:
    return _any(t, lambda pid: os.listdir(f"/proc/{pid}/cwd"))


@attack
def proc_root(t: Targets) -> object:
    return _any(t, lambda pid: os.stat(f"/proc/{pid}/root" + t["sibling"]))


@attack
def proc_memory(t: Targets) -> object:
    return _any(t, lambda pid: os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR)))


@attack
def proc_descriptors(t: Targets) -> object:
    return _any(t, lambda pid: os.readlink(f"/proc/{pid}/fd/0"))


@attack
def proc_names(t: Targets) -> object:
    return _any(t, lambda pid: _not_empty(read(f"/proc/{pid}/cmdline")))


@attack
def ptrace(t: Targets) -> object:
    return _any(t, lambda pid: apart(lambda: call("ptrace", PTRACE_SEIZE, pid, 0, 0)))


@attack
def process_memory(t: Targets) -> object:
    buffer = ctypes.create_string_buffer(8)
    local = struct.pack("PN", ctypes.addressof(buffer), 8)
    there = struct.pack("PN", 0x1000, 8)

    def look(pid: int) -> None:
        try:
            call("process_vm_readv", pid, local, 1, there, 1, 0)
        except OSError as error:
            # It looked, and there was nothing at that address.
            if error.errno != errno.EFAULT:
                raise

    return _any(t, look)


@attack
def descriptors_of_others(t: Targets) -> object:
    def steal(pid: int) -> None:
        fd = call("pidfd_open", pid, 0)
        os.close(call("pidfd_getfd", fd, 0, 0))

    return _any(t, steal)


@attack
def other_terminal(t: Targets) -> None:
    fd = os.open(t["terminal"], os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    os.close(fd)


# tmux and sockets.


def _tmux(t: Targets, socket_path: str, *words: str) -> str:
    argv = [t["tmux"], "-S", socket_path, *words]
    done = subprocess.run(argv, capture_output=True, timeout=20, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise Refused(done.stderr.decode(errors="replace").strip()[:100])
    return str(done.stdout.decode(errors="replace"))[:100]


@attack
def tmux_variable(t: Targets) -> None:
    if "TMUX" not in os.environ and "TMUX_PANE" not in os.environ:
        raise Refused("not set")


@attack
def tmux_list(t: Targets) -> object:
    return _tmux_any(t, "list-sessions")


@attack
def tmux_run_shell(t: Targets) -> object:
    return _tmux_any(t, "run-shell", f"touch {t['marker']}")


@attack
def tmux_send_keys(t: Targets) -> object:
    return _tmux_any(t, "send-keys", "-t", "=foreign:", f"touch {t['marker']}-typed", "Enter")


@attack
def tmux_default(t: Targets) -> None:
    """The user's own server, as plain `tmux` finds it."""
    done = subprocess.run(
        [t["tmux"], "list-sessions"], capture_output=True, timeout=20, stdin=subprocess.DEVNULL, check=False,
        env={**os.environ, "TMUX_TMPDIR": t["tmux_directory"]},
    )  # fmt: skip
    if done.returncode:
        raise Refused(done.stderr.decode(errors="replace").strip()[:100])


def _tmux_any(t: Targets, *words: str) -> str:
    last: Exception | None = None
    for path in t["tmux_sockets"]:
        try:
            return f"{path}: {_tmux(t, path, *words)}"
        except (OSError, Refused) as error:
            last = error
    assert last
    raise last


@attack
def unix_stream(t: Targets) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(t["unix_stream"])


@attack
def unix_datagram(t: Targets) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
        client.sendto(b"hello", t["unix_datagram"])


@attack
def unix_abstract(t: Targets) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("\0" + t["unix_abstract"])


@attack
def server_socket(t: Targets) -> None:
    """The owner's way into the server."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(t["server_socket"])


@attack
def machine_loopback(t: Targets) -> None:
    """A service of the user's machine that asks for nothing."""
    with socket.create_connection(("127.0.0.1", t["loopback_port"]), 5):
        pass


@attack
def machine_loopback_by_name(t: Targets) -> None:
    with socket.create_connection((t["machine"], t["loopback_port"]), 5):
        pass


# Powers.


@attack
def capabilities(t: Targets) -> object:
    status = read("/proc/self/status", 8192).decode()
    held = {line.split(":")[0]: int(line.split(":")[1], 16) for line in status.splitlines() if line.startswith("Cap")}
    if os.getuid():
        # An ordinary user cannot give up what it could only get from a program that gives rights.
        del held["CapBnd"]
    if not any(held.values()):
        raise Refused("none")
    return json.dumps(held)


@attack
def set_user_id(t: Targets) -> None:
    """Programs that give more rights than one has."""
    if "NoNewPrivs:\t1" in read("/proc/self/status", 8192).decode():
        raise Refused("no new privileges")


@attack
def mounts(t: Targets) -> None:
    os.makedirs("mounted", exist_ok=True)
    target = os.path.abspath("mounted").encode()
    call("mount", b"tmpfs", target, b"tmpfs", 0, None)
    call("umount2", target, 0)


@attack
def remount(t: Targets) -> None:
    """What is read-only, written to; tried where no other process sees it."""

    def do() -> None:
        call("unshare", CLONE_NEWNS)
        call("mount", None, t["templates"].encode(), None, MS_REMOUNT | MS_BIND, None)

    apart(do)


@attack
def remount_in_place(t: Targets) -> object:
    if t["tier"] == "D":
        raise Refused("nothing to open up")
    for place in ("/", t["workspace"], t["templates"]):
        try:
            call("mount", None, place.encode(), None, MS_REMOUNT | MS_BIND, None)
            return place
        except OSError as error:
            last = error
    raise last


@attack
def uncover(t: Targets) -> object:
    """What stands before the things that are not there, taken away."""
    if t["tier"] == "D":
        raise Refused("nothing to take away")
    for place in (t["sessions"], "/tmp", "/run", "/dev", "/proc"):
        try:
            call("umount2", place.encode(), MNT_DETACH)
            return place
        except OSError as error:
            last = error
    raise last


@attack
def nested_namespaces(t: Targets) -> None:
    def do() -> None:
        call("unshare", CLONE_NEWUSER | CLONE_NEWNS)
        with open("/proc/self/setgroups", "w") as file:
            file.write("deny")
        with open("/proc/self/uid_map", "w") as file:
            file.write(f"0 {os.getuid()} 1")
        call("mount", b"tmpfs", b"/", b"tmpfs", 0, None)

    apart(do)


@attack
def entering_namespaces(t: Targets) -> object:
    def enter(pid: int) -> None:
        def do() -> None:
            fd = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY)
            if os.fstat(fd).st_ino == os.stat("/proc/self/ns/mnt").st_ino:
                return
            call("setns", fd, CLONE_NEWNS)

        apart(do)

    return _any(t, enter)


@attack
def detached_tree(t: Targets) -> None:
    """A copy of the mounts that can be changed."""
    os.close(call("open_tree", -100, b"/", 1 | 0x8000))


@attack
def device_nodes(t: Targets) -> None:
    try:
        os.mknod("disk", 0o600 | stat.S_IFBLK, os.makedev(8, 0))
    finally:
        if os.path.lexists("disk"):
            os.unlink("disk")


@attack
def file_handles(t: Targets) -> None:
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    mount = ctypes.c_int()
    call("name_to_handle_at", -100, os.getcwd().encode(), handle, ctypes.byref(mount), 0)
    fd = os.open(os.getcwd(), os.O_RDONLY)
    try:
        os.close(call("open_by_handle_at", fd, handle, os.O_RDONLY))
    finally:
        os.close(fd)


@attack
def chroot(t: Targets) -> None:
    apart(lambda: os.chroot("/"))


@attack
def keyrings(t: Targets) -> None:
    call("keyctl", 0, ctypes.c_long(-3), 1)


@attack
def new_keys(t: Targets) -> None:
    call("add_key", b"user", b"mas-hostile", b"x", 1, ctypes.c_long(-2))


@attack
def io_uring(t: Targets) -> None:
    os.close(call("io_uring_setup", 1, ctypes.create_string_buffer(120)))


@attack
def kernel_programs(t: Targets) -> None:
    os.close(call("bpf", 0, ctypes.create_string_buffer(struct.pack("IIII", 2, 4, 4, 1) + bytes(112)), 128))


@attack
def foreign_calls(t: Targets) -> None:
    """Calls by numbers of another kind of program, which a filter may not know."""
    if not X86:
        raise Refused("there are none here")
    # getpid, as x32 numbers it.
    if libc.syscall(ctypes.c_long(0x40000000 + 39)) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


# The API.


def _ask(t: Targets, method: str, path: str, token: str, body: object = None) -> int:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    data = json.dumps(body).encode() if body is not None else None
    # An agent with a network of its own finds MAS there.
    url = f"http://127.0.0.1:{os.environ['MAS_PORT']}" if "MAS_PORT" in os.environ else t["url"]
    request = urllib.request.Request(url + path, data, headers, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            if error.code in (401, 403):
                raise Refused(f"HTTP {error.code}") from None
            return error.code


@attack
def api_other_session(t: Targets) -> object:
    return str(_ask(t, "GET", f"/sessions/{t['sibling_id']}/agents", os.environ["MAS_TOKEN"]))


@attack
def api_other_agent(t: Targets) -> object:
    body = {"target": "00", "message": "x", "from": "99"}
    return str(_ask(t, "POST", f"/sessions/{t['own_id']}/messages", os.environ["MAS_TOKEN"], body))


@attack
def api_start(t: Targets) -> object:
    return str(_ask(t, "POST", "/runs", os.environ["MAS_TOKEN"], {"agents": {}}))


@attack
def api_stop(t: Targets) -> object:
    return str(_ask(t, "POST", f"/sessions/{t['sibling_id']}/stop", os.environ["MAS_TOKEN"]))


@attack
def api_without_token(t: Targets) -> object:
    return str(_ask(t, "GET", "/sessions", ""))


@attack
def api_forged_token(t: Targets) -> object:
    forged = os.environ["MAS_TOKEN"].replace(t["own_id"], t["sibling_id"])
    return str(_ask(t, "GET", f"/sessions/{t['sibling_id']}/agents", forged))


# What must work.


def _run(*argv: str, **options: Any) -> str:
    done = subprocess.run(
        argv, capture_output=True, timeout=60, stdin=subprocess.DEVNULL, check=False, **options
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError((done.stderr + done.stdout).decode(errors="replace")[-300:])
    return str(done.stdout.decode(errors="replace"))


def _is(found: object, wanted: object) -> None:
    if found != wanted:
        raise RuntimeError(f"{found!r} is not {wanted!r}")


@need
def api_own_session(t: Targets) -> None:
    _is(_ask(t, "GET", f"/sessions/{t['own_id']}/agents", os.environ["MAS_TOKEN"]), 200)


@need
def mas_inside(t: Targets) -> None:
    _run(sys.executable, "-m", "mas", "report", "at work")


@need
def own_files(t: Targets) -> None:
    os.makedirs("a")
    with open("a/one", "w") as file:
        file.write("one")
    os.rename("a/one", os.environ["UNIT_DIR"] + "/one")
    shutil.move(os.environ["UNIT_DIR"] + "/one", os.environ["WORKFLOWS_DIR"] + "/one")
    shutil.move(os.environ["WORKFLOWS_DIR"] + "/one", "a/two")
    os.chmod("a/two", 0o700)
    os.symlink("two", "a/link")
    os.link("a/two", "a/hard")
    _is(read("a/hard"), b"one")


@need
def own_session_is_seen(t: Targets) -> None:
    _is(os.path.basename(t["own"]) in os.listdir(t["sessions"]) if t["tier"] == "A" else True, True)
    json.loads(read(t["own"] + "/config.json", 1 << 20))


@need
def template_read(t: Targets) -> None:
    read(t["template"])


@need
def home(t: Targets) -> None:
    path = os.path.expanduser("~/.mas-hostile")
    with open(path, "w"):
        pass
    os.unlink(path)


@need
def shell_pipe(t: Targets) -> None:
    _is(_run("bash", "-c", "echo one two | tr a-z A-Z | { read a b; echo $b; }"), "TWO\n")


@need
def temporary_files(t: Targets) -> None:
    path = _run("mktemp").strip()
    with open(path, "w") as file:
        file.write("x")
    os.unlink(path)


@need
def tmp(t: Targets) -> None:
    with open("/tmp/mas-hostile", "w"):
        pass
    os.unlink("/tmp/mas-hostile")


@need
def terminals(t: Targets) -> None:
    master, slave = os.openpty()
    child = os.fork()
    if child == 0:
        os.setsid()
        fcntl.ioctl(slave, 0x540E, 0)
        os.dup2(slave, 1)
        os.execv("/bin/sh", ["sh", "-c", "test -t 1 && echo on a terminal > /dev/tty"])
    said = os.read(master, 100)
    os.waitpid(child, 0)
    os.close(master)
    os.close(slave)
    _is(said, b"on a terminal\r\n")


@need
def daemons(t: Targets) -> object:
    """What goes on when it should have exited; recognised by its variables."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execvp("sleep", ["sleep", "1000"])
        os._exit(0)
    os.wait()
    return subprocess.Popen(["setsid", "--fork", "sleep", "1000"], close_fds=True).wait()


@need
def own_processes(t: Targets) -> None:
    child = subprocess.Popen(["sleep", "100"])
    os.kill(child.pid, signal.SIGTERM)
    _is(child.wait(20), -signal.SIGTERM)
    _is(os.path.exists("/proc/self/status"), True)


@need
def socket_pairs(t: Targets) -> None:
    one, two = socket.socketpair()
    one.send(b"x")
    _is(two.recv(1), b"x")
    one.close()
    two.close()


@need
def own_unix_sockets(t: Targets) -> None:
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        listener.bind("s")
        listener.listen()
        client.connect("s")
    os.unlink("s")


@need
def shared_memory(t: Targets) -> None:
    script = (
        "import multiprocessing as m\n"
        "def f(x): return x + 1\n"
        "if __name__ == '__main__':\n"
        "    with m.Lock(): pass\n"
        "    with m.Pool(2) as p: assert p.map(f, [1, 2]) == [2, 3]\n"
    )
    with open("pool.py", "w") as file:
        file.write(script)
    _run(sys.executable, "pool.py")


@need
def names_of_users(t: Targets) -> None:
    _run("id", "-un")


@need
def git_commit(t: Targets) -> None:
    _run("git", "init", "-q", "repo")
    who = ["-c", "user.name=me", "-c", "user.email=me@example.org"]
    with open("repo/file", "w") as file:
        file.write("x")
    _run("git", "-C", "repo", "add", "file")
    _run("git", "-C", "repo", *who, "commit", "-qm", "one")
    _is(_run("git", "-C", "repo", "log", "--format=%s"), "one\n")


@need
def virtual_environment(t: Targets) -> None:
    _run(sys.executable, "-m", "venv", "--without-pip", "venv")
    _is(_run("venv/bin/python", "-c", "import sys, ssl, sqlite3; print(sys.prefix != sys.base_prefix)"), "True\n")


@need
def node(t: Targets) -> None:
    script = (
        "const {Worker} = require('worker_threads'); const cp = require('child_process'); const fs = require('fs');"
        "fs.writeFileSync('node.txt', 'x'); const said = cp.spawnSync('echo', ['hi']).stdout.toString();"
        "new Worker('require(\"worker_threads\").parentPort.postMessage(1)', {eval: true})"
        ".on('message', m => console.log(said.trim(), m, fs.readFileSync('node.txt', 'utf8')));"
    )
    _is(_run("node", "-e", script), "hi 1 x\n")


@need
def npm(t: Targets) -> None:
    os.makedirs("package", exist_ok=True)
    _run("npm", "init", "-y", cwd="package")
    _is(os.path.exists("package/package.json"), True)


def probe(name: str, targets: Targets) -> dict[str, Any]:
    function, good = PROBES[name]
    try:
        words = function(targets)
    except OSError as error:
        return {"result": "refused", "errno": error.errno, "words": str(error)[:200]}
    except Refused as refused:
        return {"result": "refused", "errno": None, "words": str(refused)[:200]}
    except (RuntimeError, ValueError, subprocess.TimeoutExpired) as error:
        return {"result": "refused", "errno": None, "words": str(error)[:400]}
    return {"result": good, "errno": None, "words": str(words or "")[:200]}


def note_signals() -> None:
    """Write down that the terminal interrupts and changes its size."""

    def note(number: int, _: object) -> None:
        size = struct.unpack("HHHH", fcntl.ioctl(0, 0x5413, bytes(8)))[:2]
        with open("signals", "a", encoding="utf-8") as file:
            file.write(f"{signal.Signals(number).name} {size[1]}x{size[0]}\n")

    for number in (signal.SIGINT, signal.SIGWINCH):
        signal.signal(number, note)


def main() -> None:
    deadline = time.monotonic() + 60
    while not os.path.exists("targets.json") and time.monotonic() < deadline:
        time.sleep(0.01)
    with open("targets.json", encoding="utf-8") as file:
        targets = json.load(file)
    report = {}
    for name in PROBES:
        if name not in targets["skip"]:
            begun = time.monotonic()
            report[name] = probe(name, targets)
            report[name]["seconds"] = round(time.monotonic() - begun, 3)
    note_signals()
    with open("report.tmp", "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1)
    os.rename("report.tmp", "report.json")
    while True:
        time.sleep(1000)


if __name__ == "__main__":
    main()
