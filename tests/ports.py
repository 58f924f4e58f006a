"""Ports of this machine for programs that tests start: free, and given to no other program meanwhile."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


def hold_port() -> socket.socket:
    """A socket that keeps a port of 127.0.0.1 until it is closed.

    It does not listen: a program that asks for this very port with SO_REUSEADDR, as servers do, can have it. The kernel
    gives it to nobody who asks for any port.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held


@contextmanager
def free_port() -> Iterator[int]:
    """Such a port."""
    with hold_port() as held:
        yield int(held.getsockname()[1])
