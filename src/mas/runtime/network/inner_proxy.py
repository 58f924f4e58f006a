"""The HTTP proxy inside, for what straight connections cannot do: any allowed port, and refusals in words."""

from __future__ import annotations

import socket
import time

from mas.model.network import is_address, is_name
from mas.runtime.network.joining import IN, Loop, received, reset

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_PATIENCE = 30.0
_LONGEST_HEAD = 1 << 14
_HEAD_ENDS = b"\r\n\r\n"
_LARGEST_PORT = 65535
_WEB_PORT = 80
_OPEN = b"HTTP/1.1 200 Connected\r\n\r\n"
# What is between a program and its proxy, and not for the server.
_NOT_PASSED_ON = (b"connection", b"proxy-connection", b"proxy-authorization", b"keep-alive")


class ProxyRequest:
    """A place that a program asks for, and what to send first to that place and to the program, once it is reached."""

    __slots__ = ("name", "port", "to_place", "to_program")

    def __init__(self, name: str, port: int, to_place: bytes = b"", to_program: bytes = b"") -> None:
        self.name = name
        self.port = port
        self.to_place = to_place
        self.to_program = to_program


def parse_request(head: bytes, rest: bytes) -> ProxyRequest:
    """The request that a head makes, with what came after it; `ValueError` if it is none for a proxy."""
    line, _, headers = head.partition(b"\r\n")
    method, target, version = line.decode("ascii").split(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError("not HTTP/1")
    if method == "CONNECT":
        return ProxyRequest(*_place(target, 0), rest, _OPEN)
    scheme, _, address = target.partition("://")
    if scheme.lower() != "http":
        raise ValueError("not the address of a page")
    place, _, path = address.partition("/")
    kept = [one for one in headers.split(b"\r\n") if one.partition(b":")[0].strip().lower() not in _NOT_PASSED_ON]
    # One request a connection: the next one may be for another place.
    lines = [f"{method} /{path} {version}".encode("ascii"), *filter(None, kept), b"Connection: close"]
    return ProxyRequest(*_place(place, _WEB_PORT), b"\r\n".join(lines) + _HEAD_ENDS + rest)


def _place(text: str, port: int) -> tuple[str, int]:
    name, colon, number = text.lower().rpartition(":")
    if not colon:
        name, number = text.lower(), str(port)
    if not number.isdigit() or not 1 <= int(number) <= _LARGEST_PORT or not (is_name(name) or is_address(name)):
        raise ValueError("not a host and a port")
    return name.removesuffix("."), int(number)


class ProxyVisit:
    """A connection to the proxy, until its request has come. `then` gets the request, if there is one."""

    def __init__(self, loop: Loop, inner: socket.socket, then: Callable[[ProxyRequest | None], None]) -> None:
        self._loop = loop
        self._inner = inner
        self._then = then
        self._said = b""
        self.deadline = time.monotonic() + _PATIENCE
        self.is_over = False
        loop.watch(inner.fileno(), IN, self._ready)

    def give_up(self) -> None:
        """It takes too long."""
        self._finish()
        reset(self._inner)
        self._then(None)

    def _ready(self, _: int) -> None:
        data = received(self._inner, _LONGEST_HEAD)
        if data is None:
            return
        self._said += data
        head, end, rest = self._said.partition(_HEAD_ENDS)
        if not data:
            self.give_up()
        elif end or len(self._said) > _LONGEST_HEAD:
            self._finish()
            try:
                request = parse_request(head, rest)
            except ValueError:
                refuse(self._inner, 400, "This is the proxy of a MAS session, which that was no request for")
                self._then(None)
                return
            self._then(request)

    def _finish(self) -> None:
        self.is_over = True
        self._loop.watch(self._inner.fileno(), 0, self._ready)


def why_not(name: str, port: int, why: str, remedy: str = "") -> tuple[int, str]:
    """The status and the words for a place that is not reached; `remedy` is the list that would let it through."""
    kind, _, reason = why.partition(": ")
    if kind != "refused":
        return 502, f"MAS could not reach {name}:{port}: {reason or why}"
    how = f". The owner can allow it: mas network {remedy} {name}:{port}" if remedy else ""
    return 403, f"MAS refused {name}:{port}: {reason}{how}"


def refuse(inner: socket.socket, status: int, words: str) -> None:
    """Say no in words, where programs show them: in the first line and as a page."""
    body = f"{words}\n".encode()
    head = f"HTTP/1.1 {status} {words}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}"
    try:
        inner.send(f"{head}\r\nConnection: close\r\n\r\n".encode() + body)
        inner.shutdown(socket.SHUT_WR)
        # What was not read would make the kernel take the words back.
        inner.recv(1 << 16)
    except OSError:
        pass
    inner.close()
