"""Queries for names that come over TCP, as some programs have it: each with its length before it."""

from __future__ import annotations

import socket
import time

from mas.runtime.network.joining import IN, Loop, received
from mas.runtime.network.names import LONGEST_QUERY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_PATIENCE = 10.0
_LENGTH = 2


class NameStream:
    """A connection by which a program asks for names, one after the other. `over` is called when it is closed."""

    def __init__(
        self, loop: Loop, inner: socket.socket, asked: Callable[[bytes, NameStream], None], over: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._inner = inner
        self._asked = asked
        self._over = over
        self._said = b""
        self.deadline = time.monotonic() + _PATIENCE
        self.is_over = False
        loop.watch(inner.fileno(), IN, self._ready)

    def reply(self, packet: bytes) -> None:
        """Answer; what cannot be sent at once is not waited for."""
        if self.is_over:
            return
        try:
            self._inner.send(len(packet).to_bytes(_LENGTH, "big") + packet)
        except OSError:
            self.give_up()

    def give_up(self) -> None:
        """Close it: it ended, or asks nothing."""
        self.is_over = True
        self._loop.watch(self._inner.fileno(), 0, self._ready)
        self._inner.close()
        self._over()

    def _ready(self, _: int) -> None:
        data = received(self._inner, 1 << 12)
        if data is None:
            return
        self._said += data
        while len(self._said) >= _LENGTH and not self.is_over:
            size = int.from_bytes(self._said[:_LENGTH], "big")
            if size > LONGEST_QUERY:
                data = b""
                break
            if len(self._said) < _LENGTH + size:
                break
            packet, self._said = self._said[_LENGTH : _LENGTH + size], self._said[_LENGTH + size :]
            self.deadline = time.monotonic() + _PATIENCE
            self._asked(packet, self)
        if not data and not self.is_over:
            self.give_up()
