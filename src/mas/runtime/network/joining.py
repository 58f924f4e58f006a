"""Joins two connections: what comes from one goes to the other, until both sides have ended."""

from __future__ import annotations

import resource
import select
import socket
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Handler = Callable[[int], None]

_BLOCK = 1 << 16
# How much of one direction may wait for its reader before its writer has to wait, too.
_HELD = 1 << 18
IN, OUT = select.EPOLLIN, select.EPOLLOUT
# How long joined connections may be silent, and how long if one of them has ended.
_SILENT, _HALF_SILENT = 2 * 3600.0, 600.0


class Loop:
    """What to do when a descriptor is ready. One with no interest is not watched at all."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._watched: dict[int, tuple[int, Handler]] = {}

    def watch(self, fd: int, events: int, handler: Handler) -> None:
        """Call `handler` when one of `events` happens; with none, stop watching."""
        before = self._watched.get(fd, (0, handler))[0]
        if events and before:
            if events != before:
                self._epoll.modify(fd, events)
        elif events:
            self._epoll.register(fd, events)
        elif before:
            self._epoll.unregister(fd)
        if events:
            self._watched[fd] = events, handler
        else:
            self._watched.pop(fd, None)

    def wait(self, seconds: float) -> None:
        """Do what is ready, after at most that many seconds; a negative number is for ever."""
        for fd, events in self._epoll.poll(seconds, 64):
            # An earlier one of the same round may have closed it.
            if fd in self._watched:
                self._watched[fd][1](events)


class _Side:
    """One of two connections, and what waits to be written to it."""

    __slots__ = ("ended", "shut", "socket", "to_write")

    def __init__(self, one: socket.socket) -> None:
        self.socket = one
        self.to_write = bytearray()
        self.ended = False
        """Nothing more comes from it."""
        self.shut = False
        """Nothing more goes to it."""


class Join:
    """Two joined connections. `over` is called once both are closed."""

    def __init__(self, loop: Loop, inner: socket.socket, outer: socket.socket, over: Callable[[Join], None]) -> None:
        self._loop = loop
        self._sides = (_Side(inner), _Side(outer))
        self._over = over
        self._handlers = (self._inner_ready, self._outer_ready)
        self.used = time.monotonic()
        self.is_closed = False

    def start(self, to_outer: bytes = b"", to_inner: bytes = b"") -> None:
        """Begin, with what is known already in each direction."""
        inner, outer = self._sides
        inner.to_write += to_inner
        outer.to_write += to_outer
        for side in self._sides:
            side.socket.setblocking(False)
        self._go_on()

    @property
    def is_half(self) -> bool:
        """Whether one of the two has ended."""
        return any(side.ended for side in self._sides)

    def close(self) -> None:
        """Close both, also in the middle."""
        if self.is_closed:
            return
        self.is_closed = True
        for side in self._sides:
            self._loop.watch(side.socket.fileno(), 0, _nothing)
            side.socket.close()
        self._over(self)

    def _inner_ready(self, events: int) -> None:
        self._ready(*self._sides, events)

    def _outer_ready(self, events: int) -> None:
        self._ready(*self._sides[::-1], events)

    def _ready(self, side: _Side, other: _Side, events: int) -> None:
        self.used = time.monotonic()
        try:
            if events & OUT:
                self._write(side)
            if events & ~OUT and not side.ended and len(other.to_write) < _HELD:
                self._read(side, other)
        except BlockingIOError:
            pass
        except OSError:
            self.close()
            return
        self._go_on()

    def _read(self, side: _Side, other: _Side) -> None:
        data = side.socket.recv(_BLOCK)
        if not data:
            side.ended = True
        elif other.to_write:
            other.to_write += data
        else:
            # As a rule it can be written at once, and is never kept.
            sent = _sent(other.socket, data)
            other.to_write += memoryview(data)[sent:]

    def _write(self, side: _Side) -> None:
        if side.to_write:
            del side.to_write[: _sent(side.socket, side.to_write)]

    def _go_on(self) -> None:
        """Pass on what ended, and watch for what can happen next."""
        if self.is_closed:
            return
        for side, other in (self._sides, self._sides[::-1]):
            if other.ended and not side.to_write and not side.shut:
                side.shut = True
                try:
                    side.socket.shutdown(socket.SHUT_WR)
                except OSError:
                    self.close()
                    return
        if all(side.ended and side.shut for side in self._sides):
            self.close()
            return
        for side, other in (self._sides, self._sides[::-1]):
            events = 0 if side.ended or len(other.to_write) >= _HELD else IN
            events |= OUT if side.to_write else 0
            self._loop.watch(side.socket.fileno(), events, self._handlers[side is self._sides[1]])


class Joins:
    """All joined connections of a process."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._open: set[Join] = set()

    def __len__(self) -> int:
        return len(self._open)

    def add(
        self,
        inner: socket.socket,
        outer: socket.socket,
        over: Callable[[], None],
        to_outer: bytes = b"",
        to_inner: bytes = b"",
    ) -> None:
        """Join two connections, with what is known already; `over` is called once both are closed."""

        def closed(join: Join) -> None:
            self._open.discard(join)
            over()

        join = Join(self._loop, inner, outer, closed)
        self._open.add(join)
        join.start(to_outer, to_inner)

    def close_silent(self, now: float) -> None:
        """Close those through which nothing went for long."""
        for join in list(self._open):
            if now - join.used > (_HALF_SILENT if join.is_half else _SILENT):
                join.close()


def allow_descriptors(wanted: int) -> int:
    """Have as many as are wanted, if that is allowed; returns how many there are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return max(soft, most)


def _sent(to: socket.socket, data: bytes | bytearray) -> int:
    try:
        return to.send(data)
    except BlockingIOError:
        return 0


def _nothing(_: int) -> None:
    """For what is no longer watched."""


def received(one: socket.socket, most: int) -> bytes | None:
    """What has come; None if nothing has, empty if nothing more will."""
    try:
        return one.recv(most)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def reset(one: socket.socket) -> None:
    """Close a connection so that the other side sees it was refused."""
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    except OSError:
        pass
    one.close()
