"""HTTP by hand: bytes to a server and what comes back, however wrong they are."""

from __future__ import annotations

import socket
from typing import NamedTuple

from tests.served import Served

_PATIENCE = 60.0


class Answer(NamedTuple):
    """What a server sent before it closed the connection; status 0 if nothing."""

    status: int
    headers: dict[str, str]
    body: bytes


def connect(served: Served) -> socket.socket:
    port = int(served.url.rpartition(":")[2])
    return socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE)


def request(
    served: Served, line: str = "GET /sessions", *headers: str, host: str | None = "127.0.0.1", token: bool = True
) -> bytes:
    """A request's head, on a connection that will be closed after it."""
    lines = [f"{line} HTTP/1.1"]
    lines += [f"Host: {host}"] if host is not None else []
    lines += [f"Authorization: Bearer {served.token}"] if token else []
    lines += ["Connection: close", *headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def ask(served: Served, data: bytes) -> Answer:
    """Send bytes and read until the server closes."""
    with connect(served) as wire:
        wire.sendall(data)
        return parsed(rest_of(wire))


def rest_of(wire: socket.socket) -> bytes:
    """All that comes until the other end closes, gently or not; fails if it does not."""
    received = b""
    try:
        while block := wire.recv(1 << 16):
            received += block
    except ConnectionResetError:
        pass
    return received


def read_answer(wire: socket.socket) -> Answer:
    """One answer, on a connection that stays open."""
    received = b""
    while True:
        answer = parsed(received) if b"\r\n\r\n" in received else None
        if answer and len(answer.body) >= int(answer.headers.get("content-length", "0")):
            return answer
        block = wire.recv(1 << 16)
        assert block, "the connection was closed"
        received += block


def parsed(data: bytes) -> Answer:
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(": ") for line in lines)
    return Answer(
        int(first.split(" ")[1]) if first else 0, {name.lower(): value for name, _, value in pairs if name}, body
    )
