"""Has the egress process of a running session read its rules again: MAS's side of that."""

from __future__ import annotations

import _socket
import os
import time

from mas.runtime.descriptors import receive
from mas.runtime.network.hold import APPLY, DIRECTORY, SOCKET

_PATIENCE = 10.0
# A process that was killed is started again by a launcher in less than that.
_AGAIN, _LOOK_AGAIN = 2.0, 0.05
_EARLIER = "its network was started by an earlier version of MAS"


def apply_rules(directory: str) -> str:
    """Returns why not all of the rules in `directory` apply now; empty if they do."""
    deadline = time.monotonic() + _AGAIN
    while True:
        try:
            return _ask(directory)
        except (FileNotFoundError, ConnectionError) as error:
            if time.monotonic() > deadline:
                return f"its network does not respond: {error.strerror or error}"
        except OSError as error:
            return f"its network does not respond: {error.strerror or error}"
        time.sleep(_LOOK_AGAIN)


def _ask(directory: str) -> str:
    opened = os.open(directory, DIRECTORY)
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET | _socket.SOCK_CLOEXEC)
    try:
        connection.settimeout(_PATIENCE)
        # Short enough for a socket, however deep the workspace is.
        connection.connect(f"/proc/self/fd/{opened}/{SOCKET}")
        connection.send(APPLY)
        while True:
            words, found = receive(connection)
            # It takes any caller for a launcher, which keeps the sockets.
            for fd in found:
                os.close(fd)
            if words.startswith(APPLY):
                return words.removeprefix(APPLY).decode("utf-8", "replace").strip()
            if not words:
                return _EARLIER
    finally:
        connection.close()
        os.close(opened)
