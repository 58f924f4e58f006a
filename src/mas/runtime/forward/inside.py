"""Sockets of a session's network, for a process outside it.

A socket belongs to the namespace it was created in. So one child joins the session's network and hands out sockets
that are not connected yet; the process outside connects them, and waits for none of them.
"""

from __future__ import annotations

import os
import socket

from mas.runtime.descriptors import receive, send
from mas.runtime.network.space import Space
from mas.runtime.sandbox.system import die_with_parent

_FAMILIES = {b"4": socket.AF_INET, b"6": socket.AF_INET6}
_WORDS = {family: word for word, family in _FAMILIES.items()}
_READY = b"ok"
# It only ever makes a socket: one that takes longer is stuck.
_PATIENCE = 5.0


class Inside:
    """The child, which exits with this process."""

    def __init__(self, space: Space) -> None:
        """`OSError` if the namespace cannot be joined. No thread may run in this process."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if os.fork() == 0:
            ours.close()
            _serve(space, theirs)
        theirs.close()
        ours.settimeout(_PATIENCE)
        self._child = ours
        words = receive(ours)[0]
        if words != _READY:
            raise OSError(1, words.decode("utf-8", "replace") or "its process ended on the way")

    @property
    def fd(self) -> int:
        """Readable once the child has ended."""
        return self._child.fileno()

    def socket(self, family: int) -> socket.socket:
        """A new socket inside."""
        self._child.send(_WORDS[socket.AddressFamily(family)])
        words, found = receive(self._child)
        if not found:
            raise OSError(1, words.decode("utf-8", "replace") or "the process inside has ended")
        return socket.socket(fileno=found[0])


def _serve(space: Space, outside: socket.socket) -> None:
    """Join the namespace and make sockets there, until the other side ends. Does not return."""
    try:
        die_with_parent()
        space.join()
        outside.send(_READY)
        while asked := outside.recv(1):
            try:
                with socket.socket(_FAMILIES[asked], socket.SOCK_STREAM) as made:
                    send(outside, b"+", [made.fileno()])
            except OSError as error:
                outside.send(str(error.strerror or error).encode())
    except OSError as error:
        outside.send(str(error.strerror or error).encode())
    finally:
        os._exit(0)
