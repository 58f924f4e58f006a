"""Namespaces of the agent's own: its processes, and its view of the file system (Linux 5.12)."""

from __future__ import annotations

import os

from mas.runtime.sandbox.system import AT_EMPTY_PATH, AT_RECURSIVE, call, libc, open_place
from mas.runtime.sandbox.view import DEVICES, is_below, steps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mas.model.launch import Rules

_NEWNS, _NEWIPC, _NEWUSER, _NEWPID = 0x20000, 0x8000000, 0x10000000, 0x20000000
_CLONE_PARENT = 0x8000
_SIGCHLD = 17
_EPERM = 1
_NOSUID, _NODEV, _NOEXEC, _READ_ONLY = 2, 4, 8, 1
_RECURSIVE_PRIVATE = 0x4000 | 0x40000
_CLONE = 1
_FORMAT, _DIRECTORY = 0o170000, 0o040000
_FROM_FD, _ONTO_FD = 4, 0x40
_LINKS = {"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"}


class NoProc(OSError):
    """A new /proc is refused, as where part of the old one is masked."""


def enter_namespaces(own_processes: bool) -> None:
    """Have new namespaces, as the same user as outside; that of processes is for those forked next."""
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
    _keep_ids(uid, gid)


def fork_beside() -> int:
    """Fork a child for the parent of this process instead."""
    return call("clone", _CLONE_PARENT | _SIGCHLD, 0, 0, 0, 0)


def _keep_ids(uid: int, gid: int) -> None:
    """Be the same user and group in the new user namespace as outside."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        fd = os.open(f"/proc/self/{name}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)


def build_view(rules: Rules, own_processes: bool) -> None:
    """Lay over the file system, for this namespace only, what the rules say; `NoProc` if a new /proc is refused."""
    _mount(None, "/", None, _RECURSIVE_PRIVATE)
    todo = steps(rules)
    # Taken before anything is covered or read-only.
    kept = {path: _copy(source) for kind, path, source in todo if kind != "hide"}
    devices = {name: _copy(f"/dev/{name}") for name in DEVICES}
    nothing = _copy("/dev/null")
    _set(nothing, _READ_ONLY | _NOSUID | _NODEV | _NOEXEC)
    root = open_place("/")
    _set(root, _READ_ONLY | _NOSUID | _NODEV)
    os.close(root)
    if own_processes:
        try:
            _mount("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC | _READ_ONLY)
        except OSError as error:
            raise NoProc(error.errno, error.strerror) from None
    _make_devices(devices)
    covers = ["/dev"]
    for kind, path, _ in todo:
        if kind == "hide" and os.path.isdir(path):
            _mount("tmpfs", path, "tmpfs", _NOSUID | _NODEV | _NOEXEC, "mode=555,size=1m")
            covers.append(path)
        elif kind == "hide":
            _show(_copy(nothing), path)
        else:
            _set(kept[path], _flags(kind, path))
            _make_place(path, like=kept[path])
            _show(kept[path], path)
    for path in covers:
        place = open_place(path)
        _set(place, _READ_ONLY, recursive=False)
        os.close(place)
    os.close(nothing)


def _flags(kind: str, path: str) -> int:
    device = 0 if is_below(path, "/dev") else _NODEV
    return _NOSUID | device | (_READ_ONLY if kind == "read" else 0)


def _make_devices(devices: dict[str, int]) -> None:
    """A /dev with what every program needs, terminals of its own and memory of its own to share."""
    _mount("tmpfs", "/dev", "tmpfs", _NOSUID | _NOEXEC, "mode=755,size=1m")
    for name, device in devices.items():
        os.close(os.open(f"/dev/{name}", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        _show(device, f"/dev/{name}")
    seal_devices()
    for name, target in _LINKS.items():
        os.symlink(target, f"/dev/{name}")
    os.symlink("pts/ptmx", "/dev/ptmx")
    os.mkdir("/dev/pts")
    _mount("devpts", "/dev/pts", "devpts", _NOSUID | _NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    os.mkdir("/dev/shm")  # noqa: S108 - the one of this namespace
    _mount("tmpfs", "/dev/shm", "tmpfs", _NOSUID | _NODEV, "mode=1777")  # noqa: S108


def seal_devices() -> None:
    """Prevent changes of a device's mode: a device can be written to even on a read-only mount."""
    for name in DEVICES:
        device = open_place(f"/dev/{name}")
        _set(device, _READ_ONLY | _NOSUID | _NOEXEC, recursive=False)
        os.close(device)


def _make_place(path: str, like: int) -> None:
    """What is put back below something hidden or replaced has no place there yet."""
    if os.path.lexists(path):
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.fstat(like).st_mode & _FORMAT == _DIRECTORY:
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
    attributes = flags.to_bytes(8, "little") + bytes(24)
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
