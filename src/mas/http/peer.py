"""The other end of a connection: by which way it came in, and what the kernel knows of a process at a socket file."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import struct
from enum import StrEnum
from typing import NamedTuple

_CREDENTIALS = "3i"
# SO_PEERPIDFD: the process that connected, which no other can become, as a number may.
_PEER_PROCESS = 77
# What a sandbox of ours always changes, and how a process is asked for it (PIDFD_GET_…_NAMESPACE).
_NAMESPACES = {"mnt": 0xFF03, "pid": 0xFF05}
# From kernels that do not know the question: before 6.5 and before 6.11.
_NOT_KNOWN = {errno.ENOPROTOOPT, errno.ENOTTY, errno.EOPNOTSUPP}
# The variable that marks the processes of a session, which begins with the session's id.
_MARK = b"MAS_PANE="
_LARGEST_ENVIRONMENT = 1 << 20
# The fields of /proc/PID/stat after the program's name, and among them when it started.
_STARTED = 19


class Entrance(StrEnum):
    """A way into the server."""

    ADDRESS = "address"
    OWNER = "socket"
    """The socket file `api.sock`."""
    AGENTS = "agents' socket"
    """The socket file `agents.sock`: its requests are those of agents, whatever token they carry."""


class Arrival(NamedTuple):
    """How a connection came in."""

    entrance: Entrance = Entrance.ADDRESS
    is_elsewhere: bool = False
    """It is at the owner's socket file, and its process lives in other namespaces or could not be looked at."""
    process: int = 0
    """The number of the process at a socket file, 0 if unknown: for counting, not for trust."""
    session: str = ""
    """The session whose process is at the agents' socket file; empty if it is none of a session's."""


def arrived(there: socket.socket, entrance: Entrance) -> Arrival | None:
    """How the other end of `there` came in; None if it is a process of another user at a socket file, or unknown."""
    if entrance is Entrance.ADDRESS or not hasattr(socket, "SO_PEERCRED"):
        # On systems without it the modes of the socket file and its directory are the guard.
        return Arrival(entrance)
    try:
        return _at_file(there, entrance)
    except OSError:
        return None


def _at_file(there: socket.socket, entrance: Entrance) -> Arrival | None:
    with socket.socket(fileno=os.dup(there.fileno())) as peer:
        size = struct.calcsize(_CREDENTIALS)
        pid, uid, _ = struct.unpack(_CREDENTIALS, peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
        if uid not in (os.getuid(), 0):
            return None
        if entrance is Entrance.AGENTS:
            return Arrival(entrance, process=pid, session=_session_of(pid))
        return Arrival(entrance, not _is_beside_us(peer, pid), pid)


def _session_of(pid: int) -> str:
    """The session that a process is marked with: what joins a session's network with this server has the mark."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read(_LARGEST_ENVIRONMENT).split(b"\0")
    except OSError:
        return ""
    marks = (one.removeprefix(_MARK) for one in variables if one.startswith(_MARK))
    return next(marks, b"").partition(b"/")[0].decode("ascii", "replace")


def _is_beside_us(peer: socket.socket, pid: int) -> bool:
    """Whether the process that connected has our mount and pid namespaces; what cannot be found out is no yes."""
    try:
        return _has_our_namespaces(peer)
    except OSError as error:
        return error.errno in _NOT_KNOWN and is_beside_by_number(pid)


def _has_our_namespaces(peer: socket.socket) -> bool:
    process = peer.getsockopt(socket.SOL_SOCKET, _PEER_PROCESS)
    try:
        return all(_namespace(process, request) == _ours(name) for name, request in _NAMESPACES.items())
    finally:
        os.close(process)


def is_beside_by_number(pid: int) -> bool:
    """The same for old kernels, which have only the number: it must be that of one process from first to last look."""
    try:
        started = _started(pid)
        return all(_file(f"/proc/{pid}/ns/{name}") == _ours(name) for name in _NAMESPACES) and started == _started(pid)
    except (OSError, IndexError):
        return False


def _namespace(process: int, request: int) -> tuple[int, int]:
    namespace = fcntl.ioctl(process, request, 0)
    try:
        found = os.fstat(namespace)
    finally:
        os.close(namespace)
    return found.st_dev, found.st_ino


def _ours(name: str) -> tuple[int, int]:
    return _file(f"/proc/self/ns/{name}")


def _file(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _started(pid: int) -> bytes:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[_STARTED]
