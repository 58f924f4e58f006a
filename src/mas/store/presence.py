"""Presence: which server runs for the workspace, and where it listens. A lock tells, never a file alone."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import stat
import time
from typing import Any

from mas.model.errors import Conflict, ServerRunning, Unavailable
from mas.model.fields import parse_json
from mas.model.reports import ServerInfo
from mas.store import address
from mas.store.atomic import ensure_directory, open_lock, read_file, remove_file, try_lock, write_atomic
from mas.store.layout import PRIVATE_DIR, Layout

# 108 bytes of a socket's address, the last for its end.
_LONGEST_SOCKET = 107
_PATIENCE = 15.0
_A_LOOK = 0.3
_LOOK_AGAIN = 0.01
_TRIES = 5
_HIGHEST_PID = 1 << 31


class Presence:
    """At most one server per workspace."""

    def __init__(self, layout: Layout, short_place: str) -> None:
        self._layout = layout
        self._lock_path = os.path.join(layout.server, "server.lock")
        self._info_path = os.path.join(layout.server, "server.json")
        self._short_place = short_place
        self._lock = -1
        self._published = -1

    @property
    def socket(self) -> str:
        """Where the server's socket is: beside the sessions, or in a short place where that path is too long."""
        path = os.path.join(self._layout.server, "api.sock")
        if len(os.fsencode(path)) <= _LONGEST_SOCKET:
            return path
        import hashlib

        where = hashlib.sha256(os.fsencode(self._layout.server)).hexdigest()[:8]
        return os.path.join(self._short_place, f"{where}-api.sock")

    @property
    def log(self) -> str:
        return self._layout.at("logs", "api.log")

    @property
    def pid_file(self) -> str:
        return self._layout.at("logs", "api.pid")

    def claim(self, to_stay: bool = True) -> None:
        """Become the workspace's server; `ServerRunning` names the one there is.

        One that is `to_stay` takes the place of one that would have ended by itself.
        """
        self._prepare()
        for _ in range(_TRIES):
            if self._take():
                break
            info = self.await_one() if to_stay else self.find()
            if info is None or info.until_idle is None or not to_stay:
                where = f"at {info.url} (process {info.pid})" if info else "and is just starting or ending"
                raise ServerRunning(f"This workspace's server already runs {where}", "mas serve --stop")
            self.stop()
        else:
            raise ServerRunning("Another server of this workspace was faster every time", "mas serve")
        # What a killed server left. Its process id may be another program's by now.
        for path in (self._info_path, self.pid_file, self.socket):
            remove_file(path)
        address.withdraw(self._layout.address)

    def _take(self) -> bool:
        """Whether the claim is ours now."""
        lock = open_lock(self._lock_path)
        deadline = time.monotonic() + _A_LOOK
        while not (taken := try_lock(lock)) and time.monotonic() < deadline:
            # Whoever looks whether a server runs holds the lock for a moment.
            time.sleep(_LOOK_AGAIN)
        if taken:
            self._lock = lock
        else:
            os.close(lock)
        return taken

    def announce(self, info: ServerInfo, tls_cert: str | None = None) -> None:
        """Tell others where the server is; it holds the claim. Agents are told its certificate too."""
        certificate = address.first_certificate(tls_cert) if tls_cert else None
        self._published = address.publish(self._layout.address, address.Address(info.url, certificate))
        ensure_directory(os.path.dirname(self.pid_file), 0o755)
        write_atomic(self.pid_file, f"{info.pid}\n".encode(), 0o644)
        # Last: whoever waits for the server looks here.
        write_atomic(self._info_path, json.dumps(info._asdict()).encode())

    def withdraw(self) -> None:
        """The server has ended: leave nothing but its log."""
        for path in (self._info_path, self.pid_file, self.socket):
            remove_file(path)
        address.withdraw(self._layout.address)
        for fd in (self._published, self._lock):
            if fd >= 0:
                os.close(fd)
        self._published = self._lock = -1

    def find(self) -> ServerInfo | None:
        """The server that runs; None where there is none or it does not listen yet."""
        if not self.is_held():
            return None
        try:
            return _info(parse_json(read_file(self._info_path)))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
            return None

    def await_one(self) -> ServerInfo | None:
        """The server that runs; of one that is just starting, as soon as it listens. None where there is none."""
        deadline = time.monotonic() + _PATIENCE
        while (info := self.find()) is None and self.is_held() and time.monotonic() < deadline:
            time.sleep(_LOOK_AGAIN)
        return info

    def stop(self) -> ServerInfo | None:
        """End the server that runs and wait until it has; None where there is none."""
        info = self.await_one()
        if info is None:
            return None
        deadline = time.monotonic() + _PATIENCE
        _signal(info.pid, signal.SIGTERM)
        while self.is_held():
            if time.monotonic() > deadline:
                raise Conflict(f"The server (process {info.pid}) would not end", f"kill -9 {info.pid}")
            time.sleep(_LOOK_AGAIN)
        return info

    def is_held(self) -> bool:
        """Whether a server runs, starts or ends."""
        try:
            lock = os.open(self._lock_path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            # Shared, so that two who look at the same time do not take each other for the server.
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
        return False

    def _prepare(self) -> None:
        for directory in (os.path.dirname(self._layout.server), self._layout.server, os.path.dirname(self.socket)):
            ensure_directory(directory, PRIVATE_DIR)
        # The short place is where anybody could have made it.
        place = os.path.dirname(self.socket)
        info = os.stat(place, follow_symlinks=False)
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid() or info.st_mode & 0o077:
            raise Unavailable(f"{place} must be a directory that only you can enter", f"ls -ld {place}")


def _info(body: Any) -> ServerInfo:  # noqa: ANN401 - raw JSON
    idle, pid = body.get("until_idle"), int(body["pid"])
    # Signals are sent to it: some numbers mean many processes.
    if not 1 < pid < _HIGHEST_PID:
        raise ValueError(f"no process is {pid}")
    return ServerInfo(
        pid,
        str(body["url"]),
        str(body["socket"]),
        str(body["started_at"]),
        str(body["version"]),
        None if idle is None else float(idle),
    )


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
