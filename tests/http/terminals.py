"""A server with nothing but the terminal routes, as a process of its own, and viewers of it."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.site import AGENTS, REPOSITORY, Site, until

PATIENCE = 60.0
_LOOKED_AT = 1 << 20


def agent(name: str, *args: str) -> str:
    """The command of a stand-in agent."""
    return shlex.join([sys.executable, os.path.join(AGENTS, f"{name}.py"), *args])


def log_of(site: Site, session_id: str, name: str = "00") -> bytes:
    """All that was written down of an agent, the file before this one included."""
    path = site.session(session_id, "logs", f"agent-{name}.log")
    found = b""
    for part in (f"{path}.1", path):
        if os.path.exists(part):
            with open(part, "rb") as file:
                found += file.read()
    return found


class Server:
    """The process that serves."""

    def __init__(self, port: int, process: psutil.Process) -> None:
        self._port = port
        self.process = process

    @contextmanager
    def socket(self, path: str, **options: Any) -> Iterator[Viewer]:
        with connect(f"ws://127.0.0.1:{self._port}{path}", max_size=None, compression=None, **options) as connection:
            yield Viewer(connection)

    @contextmanager
    def watch(self, session_id: str, name: str = "00", **options: Any) -> Iterator[Viewer]:
        with self.socket(f"/sessions/{session_id}/agents/{name}/terminal", **options) as viewer:
            yield viewer

    @contextmanager
    def many(self) -> Iterator[Viewer]:
        with self.socket("/terminals") as viewer:
            yield viewer


class Viewer:
    """One WebSocket, and what came through it: on a socket for one agent all of it is channel -1."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.said: list[dict[str, Any]] = []
        self.screens: dict[int, list[bytes]] = {}
        self.bytes: dict[int, bytearray] = {}
        self._next: set[int] = set()
        self.closed: int | None = None

    def __repr__(self) -> str:
        taken = {n: (len(shown), len(self.bytes[n]), bytes(self.bytes[n][-80:])) for n, shown in self.screens.items()}
        return f"said {self.said[-5:]}; screens, bytes since and the last of them {taken}; awaits {self._next}"

    def send(self, **fields: Any) -> None:
        self.connection.send(json.dumps(fields))

    def keys(self, data: bytes, channel: int | None = None) -> None:
        self.connection.send(data if channel is None else channel.to_bytes(2, "big") + data)

    def take(self, timeout: float = PATIENCE) -> bool:
        """Wait for one frame; whether one came."""
        try:
            frame = self.connection.recv(timeout)
        except TimeoutError:
            return False
        except ConnectionClosed as closed:
            self.closed = closed.rcvd.code if closed.rcvd else 1006
            return False
        if isinstance(frame, str):
            fields = json.loads(frame)
            self.said.append(fields)
            if fields["type"] == "screen":
                self._next.add(fields.get("channel", -1))
            return True
        channel = -1
        if any("channel" in fields for fields in self.said):
            channel, frame = int.from_bytes(frame[:2], "big"), frame[2:]
        if channel in self._next:
            self._next.discard(channel)
            self.screens.setdefault(channel, []).append(frame)
            self.bytes[channel] = bytearray()
        else:
            self.bytes[channel] += frame
        return True

    def until(self, fact: Any, what: str = "") -> Any:
        """Take frames until something is so."""
        deadline = time.monotonic() + PATIENCE
        while not (found := fact()):
            assert time.monotonic() < deadline, f"in vain: {what}; {self}"
            assert self.closed is None, (self.closed, self.said)
            self.take(0.05)
        return found

    def screen(self, channel: int = -1) -> bytes:
        """The first screen, once it is there."""
        return bytes(self.until(lambda: self.screens.get(channel), "a screen")[0])

    def wait_for(self, data: bytes, channel: int = -1) -> None:
        """Until this was shown, on the last screen or after it."""
        # Only the end: a flood has megabytes, and each frame would have us look through all of them again.
        self.until(
            lambda: data in self.screens.get(channel, [b""])[-1] + self.bytes.get(channel, b"")[-_LOOKED_AT:],
            repr(data),
        )

    def wait_said(self, kind: str, count: int = 1, **fields: Any) -> dict[str, Any]:
        wanted = {"type": kind, **fields}.items()

        def said() -> list[dict[str, Any]]:
            found = [one for one in self.said if wanted <= one.items()]
            return found if len(found) >= count else []

        found: list[dict[str, Any]] = self.until(said, kind)
        return found[count - 1]

    def wait_closed(self) -> int:
        deadline = time.monotonic() + PATIENCE
        while self.closed is None:
            assert time.monotonic() < deadline, "not closed"
            self.take(0.05)
        return self.closed


@contextmanager
def serving(site: Site) -> Iterator[Server]:
    """Serves the site's workspace; ends without leaving anything."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        argv = [sys.executable, "-m", "tests.http.terminals", str(listening.fileno())]
        process = subprocess.Popen(argv, env=site.env, cwd=REPOSITORY, pass_fds=[listening.fileno()])
    try:
        until(lambda: _answers(port), "the server")
        yield Server(port, psutil.Process(process.pid))
    finally:
        process.terminate()
        assert process.wait(PATIENCE) == 0


def _answers(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port)) as probe:
        probe.settimeout(PATIENCE)
        probe.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return bool(probe.recv(1))


def main(fd: int) -> None:
    import uvicorn
    from fastapi import FastAPI

    from mas.bootstrap import open_server
    from mas.http.state import ServerState
    from mas.http.terminal import router

    with open_server() as parts:
        app = FastAPI()
        app.state.server = ServerState(parts)
        app.include_router(router)
        config = uvicorn.Config(
            app, ws="websockets-sansio", ws_per_message_deflate=False, log_level="warning", ws_max_size=1 << 20
        )
        server = uvicorn.Server(config)
        # uvicorn sends itself the signal that ended it once more; the connections are still to be closed.
        import signal

        signal.signal(signal.SIGTERM, lambda *_: None)
        server.run([socket.socket(fileno=fd)])


if __name__ == "__main__":
    main(int(sys.argv[1]))
