"""Does what files `try-N` in its directory ask for, a JSON list each, and writes how it went to `done-N`."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_KEPT: list[socket.socket] = []


def bind(port: int, host: str = "127.0.0.1") -> str:
    """Take a port, and keep it."""
    one = socket.create_server((host, port))
    _KEPT.append(one)
    return "bound"


class _Handler(BaseHTTPRequestHandler):
    """Answers with the request that came."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = json.dumps({"path": self.path, "headers": dict(self.headers)}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if self.path.startswith("/page") else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""


def serve(port: int, host: str = "127.0.0.1") -> str:
    """A web server, as a dev server is."""

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        request_queue_size = 256
        daemon_threads = True

    server = Server((host, port), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return "serving"


def greet(port: int) -> str:
    """A server that speaks first, and then says whatever it hears."""

    def talk(one: socket.socket) -> None:
        one.sendall(b"hello\n")
        while data := one.recv(1 << 16):
            one.sendall(data)
        one.sendall(b"goodbye\n")

    return _serve_each(port, talk)


def listen(port: int) -> str:
    """A server that waits until it is spoken to, and then says whatever it hears."""

    def talk(one: socket.socket) -> None:
        while data := one.recv(1 << 16):
            one.sendall(data)

    return _serve_each(port, talk)


def flood(port: int) -> str:
    """A server that sends without end."""

    def talk(one: socket.socket) -> None:
        while True:
            one.sendall(bytes(1 << 16))

    return _serve_each(port, talk)


def _serve_each(port: int, talk: Callable[[socket.socket], None]) -> str:
    listener = socket.create_server(("127.0.0.1", port), backlog=256)

    def one_of_many(one: socket.socket) -> None:
        with one, contextlib.suppress(OSError):
            talk(one)

    def accept() -> None:
        while True:
            threading.Thread(target=one_of_many, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return "serving"


def connect(host: str, port: int) -> str:
    with socket.create_connection((host, port), 60) as one:
        one.sendall(b"GET / HTTP/1.0\r\nHost: " + host.encode() + b"\r\n\r\n")
        return one.recv(64).decode("ascii", "replace").partition("\r\n")[0]


def resolve(name: str) -> str:
    return str(socket.getaddrinfo(name, 443, type=socket.SOCK_STREAM)[0][4][0])


def unix(path: str) -> str:
    """Connect to a socket file."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
        one.connect(path)
    return "connected"


def namespace() -> str:
    return os.readlink("/proc/self/ns/net")


def interfaces() -> list[str]:
    return [name for _, name in socket.if_nameindex()]


def environment() -> list[str]:
    return [f"{key}={value}" for key, value in os.environ.items()]


def listing(path: str) -> list[str]:
    return os.listdir(path)


def read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


WORDS: dict[str, Any] = {
    word.__name__: word
    for word in (
        unix,
        bind,
        connect,
        resolve,
        namespace,
        interfaces,
        environment,
        listing,
        read,
        serve,
        greet,
        listen,
        flood,
    )
}


def attempt(asked: list[Any]) -> Any:
    try:
        return WORDS[asked[0]](*asked[1:])
    except OSError as error:
        return f"{type(error).__name__}: {error}"


def main() -> None:
    number = 0
    while True:
        try:
            with open(f"try-{number}", encoding="utf-8") as file:
                asked = json.load(file)
        except (OSError, ValueError):
            time.sleep(0.01)
            continue
        with open(f"half-{number}", "w", encoding="utf-8") as file:
            json.dump(attempt(asked), file)
        os.rename(f"half-{number}", f"done-{number}")
        number += 1


if __name__ == "__main__":
    main()
