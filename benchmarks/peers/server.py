"""A server under comparison: a child process, asked over HTTP on loopback."""

from __future__ import annotations

import http.client
import json
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from tests.site import Site

_PATIENCE = 120.0
UNREACHABLE = (OSError, http.client.HTTPException)


class Refused(RuntimeError):
    """The server answers, and says no."""


class Server:
    """Starts on a port of its own and is there once `GET /health` answers."""

    def __init__(self, site: Site, argv: Sequence[str]) -> None:
        self._site = site
        self.port = _free_port()
        self._argv = [*argv, "--port", str(self.port)]
        self._said = os.path.join(site.directory, "server.txt")
        self.took = 0.0
        self.headers: dict[str, str] = {}
        self._kept = threading.local()
        self._process = self._begin()

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, method: str, path: str, params: Mapping[str, str] | None = None, body: object = None) -> Any:
        """The answer to a request, read and parsed, on a connection that each thread keeps; `Refused` if it is no."""
        connection = self._connection()
        sent = None if body is None else json.dumps(body)
        headers = self.headers if body is None else self.headers | {"Content-Type": "application/json"}
        connection.request(method, f"{path}?{urlencode(params)}" if params else path, sent, headers)
        answer = connection.getresponse()
        data = answer.read()
        self._kept.connection = connection
        if answer.status >= 300:
            raise Refused(f"{method} {path}: {answer.status} {data.decode()}")
        return json.loads(data)

    def _connection(self) -> http.client.HTTPConnection:
        """The thread's own, if it served well and the server has not closed it meanwhile; else a new one."""
        kept: http.client.HTTPConnection | None = getattr(self._kept, "connection", None)
        self._kept.connection = None
        if kept and kept.sock and not select.select([kept.sock], [], [], 0)[0]:
            return kept
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE)

    def kill(self) -> None:
        """End it as a crash would."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(_PATIENCE)

    def again(self) -> None:
        self._kept = threading.local()
        self._process = self._begin()

    def stop(self) -> None:
        """Ending twice is fine."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()

    def _begin(self) -> subprocess.Popen[bytes]:
        begun = time.perf_counter()
        with open(self._said, "ab") as said:
            process = subprocess.Popen(
                self._argv,
                env=self._site.env,
                cwd=self._site.home,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )
        while not self._answers():
            if process.poll() is not None or time.perf_counter() - begun > _PATIENCE:
                process.kill()
                process.wait()
                with open(self._said, encoding="utf-8", errors="replace") as said_then:
                    raise RuntimeError(f"{self._argv[0]} does not serve: {said_then.read()[-2000:]}")
            time.sleep(0.002)
        self.took = time.perf_counter() - begun
        return process

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port
