"""Connects outside: to one of several addresses that were checked, and to no name."""

from __future__ import annotations

import errno
import os
import socket
import time

from mas.runtime.network.joining import OUT, Loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# How long one address may take, if there is another one to try, and all of them together.
_PATIENCE, _PATIENCE_WITH_OTHERS, _PATIENCE_WITH_ALL = 10.0, 2.0, 30.0
_KEEP_ALIVE = 120


class Dialling:
    """Tries one address after the other, and calls `then` with the connection, or None and why not."""

    def __init__(
        self,
        loop: Loop,
        addresses: list[tuple[int, object]],
        then: Callable[[socket.socket | None, str], None],
        make: Callable[[int], socket.socket] | None = None,
    ) -> None:
        """`make` makes the socket of a family, in a namespace where the addresses mean something; default: here."""
        self._loop = loop
        self._make = make or _make_here
        self._left = addresses
        self._then = then
        self._socket: socket.socket | None = None
        self._why = "it has no address"
        self._ends = time.monotonic() + _PATIENCE_WITH_ALL
        self.deadline = 0.0
        self.is_over = False

    def start(self) -> None:
        """Try the next address."""
        while self._left and time.monotonic() < self._ends:
            family, address = self._left.pop(0)
            one = self._make(family)
            one.setblocking(False)
            code = one.connect_ex(address)  # type: ignore[arg-type] # as the family has it
            if code in (0, errno.EINPROGRESS):
                self._socket = one
                self.deadline = time.monotonic() + (_PATIENCE_WITH_OTHERS if self._left else _PATIENCE)
                self._loop.watch(one.fileno(), OUT, self._ready)
                return
            one.close()
            self._why = os.strerror(code).lower()
        self._finish(None)

    def give_up(self) -> None:
        """This address takes too long."""
        self._drop("no answer")
        self.start()

    def cancel(self) -> None:
        """Stop, and call nothing. Cancelling what is over is fine."""
        self._drop("")
        self.is_over = True

    def _ready(self, _: int) -> None:
        assert self._socket is not None
        code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._drop(os.strerror(code).lower())
            self.start()
            return
        one, self._socket = self._socket, None
        self._loop.watch(one.fileno(), 0, self._ready)
        if one.family != socket.AF_UNIX:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEP_ALIVE)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._finish(one)

    def _drop(self, why: str) -> None:
        self._why = why
        if self._socket:
            self._loop.watch(self._socket.fileno(), 0, self._ready)
            self._socket.close()
            self._socket = None

    def _finish(self, one: socket.socket | None) -> None:
        self.is_over = True
        self._then(one, "" if one else self._why)


def _make_here(family: int) -> socket.socket:
    return socket.socket(family, socket.SOCK_STREAM)


def tcp(address: str, port: int) -> tuple[int, object]:
    """An address as `Dialling` takes it."""
    return (socket.AF_INET6 if ":" in address else socket.AF_INET), (address, port)
