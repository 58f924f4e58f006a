"""Connections: how many are allowed, how slow they may be, and by which way they come in."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

from mas.http.crowd import Crowd
from mas.http.errors import Refusal
from mas.http.guard.headers import HEADERS
from mas.http.limits import ServerLimits
from mas.http.peer import Entrance, arrived

# How long, and how much, a client may still send that was refused in the middle of a head.
_LINGER = 1.0
# A timer that ran out while this process stood still fires before anything is read: what came meanwhile, or was about
# to, gets this much longer.
_LAST_LOOK = 0.5
_MOST_DROPPED = 1 << 20


class HttpConnection(HttpToolsProtocol):
    """One client's connection. One that sends too slowly, sends too long a head, or does not read, is closed."""

    def __init__(
        self,
        config: Config,
        state: ServerState,
        app_state: dict[str, Any],
        crowd: Crowd,
        limits: ServerLimits,
        entrance: Entrance,
    ) -> None:
        # Every request of the connection has a copy of it as its state; so how it came in is found out once.
        super().__init__(config, state, {**app_state, "recognise": partial(crowd.recognise, self)})
        self._crowd = crowd
        self._limits = limits
        self._entrance = entrance
        self._slow: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        # Bytes since the last that were a body's: those of a head, or of what may follow a body.
        self._loose = 0
        self._in_head = self._is_head_too_large = self._is_refused = False
        self._head_size = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        arrival = arrived(transport.get_extra_info("socket"), self._entrance)
        # The socket files are always open to their users, no matter how many connections there are.
        is_full = self._entrance is Entrance.ADDRESS and len(self.connections) > self._limits.connections
        if arrival is None or not self._crowd.enter(self, arrival, is_full):
            transport.abort()
            return
        self.app_state["arrival"] = arrival
        self._await_rest()

    def turn_out(self) -> None:
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._crowd.leave(self)
        self._rest_is_there()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._loose += len(data)
        if self._has_refused():
            return
        super().data_received(data)
        if self._has_refused() or self.transport.get_protocol() is not self:
            return
        if self._loose > self._limits.head_size:
            self._refuse_head() if self._in_head else self.transport.abort()
        elif self.timeout_keep_alive_task is None and self._is_idle():
            # The rest of a request that was answered early, or an empty line: the next head is awaited from here on.
            self._await_rest()

    def on_message_begin(self) -> None:
        self._in_head = True
        self._head_size = 0
        self._await_rest()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        # Trailers after a body are never needed.
        if self._in_head:
            self._count_head(len(name) + len(value))
            super().on_header(name, value)

    def _count_head(self, size: int) -> None:
        """The parser stops at an error: what comes at once can be far longer than what is allowed."""
        self._head_size += size
        if self._head_size > self._limits.head_size or len(self.headers) >= self._limits.head_lines:
            self._is_head_too_large = True
            raise ValueError("too large a head")

    def on_headers_complete(self) -> None:
        self._in_head = False
        if not (self.parser.should_upgrade() and self._should_upgrade()):
            self._rest_is_there()
        if not self.url.startswith(b"/") and b"://" in self.url:
            self._take_host_from_url()
        super().on_headers_complete()
        if len(self.pipeline) > self._limits.waiting:
            # Each answer would make room for thousands more.
            self.transport.abort()

    def on_body(self, body: bytes) -> None:
        self._loose = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._loose = 0
        self._rest_is_there()
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        self._rest_is_there()
        # From here on it is a stream, which has shares of its own.
        self._crowd.leave(self)
        super().handle_websocket_upgrade()
        accepted = self.transport.get_protocol()
        if not (isinstance(accepted, WebSocketsSansIOProtocol) and accepted.handshake_initiated):
            # A head that one parser takes and the other does not.
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        if self._is_head_too_large:
            self._refuse_head()
        else:
            self._refuse(Refusal(400, "bad-request", msg))
            self.transport.close()

    def _has_refused(self) -> bool:
        """Whether the response was that a head is too large; what comes after it is dropped, up to a limit."""
        if self._is_refused and self._loose > _MOST_DROPPED:
            self.transport.abort()
        return self._is_refused

    def _refuse_head(self) -> None:
        """Say so, and read on for a moment without a look: a client that is still sending would not see why."""
        most, lines = self._limits.head_size, self._limits.head_lines
        words = f"The head of a request may have at most {most} bytes and {lines} header lines"
        self._refuse(Refusal(431, "head-too-large", words))
        self._rest_is_there()
        self._is_refused = True
        self.loop.call_later(_LINGER, self.transport.abort)
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def _refuse(self, refusal: Refusal) -> None:
        response = refusal.response("")
        headers = [*response.raw_headers, *HEADERS, (b"connection", b"close")]
        first = STATUS_LINE[refusal.status]
        lines = [first, *(b"%s: %s\r\n" % header for header in headers), b"\r\n", response.body]
        self.transport.write(b"".join(lines))

    def pause_writing(self) -> None:
        if self._unread is None:
            self._unread = self.loop.call_later(self._limits.unread_time, self.transport.abort)
        super().pause_writing()

    def resume_writing(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
        super().resume_writing()

    def _take_host_from_url(self) -> None:
        """The address in the request line goes before the header; both go through the guard as one."""
        _, _, rest = self.url.partition(b"://")
        self.headers[:] = [(name, value) for name, value in self.headers if name != b"host"]
        self.headers.append((b"host", rest.partition(b"/")[0]))

    def _is_idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete  # type: ignore[redundant-expr] # None at first

    def timeout_keep_alive_handler(self) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(_LAST_LOOK, super().timeout_keep_alive_handler)

    def _await_rest(self) -> None:
        if self._slow is None:
            self._slow = self.loop.call_later(self._limits.head_time, self._give_up)

    def _give_up(self) -> None:
        self._slow = self.loop.call_later(_LAST_LOOK, self.transport.abort)

    def _rest_is_there(self) -> None:
        if self._slow is not None:
            self._slow.cancel()
            self._slow = None
