"""Does what files `try-N` in its directory ask for, a JSON list each, and writes how it went to `done-N`."""

from __future__ import annotations

import json
import os
import socket
import time
from typing import Any

_KEPT: list[socket.socket] = []


def bind(port: int, host: str = "127.0.0.1") -> str:
    """Take a port, and keep it."""
    one = socket.create_server((host, port))
    _KEPT.append(one)
    return "bound"


def connect(host: str, port: int) -> str:
    with socket.create_connection((host, port), 10) as one:
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


def read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


WORDS: dict[str, Any] = {
    word.__name__: word for word in (unix, bind, connect, resolve, namespace, interfaces, environment, read)
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
