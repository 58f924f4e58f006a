"""Namespaces of the agent's own: its processes, and its view of the file system (Linux 5.12)."""

from __future__ import annotations

import os

from mas.runtime.sandbox.system import AT_EMPTY_PATH, AT_RECURSIVE, call, libc, open_place
from mas.runtime.sandbox.view import DEVICES, LISTED, PRIVATE, is_below, split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mas.model.launch import Rules
    from mas.runtime.sandbox.view import Step

_NEWNS, _NEWIPC, _NEWUSER, _NEWPID = 0x20000, 0x8000000, 0x10000000, 0x20000000
_CLONE_PARENT = 0x8000
_SIGCHLD = 17
_EPERM = 1
_NOSUID, _NODEV, _NOEXEC, _READ_ONLY = 2, 4, 8, 1
_PRIVATE = 0x40000
_RECURSIVE_PRIVATE = 0x4000 | _PRIVATE
_CLONE = 1
_DETACH = 2
_FORMAT, _DIRECTORY = 0o170000, 0o040000
# Any directory that every machine has, to mount a new root on before it becomes the root.
_STAGE = "/dev"
_PROC = _NOSUID | _NODEV | _NOEXEC | _READ_ONLY
_FROM_FD, _ONTO_FD = 4, 0x40
_LINKS = {"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"}


class NoProc(OSError):
    """A new /proc is refused, as where part of the old one is masked."""


def enter_namespaces(own_processes: bool, proc: int | None = None) -> None:
    """Have new namespaces, as the same user as outside; that of processes is for those forked next.

    `proc` is a /proc in which this process exists, if /proc is none.
    """
    flags = _NEWNS | _NEWIPC | (_NEWPID if own_processes else 0)
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0:
        try:
            libc("unshare", flags)
        except OSError as error:
            if error.errno != _EPERM:
                raise
        else:
            return
    libc("unshare", flags | _NEWUSER)
    keep_ids(uid, gid, proc)


def join_user(user: int) -> None:
    """Move this process into a user namespace, unless it is there already."""
    if os.fstat(user).st_ino != os.stat("/proc/self/ns/user").st_ino:
        libc("setns", user, _NEWUSER)


def fork_beside() -> int:
    """Fork a child for the parent of this process instead."""
    return call("clone", _CLONE_PARENT | _SIGCHLD, 0, 0, 0, 0)


def keep_ids(uid: int, gid: int, proc: int | None = None) -> None:
    """Be the same user and group in the new user namespace as outside."""
    directory = "/proc/self" if proc is None else "self"
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        fd = os.open(f"{directory}/{name}", os.O_WRONLY | os.O_CLOEXEC, dir_fd=proc)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)


def build_view(rules: Rules, own_processes: bool) -> None:
    """Give this namespace the file system that the rules say; `NoProc` if a new /proc is refused."""
    common, own = split(rules)
    mounts = copy_sources(own)
    build_root(rules, common, own, own_processes)
    furnish(rules, own, mounts)


def build_root(rules: Rules, common: list[Step], own: list[Step], own_processes: bool) -> None:
    """Do what agents have in common, seal it, and leave places for what is each one's own."""
    _mount(None, "/", None, _RECURSIVE_PRIVATE)
    # Taken before anything is covered, read-only or left behind.
    places = {path: kind == "hide" or os.path.isdir(source) for kind, path, source in own}
    mounts = copy_sources(common)
    devices = {name: _copy(f"/dev/{name}") for name in DEVICES}
    covers = ["/dev"]
    if rules.root == LISTED:
        _leave_root(own_processes)
        covers.append("/")
    else:
        _seal_root(own_processes)
    _make_devices(devices)
    covers += _show_all(common, mounts)
    theirs = tuple(f"{place}/" for place in (*PRIVATE, *places))
    for path, is_directory in places.items():
        if not path.startswith(theirs):
            _make_place(path, is_directory)
    for path, target in rules.links:
        if not path.startswith(theirs):
            _make_link(path, target)
    _seal(covers)


def furnish(rules: Rules, own: list[Step], mounts: dict[str, int], new_proc: bool = False) -> None:
    """Do the steps that are this agent's own in a root that was built; `mounts` are from outside of it."""
    if new_proc:
        _mount_proc("/proc")
    _mount("devpts", "/dev/pts", "devpts", _NOSUID | _NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    _mount("tmpfs", "/dev/shm", "tmpfs", _NOSUID | _NODEV, f"mode=1777,size={rules.shared_memory}")  # noqa: S108
    covers = _show_all(own, mounts)
    ours = tuple(f"{place}/" for place in (*PRIVATE, *(path for _, path, _ in own)))
    for path, target in rules.links:
        if path.startswith(ours):
            _make_link(path, target)
    _seal(covers)


def copy_sources(steps: list[Step]) -> dict[str, int]:
    """Copies of what the steps show, by the paths where they will be."""
    return {path: _copy(source) for kind, path, source in steps if kind != "hide"}


def _show_all(steps: list[Step], mounts: dict[str, int]) -> list[str]:
    """Do the steps; returns the directories that were covered, in which there may now be places for others."""
    covers = []
    nothing = _copy("/dev/null")
    _set(nothing, _READ_ONLY | _NOSUID | _NODEV | _NOEXEC)
    for kind, path, _ in steps:
        if kind != "hide":
            mount = mounts[path]
            _set(mount, _flags(kind, path))
            _make_place(path, os.fstat(mount).st_mode & _FORMAT == _DIRECTORY)
            _show(mount, path)
            continue
        if not os.path.lexists(path):
            os.makedirs(path)
        if os.path.isdir(path):
            _mount("tmpfs", path, "tmpfs", _NOSUID | _NODEV | _NOEXEC, "mode=555,size=1m")
            covers.append(path)
        else:
            _show(_copy(nothing), path)
    os.close(nothing)
    return covers


def _make_link(path: str, target: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.symlink(target, path)


def _seal(covers: list[str]) -> None:
    for path in covers:
        place = open_place(path)
        _set(place, _READ_ONLY, recursive=False)
        os.close(place)


def _seal_root(own_processes: bool) -> None:
    """Keep the machine's root, read-only."""
    root = open_place("/")
    _set(root, _READ_ONLY | _NOSUID | _NODEV)
    os.close(root)
    if own_processes:
        _mount_proc("/proc")


def _leave_root(own_processes: bool) -> None:
    """Have an empty root, with only /proc in it, and detach the machine's."""
    processes = -1 if own_processes else _copy("/proc")
    _mount("tmpfs", _STAGE, "tmpfs", _NOSUID | _NODEV | _NOEXEC, "mode=755,size=1m")
    os.chdir(_STAGE)
    for name in ("proc", "dev", "run"):
        os.mkdir(name)
    # A new /proc is allowed only while another one is seen.
    if own_processes:
        _mount_proc("proc")
    else:
        _set(processes, _PROC)
        _show(processes, f"{_STAGE}/proc")
    # Both at one place: the old root then lies over the new one, and that is where `.` is.
    libc("pivot_root", b".", b".")
    libc("umount2", b".", _DETACH)
    os.chdir("/")


def _mount_proc(path: str) -> None:
    try:
        _mount("proc", path, "proc", _PROC)
    except OSError as error:
        raise NoProc(error.errno, error.strerror) from None


def _flags(kind: str, path: str) -> int:
    device = 0 if is_below(path, "/dev") else _NODEV
    return _NOSUID | device | (_READ_ONLY if kind in ("read", "copy") else 0)


def _make_devices(devices: dict[str, int]) -> None:
    """A /dev with what every program needs, and places for an agent's own terminals and memory to share."""
    _mount("tmpfs", "/dev", "tmpfs", _NOSUID | _NOEXEC, "mode=755,size=1m")
    for name, device in devices.items():
        os.close(os.open(f"/dev/{name}", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        _show(device, f"/dev/{name}")
    seal_devices()
    for name, target in _LINKS.items():
        os.symlink(target, f"/dev/{name}")
    os.symlink("pts/ptmx", "/dev/ptmx")
    os.mkdir("/dev/pts")
    os.mkdir("/dev/shm")  # noqa: S108 - the one of this namespace


def seal_devices() -> None:
    """Prevent changes of a device's mode: a device can be written to even on a read-only mount."""
    for name in DEVICES:
        device = open_place(f"/dev/{name}")
        _set(device, _READ_ONLY | _NOSUID | _NOEXEC, recursive=False)
        os.close(device)


def _make_place(path: str, is_directory: bool) -> None:
    """What is put back below something hidden or replaced has no place there yet."""
    if os.path.lexists(path):
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if is_directory:
        os.mkdir(path)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    names = (os.fsencode(word) if word is not None else None for word in (source, target, kind))
    try:
        libc("mount", *names, flags, data.encode() if data else None)
    except OSError as error:
        raise OSError(error.errno, f"mount on {target}: {os.strerror(error.errno or 0)}") from None


def _copy(source: str | int) -> int:
    """A mount of its own, with all that is mounted below, not yet shown anywhere."""
    place = open_place(source) if isinstance(source, str) else source
    try:
        return call("open_tree", place, b"", _CLONE | os.O_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE)
    finally:
        if isinstance(source, str):
            os.close(place)


def _set(mount: int, flags: int, recursive: bool = True) -> None:
    """Restrict a mount, and all that are below it or not; what is mounted on it is seen nowhere else."""
    attributes = flags.to_bytes(8, "little") + bytes(8) + _PRIVATE.to_bytes(8, "little") + bytes(8)
    call("mount_setattr", mount, b"", AT_EMPTY_PATH | (AT_RECURSIVE if recursive else 0), attributes, len(attributes))


def _show(mount: int, path: str) -> None:
    place = open_place(path)
    try:
        call("move_mount", mount, b"", place, b"", _FROM_FD | _ONTO_FD)
    except OSError as error:
        raise OSError(error.errno, f"mount on {path}: {os.strerror(error.errno or 0)}") from None
    finally:
        os.close(place)
        os.close(mount)
