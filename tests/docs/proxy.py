"""A small reverse proxy that does what the guide has real ones do: keeps Host, sets two headers, buffers nothing."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread

_HEAD_END = b"\r\n\r\n"
_BLOCK = 1 << 16
CLIENT = "203.0.113.9"


@contextmanager
def proxied(port: int) -> Iterator[int]:
    """The port of a proxy in front of the server at `port`; as if HTTPS had come to it from `CLIENT`."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(target=_accept, args=(listener, port), daemon=True).start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, port: int) -> None:
    with suppress(OSError):
        while True:
            Thread(target=_serve, args=(listener.accept()[0], port), daemon=True).start()


def _serve(client: socket.socket, port: int) -> None:
    """One connection: its first request with our headers, then whatever either end says."""
    with client, socket.create_connection(("127.0.0.1", port)) as server, suppress(OSError):
        head = b""
        while _HEAD_END not in head:
            if not (block := client.recv(_BLOCK)):
                return
            head += block
        lines, _, rest = head.partition(_HEAD_END)
        kept = [line for line in lines.split(b"\r\n") if not line.lower().startswith(b"x-forwarded-")]
        ours = [b"X-Forwarded-Proto: https", f"X-Forwarded-For: {CLIENT}".encode()]
        server.sendall(b"\r\n".join([*kept, *ours]) + _HEAD_END + rest)
        back = Thread(target=_pump, args=(server, client), daemon=True)
        back.start()
        _pump(client, server)
        back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while block := source.recv(_BLOCK):
            target.sendall(block)
        target.shutdown(socket.SHUT_WR)
