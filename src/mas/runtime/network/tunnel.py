"""Asks a proxy outside for a connection to a place (CONNECT), and waits for what it says."""

from __future__ import annotations

import socket
import time

from mas.runtime.network.joining import IN, Loop, received

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_PATIENCE = 30.0
_LONGEST_HEAD = 1 << 14
_HEAD_ENDS = b"\r\n\r\n"


class Tunnel:
    """A proxy that was asked. `then` is called with the first bytes from the place, or with None and why not."""

    def __init__(self, loop: Loop, one: socket.socket, then: Callable[[bytes | None, str], None]) -> None:
        self._loop = loop
        self._socket = one
        self._then = then
        self._said = b""
        self.deadline = time.monotonic() + _PATIENCE
        self.is_over = False

    def ask(self, name: str, port: int, authorization: str) -> None:
        """Send the request."""
        place = f"{name}:{port}"
        signs = f"Proxy-Authorization: {authorization}\r\n" if authorization else ""
        request = f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{signs}\r\n".encode("ascii")
        try:
            # The buffer of a new connection has room for it.
            is_sent = self._socket.send(request) == len(request)
        except OSError:
            is_sent = False
        if is_sent:
            self._loop.watch(self._socket.fileno(), IN, self._ready)
        else:
            self._finish(None, "the proxy closed the connection")

    def give_up(self) -> None:
        """It takes too long."""
        self._finish(None, "the proxy did not answer")

    def _ready(self, _: int) -> None:
        data = received(self._socket, _LONGEST_HEAD)
        if data is None:
            return
        self._said += data
        head, end, rest = self._said.partition(_HEAD_ENDS)
        if not data or (not end and len(self._said) > _LONGEST_HEAD):
            self._finish(None, "the proxy closed the connection" if not data else "the proxy said too much")
        elif end:
            words = head.split(None, 2)
            status = words[1].decode("ascii", "replace") if head.startswith(b"HTTP/1.") and len(words) > 1 else ""
            is_open = len(status) == 3 and status.startswith("2")
            self._finish(rest if is_open else None, _why(status))

    def _finish(self, early: bytes | None, why: str) -> None:
        self.is_over = True
        self._loop.watch(self._socket.fileno(), 0, self._ready)
        self._then(early, why if early is None else "")


def _why(status: str) -> str:
    if status == "407":
        return "the proxy wants a user name and a password (407)"
    return f"the proxy refused it ({status})" if status.isdigit() else "the proxy is none"
