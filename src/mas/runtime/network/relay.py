"""Passes queries for names on to the machine's own name servers, where agents reach addresses themselves."""

from __future__ import annotations

import socket
import time

from mas.runtime.network.dialling import tcp
from mas.runtime.network.joining import IN, Loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_RESOLV_CONF = "/etc/resolv.conf"
_MOST_SERVERS = 3
_PORT = 53
_PATIENCE = 3.0
_LONGEST = 1 << 16


def name_servers() -> list[tuple[int, object]]:
    """Where the machine asks for names."""
    found = []
    try:
        with open(_RESOLV_CONF, encoding="utf-8", errors="replace") as file:
            found = [words[1] for words in map(str.split, file) if words[:1] == ["nameserver"] and len(words) > 1]
    except OSError:
        pass
    return [tcp(address, _PORT) for address in (found or ["127.0.0.1"])[:_MOST_SERVERS]]


class RelayedQuery:
    """A query under way; the first answer is sent back. A server that says nothing is followed by the next one."""

    def __init__(
        self, loop: Loop, servers: list[tuple[int, object]], packet: bytes, send_back: Callable[[bytes], None]
    ) -> None:
        self._loop = loop
        self._left = list(servers)
        self._packet = packet
        self._send_back = send_back
        self._socket: socket.socket | None = None
        self.deadline = 0.0
        self.is_over = False
        self.give_up()

    def give_up(self) -> None:
        """Ask the next server; if there is none, it has not been answered."""
        self._close()
        while self._left:
            family, address = self._left.pop(0)
            one = socket.socket(family, socket.SOCK_DGRAM)
            one.setblocking(False)
            try:
                one.connect(address)  # type: ignore[arg-type] # as the family has it
                one.send(self._packet)
            except OSError:
                one.close()
                continue
            self._socket = one
            self.deadline = time.monotonic() + _PATIENCE
            self._loop.watch(one.fileno(), IN, self._ready)
            return
        self.is_over = True

    def _ready(self, _: int) -> None:
        assert self._socket is not None
        try:
            answer = self._socket.recv(_LONGEST)
        except BlockingIOError:
            return
        except OSError:
            self.give_up()
            return
        if answer[:2] == self._packet[:2]:
            self._close()
            self.is_over = True
            self._send_back(answer)

    def _close(self) -> None:
        if self._socket:
            self._loop.watch(self._socket.fileno(), 0, self._ready)
            self._socket.close()
            self._socket = None
