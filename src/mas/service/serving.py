"""Serving: start the workspace's server in the background, find it, stop it, or have systemd run it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence

from mas.model.errors import MasError, NoServer, Unavailable
from mas.model.server import ServerInfo
from mas.runtime.host import start_detached
from mas.settings import OF_AN_AGENT, ServerStart, Settings
from mas.store.files.atomic import ensure_directory, write_atomic
from mas.store.layout import PRIVATE_DIR
from mas.store.server.presence import Presence

# How long a server that started automatically stays once it is not needed.
UNTIL_IDLE = 600
_PATIENCE = 30.0
_LOOK_AGAIN = 0.02
_LAST_WORDS = 2000
_UNIT = """\
[Unit]
Description=MAS server of {root}

[Service]
ExecStart={command}
Restart=on-failure
# Agents and their tmux servers are not the server's to end.
KillMode=process

[Install]
WantedBy=default.target
"""


class Serving:
    """The server of one workspace, seen from outside it."""

    def __init__(
        self, settings: Settings, presence: Presence, log: Callable[[str], None], now: Callable[[], str]
    ) -> None:
        self._settings = settings
        self._presence = presence
        self._log = log
        self._now = now

    def find(self) -> ServerInfo | None:
        return self._presence.find()

    def need(self) -> ServerInfo:
        """The server that runs; `NoServer` names the command that starts one."""
        info = self._presence.await_one()
        if info is None and self._presence.is_held():
            raise NoServer(self._presence.says_nothing(), "mas serve --stop; mas serve --detach")
        if info is None:
            raise NoServer("No server is running for this workspace", "mas serve --detach")
        return info

    def stop(self) -> ServerInfo | None:
        return self._presence.stop()

    def summon(self) -> None:
        """Start a server in the background if none runs and the settings allow it.

        Not waited for, and never an error: what keeps it from coming is in its log.
        """
        if self._settings.server_start is ServerStart.OFF:
            return
        try:
            if self._presence.is_held() and not self._presence.was_moved():
                return
            # The server of an agent that started a session is not that agent.
            environ = {key: value for key, value in self._settings.environ.items() if key not in OF_AN_AGENT}
            ensure_directory(os.path.dirname(self._presence.log), PRIVATE_DIR)
            options = ("--until-idle", str(UNTIL_IDLE), "--if-none")
            coming = self._presence.coming()
            try:
                start_detached([*self._command(), *options], self._presence.log, environ, coming)
            finally:
                os.close(coming)
        except (OSError, MasError) as error:
            self.warn(f"The server could not be started: {error}")

    def warn(self, text: str) -> None:
        """A warning in the server's log."""
        import json

        self._log(json.dumps({"at": self._now(), "level": "warning", "event": "log", "logger": "mas", "text": text}))

    def detach(self, options: Sequence[str]) -> ServerInfo:
        """Start the server in the background with these options; returns once it listens."""
        log = self._presence.log
        ensure_directory(os.path.dirname(log), PRIVATE_DIR)
        begin = os.path.getsize(log) if os.path.exists(log) else 0
        process = start_detached([*self._command(), *options], log, self._settings.environ)
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            info = self.find()
            if info is not None and info.pid == process.pid:
                return info
            if process.poll() is not None:
                raise Unavailable(f"The server did not start: {_last_message(log, begin)}", f"cat {log}")
            time.sleep(_LOOK_AGAIN)
        process.terminate()
        raise Unavailable(f"The server does not listen after {_PATIENCE:.0f} s", f"cat {log}")

    def install_unit(self, options: Sequence[str]) -> tuple[str, str]:
        """Have systemd run the server for this user; returns the unit's file and the command that starts it."""
        import hashlib

        root = self._settings.root
        name = f"mas-{os.path.basename(root)}-{hashlib.sha256(os.fsencode(root)).hexdigest()[:6]}.service"
        home = self._settings.environ.get("HOME", "/")
        base = self._settings.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
        path = os.path.join(base, "systemd", "user", _unit_name(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        command = " ".join(_unit_word(word) for word in [*self._command(), *options])
        text = _UNIT.format(root=_unit_text(root), command=command)
        write_atomic(path, text.encode(), 0o644)
        return path, f"systemctl --user daemon-reload; systemctl --user enable --now {os.path.basename(path)}"

    def has_systemd(self) -> bool:
        """Whether a systemd of this user runs here, which could run a unit."""
        runtime = self._settings.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
        return os.path.isdir(os.path.join(runtime, "systemd"))

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "mas", "serve", "--workspace", self._settings.root]


def _last_message(log: str, begin: int) -> str:
    """What a server that ended wrote last."""
    with open(log, "rb") as file:
        file.seek(begin)
        words = file.read()[-_LAST_WORDS:].decode("utf-8", "replace").split("\n")
    errors = [line.removeprefix("error: ") for line in words if line.startswith("error: ")]
    return errors[-1] if errors else next((line for line in reversed(words) if line), "it said nothing")


def _unit_name(text: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in text)


def _unit_text(text: str) -> str:
    return text.replace("%", "%%")


def _unit_word(word: str) -> str:
    """One argument as systemd reads it."""
    escaped = _unit_text(word).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{escaped}"'
