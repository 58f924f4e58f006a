"""Which user's program is at the other end of a connection on loopback."""

from __future__ import annotations

import socket
import sys

_TABLES = {socket.AF_INET: "/proc/net/tcp", socket.AF_INET6: "/proc/net/tcp6"}
_LISTENING = "0A"
NO_INODE = "0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def peer_uid(one: socket.socket) -> int | None:
    """The user of the program that connected here; None if it has gone already."""
    wanted = f"{_written(one.getpeername())} {_written(one.getsockname())}"
    for words in rows(_TABLES[one.family]):
        # What no process has open any more is shown as root's.
        if f"{words[1]} {words[2]}" == wanted and words[9] != NO_INODE:
            return int(words[7])
    return None


def listeners(tables: tuple[str, str]) -> Iterator[tuple[str, int, str]]:
    """Address, port and inode of each socket that listens, by two such tables, the one of the newer kind second."""
    for family, path in zip((socket.AF_INET, socket.AF_INET6), tables, strict=True):
        for words in rows(path):
            if words[3] == _LISTENING:
                address, _, port = words[1].partition(":")
                yield socket.inet_ntop(family, _swapped(bytes.fromhex(address))), int(port, 16), words[9]


def rows(path: str) -> Iterator[list[str]]:
    """The lines of a table of sockets."""
    try:
        with open(path, encoding="ascii") as file:
            next(file, None)
            for line in file:
                words = line.split()
                if len(words) > 9:
                    yield words
    except OSError:
        # Without the newer kind of addresses there is no table of them; and a process may end on the way.
        return


def _written(place: tuple[str, int]) -> str:
    """An address and a port as the kernel writes them."""
    family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
    return f"{_swapped(socket.inet_pton(family, place[0])).hex().upper()}:{place[1]:04X}"


def _swapped(packed: bytes) -> bytes:
    """The kernel writes an address as numbers of four bytes each, in the order of this machine."""
    if sys.byteorder == "big":
        return packed
    return b"".join(packed[at : at + 4][::-1] for at in range(0, len(packed), 4))
