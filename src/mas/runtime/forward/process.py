"""The process of one forward: listens on loopback, and joins each connection with a port inside a session's network.

It runs until its standard input ends, which is when the process that started it exits; until it is killed with the
session, whose mark it has; or until the session's network has gone.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import sys
import time

from mas.runtime.forward.inside import Inside
from mas.runtime.forward.peers import peer_uid
from mas.runtime.forward.request import Doorkeeper, Refusal
from mas.runtime.network.dialling import Dialling, tcp
from mas.runtime.network.hold import DIRECTORY, SOCKET, egress_of, space_at
from mas.runtime.network.joining import IN, Joins, Loop, allow_descriptors, reset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_LOOPBACK, _LOOPBACK6 = "127.0.0.1", "::1"
_NO_IPV6 = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
_BACKLOG = 256
_AT_ONCE = 64
_BLOCK = 1 << 16
_MOST = 512
# Two ends of each connection, and what the process itself has.
_FILES = 2 * _MOST + 64
# How long a client may take to say enough to be let in, or to be told that no program listens inside.
_PATIENCE = 10.0
_SHORT_PATIENCE = 1.0
_LOOK, _LOOK_AT_SILENT = 0.1, 30.0
# How long the session's egress process may be missing: it is started again if it was killed, and takes its socket
# file away when it exits with the session.
_WITHOUT_EGRESS, _WITHOUT_SOCKET = 5.0, 0.3
_OTHER_PORTS = 20


def main(plan: str) -> int:
    """Forward as the plan, a JSON object, says; prints which port it is, or why not, as a line of JSON."""
    words = json.loads(plan)
    allow_descriptors(_FILES)
    try:
        network = _Network(words["directory"])
        inside = Inside(network.space)
        network.space.close()
        listening = _listen(words["local"])
    except OSError as error:
        print(json.dumps({"errno": error.errno, "problem": error.strerror or str(error)}), flush=True)  # noqa: T201 - for the process that started it
        return 1
    doorkeeper = Doorkeeper(words["name"], words["local"] > 0)
    forward = _Forward(listening, inside, doorkeeper, words["port"], None if words["any_user"] else os.getuid())
    print(json.dumps({"local": listening[0].getsockname()[1]}), flush=True)  # noqa: T201
    forward.run(network)
    return 0


def _listen(local: int) -> list[socket.socket]:
    """Listen at a port of both loopback addresses, or at any port that is free at both."""
    for tries_left in reversed(range(_OTHER_PORTS)):
        first = socket.create_server((_LOOPBACK, local), backlog=_BACKLOG)
        try:
            # `localhost` means this one first: another program there would get what is meant for us.
            second = socket.create_server(
                (_LOOPBACK6, first.getsockname()[1]), family=socket.AF_INET6, backlog=_BACKLOG
            )
            return [first, second]
        except OSError as error:
            if error.errno in _NO_IPV6:
                return [first]
            first.close()
            if local or not tries_left:
                raise
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))


class _Network:
    """The session's network, as long as its egress process, or the next one, runs."""

    def __init__(self, directory: str) -> None:
        self._directory = os.open(directory, DIRECTORY)
        self._egress = self._open_egress()
        self.space = space_at(self._directory)
        self._inode = os.fstat(self.space.net).st_ino
        self._missing_since = 0.0

    def _open_egress(self) -> int:
        try:
            return os.pidfd_open(egress_of(self._directory)[0])
        except ProcessLookupError:
            raise OSError(errno.ESRCH, "the session's network has gone") from None

    @property
    def fd(self) -> int:
        """Readable once the egress process has exited."""
        return self._egress

    def look(self, now: float) -> bool:
        """Find the egress process that took the place of one that exited; False if there is none for too long."""
        self._missing_since = self._missing_since or now
        try:
            found = space_at(self._directory)
            is_ours = os.fstat(found.net).st_ino == self._inode
            found.close()
            egress = self._open_egress() if is_ours else -1
        except OSError:
            is_killed = os.path.exists(f"/proc/self/fd/{self._directory}/{SOCKET}")
            return now - self._missing_since < (_WITHOUT_EGRESS if is_killed else _WITHOUT_SOCKET)
        if is_ours:
            os.close(self._egress)
            self._egress, self._missing_since = egress, 0.0
        # Another network is that of another run of the session.
        return is_ours

    @property
    def is_missing(self) -> bool:
        return self._missing_since > 0


class _Forward:
    """Accepts connections and joins them."""

    def __init__(
        self, listening: list[socket.socket], inside: Inside, doorkeeper: Doorkeeper, port: int, uid: int | None
    ) -> None:
        """With a `uid`, only programs of that user are let in."""
        self.loop = Loop()
        self.joins = Joins(self.loop)
        self.inside = inside
        self.doorkeeper = doorkeeper
        self.port = port
        self._uid = uid
        self.visitors: set[_Visitor] = set()
        self._is_over = False
        for one in listening:
            one.setblocking(False)
            self.loop.watch(one.fileno(), IN, lambda _, one=one: self._accept(one))  # type: ignore[misc]

    def run(self, network: _Network) -> None:
        """Go on until the end."""
        self.loop.watch(sys.stdin.fileno(), IN, lambda _: self._end())
        # It says nothing unasked: it has ended.
        self.loop.watch(self.inside.fd, IN, lambda _: self._end())
        self.loop.watch(network.fd, IN, lambda _: self._look(network))
        looked = time.monotonic()
        while not self._is_over:
            self.loop.wait(self._patience(network))
            now = time.monotonic()
            if network.is_missing:
                self._look(network)
            for visitor in [one for one in self.visitors if one.deadline < now]:
                visitor.time_is_up()
            if now - looked > _LOOK_AT_SILENT:
                looked = now
                self.joins.close_silent(now)

    def _patience(self, network: _Network) -> float:
        if network.is_missing or any(visitor.deadline < float("inf") for visitor in self.visitors):
            return _LOOK
        return _LOOK_AT_SILENT if self.joins else -1.0

    def _end(self) -> None:
        self._is_over = True

    def _look(self, network: _Network) -> None:
        self.loop.watch(network.fd, 0, _nothing)
        if not network.look(time.monotonic()):
            self._end()
        elif not network.is_missing:
            self.loop.watch(network.fd, IN, lambda _: self._look(network))

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                outer, _address = listening.accept()
                is_stranger = self._uid is not None and peer_uid(outer) != self._uid
            except OSError:
                return
            if len(self.visitors) + len(self.joins) >= _MOST:
                reset(outer)
                continue
            outer.setblocking(False)
            outer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _Visitor(self, outer, is_stranger)


class _Visitor:
    """A connection that has not been joined yet: its first bytes are looked at while the way inside is opened.

    A program inside may speak first: then it does not speak HTTP, and no more is asked of the client.
    """

    def __init__(self, forward: _Forward, outer: socket.socket, is_stranger: bool) -> None:
        self._forward = forward
        self._outer = outer
        self._inner: socket.socket | None = None
        self._is_stranger = is_stranger
        self._read = b""
        self._is_http: bool | None = None
        self._is_let_in = False
        self._is_refused = False
        self._why_not = ""
        addresses = [tcp(_LOOPBACK, forward.port), tcp(_LOOPBACK6, forward.port)]
        self._dialling = Dialling(forward.loop, addresses, self._connected, forward.inside.socket)
        self.deadline = time.monotonic() + (_SHORT_PATIENCE if is_stranger else _PATIENCE)
        forward.visitors.add(self)
        forward.loop.watch(outer.fileno(), IN, lambda _: self._hear())
        if not is_stranger:
            self._dial(self._dialling.start)

    def time_is_up(self) -> None:
        """Something takes too long."""
        is_dialling = not (self._is_stranger or self._dialling.is_over)
        if is_dialling:
            self.deadline = time.monotonic() + _PATIENCE
            self._dial(self._dialling.give_up)
        elif self._inner is not None and self._is_http is None:
            self._join()
        else:
            self._close()

    def _dial(self, step: Callable[[], None]) -> None:
        try:
            step()
        except OSError as error:
            # The child inside has ended: so will this.
            self._connected(None, str(error))

    def _connected(self, inner: socket.socket | None, why: str) -> None:
        now = time.monotonic()
        if inner is None:
            self._why_not = why
            self.deadline = now + _SHORT_PATIENCE
        else:
            self._inner = inner
            self.deadline = float("inf")
            self._forward.loop.watch(inner.fileno(), IN, lambda _: self._join())
        self._decide()

    def _hear(self) -> None:
        try:
            data = self._outer.recv(_BLOCK)
        except BlockingIOError:
            return
        except OSError:
            self._close()
            return
        if self._is_refused:
            # Unread, it would turn the end into a reset, which takes the refusal away.
            if not data:
                self._close()
            return
        self._read += data
        if not data:
            # It will not say more, which no browser does before its answer.
            self._is_let_in = True
            self._forward.loop.watch(self._outer.fileno(), 0, _nothing)
        self._decide()

    def _decide(self) -> None:
        """Let it in or not, as far as that is known by now."""
        try:
            if self._read and not self._is_let_in:
                self._is_http = self._forward.doorkeeper.is_http(self._read)
                is_checked = self._is_http and self._forward.doorkeeper.check(self._read)
                self._is_let_in = self._is_http is False or bool(is_checked)
                # Browsers connect before they have anything to ask for, but send no line in pieces.
                patience = _SHORT_PATIENCE if self._is_http is None else _PATIENCE
                self.deadline = min(self.deadline, time.monotonic() + patience)
            if self._is_let_in and (self._is_stranger or self._why_not):
                self._turn_away()
            elif self._is_let_in and self._inner is not None:
                self._join()
        except Refusal as refusal:
            self._refuse(refusal)

    def _turn_away(self) -> None:
        if not self._is_http:
            self._close()
        elif self._is_stranger:
            raise Refusal("403 Forbidden", "this forward is for programs of the user who opened it")
        else:
            words = f"no program listens at port {self._forward.port} of the session ({self._why_not})"
            raise Refusal("502 Bad Gateway", words)

    def _refuse(self, refusal: Refusal) -> None:
        self._is_refused = True
        self.deadline = time.monotonic() + _SHORT_PATIENCE
        self._drop_inner()
        try:
            self._outer.send(refusal.answer)
            self._outer.shutdown(socket.SHUT_WR)
        except OSError:
            self._close()

    def _join(self) -> None:
        assert self._inner is not None
        self._forward.visitors.discard(self)
        for one in (self._inner, self._outer):
            self._forward.loop.watch(one.fileno(), 0, _nothing)
        self._forward.joins.add(self._inner, self._outer, _over, to_inner=self._read)

    def _close(self) -> None:
        self._forward.visitors.discard(self)
        self._drop_inner()
        self._forward.loop.watch(self._outer.fileno(), 0, _nothing)
        reset(self._outer)

    def _drop_inner(self) -> None:
        self._dialling.cancel()
        if self._inner is not None:
            self._forward.loop.watch(self._inner.fileno(), 0, _nothing)
            self._inner.close()
            self._inner = None


def _over() -> None:
    """A joined connection is counted by the joins alone."""


def _nothing(_: int) -> None:
    """For what is no longer watched."""
