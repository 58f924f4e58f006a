"""Descriptors that one process opens and another uses.

Runs in launchers, which start once per agent, so this imports nothing but C modules.
"""

from __future__ import annotations

import _socket
import os

from mas.runtime.sandbox.system import die_with_parent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_EPERM, _ESRCH = 1, 3
MOST_DESCRIPTORS = 250
_LONGEST_MESSAGE = 1 << 12
_CLOEXEC_RECEIVED = 0x40000000
# Where in /proc/PID/stat, after the name, the time is at which the process started.
_STARTED = 19


def send(to: _socket.socket, words: bytes, descriptors: list[int]) -> None:
    """Hand over descriptors with a message."""
    data = b"".join(fd.to_bytes(4, "little") for fd in descriptors)
    to.sendmsg([words], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, data)])


def receive(from_: _socket.socket) -> tuple[bytes, list[int]]:
    """A message and the descriptors that came with it; both empty at the end."""
    room = _socket.CMSG_SPACE(MOST_DESCRIPTORS * 4)
    words, ancillary, _, _ = from_.recvmsg(_LONGEST_MESSAGE, room, _CLOEXEC_RECEIVED)
    found: list[int] = []
    for level, kind, data in ancillary:
        if (level, kind) == (_socket.SOL_SOCKET, _socket.SCM_RIGHTS):
            found += [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data) - 3, 4)]
    return words, found


def open_in_child(work: Callable[[], list[int]]) -> list[int]:
    """Descriptors that `work` opens in a child process, which may go where this one must not; `OSError` if it fails."""
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    child = os.fork()
    if child == 0:
        try:
            die_with_parent()
            send(theirs, b"ok", work())
        except OSError as error:
            theirs.send((error.strerror or str(error)).encode("utf-8", "replace"))
        finally:
            os._exit(0)
    theirs.close()
    try:
        words, found = receive(ours)
    finally:
        ours.close()
        os.waitpid(child, 0)
    if not found:
        raise OSError(_EPERM, words.decode("utf-8", "replace") or "its process ended on the way")
    return found


def note(descriptors: list[int]) -> bytes:
    """A text by which other processes of the same user find descriptors of this process, for as long as it runs."""
    pid = os.getpid()
    inodes = [os.fstat(fd).st_ino for fd in descriptors]
    return " ".join(map(str, (pid, _start_of(pid), *descriptors, *inodes))).encode()


def open_noted(words: bytes) -> list[int]:
    """The descriptors of such a text; `ProcessLookupError` if their process has exited, or it is no such text."""
    opened: list[int] = []
    try:
        pid, start, *rest = map(int, words.split())
        half = len(rest) // 2
        opened += [os.open(f"/proc/{pid}/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC) for fd in rest[:half]]
        # Neither another process with that number, nor another use of the descriptor.
        if not opened or [os.fstat(fd).st_ino for fd in opened] != rest[half:] or _start_of(pid) != start:
            raise OSError(_ESRCH, os.strerror(_ESRCH))
    except (OSError, ValueError) as error:
        for fd in opened:
            os.close(fd)
        raise ProcessLookupError(_ESRCH, f"what another process had open is gone: {error}") from None
    return opened


def _start_of(pid: int) -> int:
    fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return int(os.read(fd, 1 << 12).rpartition(b")")[2].split()[_STARTED])
    finally:
        os.close(fd)
