"""A workspace with a real server in front of it, on a port of its own and on its socket file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import httpx

from tests.ports import hold_port
from tests.site import Site, until

_PATIENCE = 60.0


class Served:
    """A site and its `mas serve`, a child of this process: no other server can be meant by its id."""

    def __init__(self, site: Site, *options: str, program: Sequence[str] = ("-m", "mas", "serve")) -> None:
        self.site = site
        self.socket = site.path("sessions", ".mas", "server", "api.sock")
        self.said = os.path.join(site.directory, "serve.txt")
        self._options = options
        self._program = program
        # Held also while no server listens there, as at a restart.
        self._held = hold_port()
        self._port = int(self._held.getsockname()[1])
        self._clients: list[httpx.Client] = []
        self._process = self._begin()
        self.token = site.mas("token").stdout.strip()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        return self.site.path("logs", "api.log")

    def client(self, token: str | None = None, **options: Any) -> httpx.Client:
        """A client that signs in with `token`: default: the owner's; none at all if it is empty."""
        given = self.token if token is None else token
        headers = {"Authorization": f"Bearer {given}"} if given else {}
        usual: dict[str, Any] = {"base_url": self.url, "timeout": _PATIENCE, "trust_env": False}
        self._clients.append(httpx.Client(headers=headers, **(usual | options)))
        return self._clients[-1]

    def on_socket(self, token: str | None = None, name: str = "api.sock") -> httpx.Client:
        """A client at one of the socket files; signs in as with `client`."""
        path = os.path.join(os.path.dirname(self.socket), name)
        return self.client(token, base_url="http://localhost", transport=httpx.HTTPTransport(uds=path))

    def mas(self, *args: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """`mas` as a user elsewhere would run it: by address and token, outside any workspace."""
        env = {"MAS_URL": self.url, "MAS_TOKEN": self.token, "MAS_WORKSPACE_ROOT": ""} | options.pop("env", {})
        return self.site.mas(*args, env=env, cwd=self.site.home, **options)

    def connect_to_tmux(self, session: str) -> None:
        """Wait until the server has a control client at the user's tmux, as it has once it was asked for a session."""

        def is_connected() -> bool:
            assert self.client().get(f"/sessions/{session}").status_code == 200
            return "1" in self.site.tmux("list-clients", "-F", "#{client_control_mode}").split()

        until(is_connected, "a control client")

    def kill(self) -> None:
        """End the server as a crash would: at once, putting nothing away."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(_PATIENCE)

    def stop(self) -> None:
        """End the server as a person would. Stopping twice is fine."""
        self._process.terminate()
        self._process.wait(_PATIENCE)

    def restart(self) -> None:
        """Restart the server, at the same port; ends the one that is running."""
        self.stop()
        self._process = self._begin()

    def close(self) -> None:
        for client in self._clients:
            client.close()
        self.stop()
        self._held.close()

    def _begin(self) -> subprocess.Popen[bytes]:
        argv = [sys.executable, *self._program, "--port", str(self._port), *self._options]
        with open(self.said, "ab") as said:
            process = subprocess.Popen(
                argv, env=self.site.env, cwd=self.site.root, stdin=subprocess.DEVNULL, stdout=said, stderr=said
            )
        try:
            until(lambda: self._info(process), "the server listens")
        except BaseException:
            process.kill()
            process.wait()
            raise
        return process

    def _info(self, process: subprocess.Popen[bytes]) -> dict[str, Any] | None:
        """What the server reports about itself, once it does; what a killed one reported does not count."""
        if process.poll() is not None:
            with open(self.said, encoding="utf-8") as file:
                raise AssertionError(f"the server ended with {process.returncode}: {file.read()}")
        try:
            with open(self.site.path("sessions", ".mas", "server", "server.json"), encoding="utf-8") as file:
                info: dict[str, Any] = json.load(file)
        except (FileNotFoundError, ValueError):
            return None
        return info if info["pid"] == process.pid else None
