"""What the egress process of a session is sent: names to look up, first bytes of connections, words of launchers."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable

from mas.runtime.network.egress import Egress
from mas.runtime.network.joining import IN
from tests.fuzz.ground import PARSERS, Ground
from tests.fuzz.streams import pieces

_HEAD = b"\x12\x34\x01\0\0\1\0\0\0\0\0\0"
_QUERY = _HEAD + b"\x03web\x07example\x03com\0\0\1\0\1"
_STREAMED = len(_QUERY).to_bytes(2, "big") + _QUERY
# Enough for everything that bytes can set off.
_ROUNDS = 50


class Door:
    """An egress process without a network: all names are refused, so nothing may ever be connected to."""

    def __init__(self, ground: Ground) -> None:
        self.log = os.path.join(ground.session.logs, "network.jsonl")
        if os.path.exists(self.log):
            os.unlink(self.log)
        door, self._other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        spaces = [os.open(os.devnull, os.O_RDONLY) for _ in range(2)]
        config = {"mode": "list", "allow": [], "private": [], "fixed": {}, "log": self.log, "door": "/nowhere"}
        self.egress = Egress(ground.session.private, config, [door.detach(), *spaces])
        self.egress.outside.dial = self._never  # type: ignore[method-assign, assignment]
        self.egress.outside.resolver.find = self._never  # type: ignore[method-assign, assignment]
        self._spaces = spaces

    @staticmethod
    def _never(*_: object) -> None:
        raise AssertionError("something was looked up or connected to")

    def feed(self, enter: Callable[[socket.socket], None], data: bytes, kind: int = socket.SOCK_STREAM) -> bytes:
        """Send the bytes in pieces to what `enter` makes of a connection, and close it; returns what came back."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
        ours.setblocking(False)
        theirs.setblocking(False)
        enter(theirs)
        back = b""
        with ours:
            for piece in pieces(data):
                try:
                    ours.send(piece)
                    self.egress.loop.wait(0)
                    back += ours.recv(1 << 16)
                except BlockingIOError:
                    continue
                except OSError:
                    break
        for _ in range(_ROUNDS):
            self.egress.loop.wait(0)
        return back

    def close(self) -> None:
        for visit in [one for one in self.egress._visits if not one.is_over]:
            visit.give_up()
        self.egress._door.close()
        self._other.close()
        self.egress.loop._epoll.close()
        os.close(self.egress.outside.resolver.wake)
        for fd in self._spaces:
            os.close(fd)


def _checked(ground: Ground, run: Callable[[Door], None]) -> None:
    """Whatever came, nothing is left of it, and the log has a line of JSON for each refusal."""
    door = Door(ground)
    try:
        run(door)
        egress = door.egress
        assert (egress._out, egress._to_mas, egress._name_streams, len(egress._joins)) == (0, 0, 0, 0)
        assert all(one.is_over for one in egress._visits)
        assert set(egress.loop._watched) == {egress._door.fileno(), egress.outside.resolver.wake}
    finally:
        door.close()
    if os.path.exists(door.log):
        with open(door.log, "rb") as file:
            for line in map(json.loads, file.read().splitlines()):
                assert line["result"].startswith("refused: ")
                assert line["name"].isprintable()
                assert line["name"].isascii()


@PARSERS.of(
    b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n\x16\x03\x01",
    b"GET http://example.com/x HTTP/1.1\r\nHost: x\r\nProxy-Connection: keep-alive\r\n\r\n",
    b"CONNECT localhost:22 HTTP/1.1\r\n\r\n",
    b"CONNECT [::1]:80 HTTP/1.1\r\n\r\n",
)
def egress_proxy(ground: Ground, data: bytes) -> None:
    """The first bytes of a connection to the proxy inside: a refusal in words, or none at all."""

    def run(door: Door) -> None:
        back = door.feed(lambda inner: door.egress._to_proxy(inner, 1), data)
        assert back == b"" or back.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 403 "))

    _checked(ground, run)


@PARSERS.of(_STREAMED, _STREAMED * 3, _STREAMED[:20], b"\xff\xff")
def egress_name_stream(ground: Ground, data: bytes) -> None:
    """Queries by a stream are answered one by one: that there is no such name."""

    def run(door: Door) -> None:
        back = door.feed(lambda inner: door.egress._asked_by_stream(inner, 1), data)
        while back:
            size = int.from_bytes(back[:2], "big")
            assert back[5] & 0x0F == 3 or b"localhost" in back[:size].lower()
            back = back[2 + size :]

    _checked(ground, run)


@PARSERS.of(_QUERY, _HEAD + b"\x04\xff\n\x1b]\x03com\0\0\x1c\0\1", _HEAD + b"\xc0\x0c\0\1\0\1")
def egress_names(ground: Ground, data: bytes) -> None:
    """A packet is answered with one that is hardly longer, or not."""

    def run(door: Door) -> None:
        back: list[bytes] = []
        door.egress._answer(data, lambda: "21", back.append)
        assert len(back) <= 1
        assert all(len(one) <= len(data) + 16 for one in back)

    _checked(ground, run)


@PARSERS.of(b"21 1", b"21 99999999999999999999", b"x", b"", b"21 1 2")
def egress_launchers(ground: Ground, data: bytes) -> None:
    """A launcher that says anything but its agent and a process is no launcher any more."""

    def run(door: Door) -> None:
        egress = door.egress

        def enter(one: socket.socket) -> None:
            egress._launchers[one.fileno()] = one
            egress.loop.watch(one.fileno(), IN, lambda _: egress._launcher_says(one))

        door.feed(enter, data, socket.SOCK_SEQPACKET)
        assert egress._launchers == {}
        assert all(isinstance(pid, int) for pid, _ in egress.agents._agents.values())

    _checked(ground, run)
