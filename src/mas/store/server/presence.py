"""Presence: which server runs for the workspace, and where it listens. Only a lock proves it, never a file alone."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import stat
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from mas.model.errors import Conflict, ServerRunning, Unavailable
from mas.model.fields import parse_json
from mas.model.server import ServerInfo
from mas.store.files.atomic import ensure_directory, open_lock, read_file, write_atomic
from mas.store.files.descriptors import is_locked, remove_file, still_at, take_lock
from mas.store.layout import PRIVATE_DIR, Layout
from mas.store.server import address

# 108 bytes of a socket's address, the last for its end.
_LONGEST_SOCKET = 107
_PATIENCE = 15.0
_A_LOOK = 0.3
_LOOK_AGAIN = 0.01
_LOOKS = 10
_TRIES = 5
_HIGHEST_PID = 1 << 31


class _Announced(NamedTuple):
    """A file that this server wrote, known by more than its path: that may be another server's by now."""

    directory: int
    path: str
    which: tuple[int, int, int]

    @classmethod
    def of(cls, path: str) -> _Announced:
        which = _which(os.stat(path, follow_symlinks=False))
        return cls(os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), path, which)

    def remove(self) -> None:
        """Remove the file, also where its directory was moved to; leave alone what another server put there."""
        name = os.path.basename(self.path)
        try:
            found = os.stat(name, dir_fd=self.directory, follow_symlinks=False)
            if _which(found) == self.which:
                os.unlink(name, dir_fd=self.directory)
        except FileNotFoundError:
            pass
        finally:
            os.close(self.directory)


class Presence:
    """At most one server per workspace. One whose workspace was removed or moved away is none of it any more."""

    def __init__(self, layout: Layout, short_place: str) -> None:
        self._layout = layout
        self._lock_path = os.path.join(layout.server, "server.lock")
        self._info_path = os.path.join(layout.server, "server.json")
        self._coming_path = os.path.join(layout.server, "coming.lock")
        self._short_place = short_place
        self._lock = -1
        self._published = -1
        self._announced: list[_Announced] = []

    @property
    def socket(self) -> str:
        """Where the server's socket is: beside the sessions, or in a short place where that path is too long."""
        return self._socket("api.sock")

    @property
    def agents_socket(self) -> str:
        """Where requests of agents come in, and of nobody else."""
        return self._socket("agents.sock")

    def _socket(self, name: str) -> str:
        path = os.path.join(self._layout.server, name)
        if len(os.fsencode(path)) <= _LONGEST_SOCKET:
            return path
        import hashlib

        where = hashlib.sha256(os.fsencode(self._layout.server)).hexdigest()[:8]
        return os.path.join(self._short_place, f"{where}-{name}")

    @property
    def log(self) -> str:
        return self._layout.at("logs", "api.log")

    @property
    def pid_file(self) -> str:
        return self._layout.at("logs", "api.pid")

    def claim(self, to_stay: bool = True) -> None:
        """Become the workspace's server; `ServerRunning` if there is one already.

        One that is `to_stay` takes the place of one that would have ended by itself.
        """
        self._prepare()
        for _ in range(_TRIES):
            if self._take():
                break
            info = self._await(self.is_held)
            if info is None:
                if self.is_held():
                    raise ServerRunning(self.says_nothing(), "mas serve --stop")
                continue
            if info.until_idle is None or not to_stay:
                where = f"at {info.url} (process {info.pid})"
                raise ServerRunning(f"A server is already running for this workspace {where}", "mas serve --stop")
            self.stop()
        else:
            raise ServerRunning("Another server for this workspace kept starting first", "mas serve")
        # What a killed server left. Its process id may be another program's by now.
        for path in (self._info_path, self.pid_file, self.socket, self.agents_socket):
            remove_file(path)
        address.withdraw(self._layout.address)

    def _take(self) -> bool:
        """Whether the claim is ours now."""
        lock = open_lock(self._lock_path)
        # A process that checks whether a server runs holds the lock for a moment.
        taken = take_lock(lock, round(_A_LOOK / _LOOK_AGAIN), _LOOK_AGAIN)
        # Somebody may have removed the file, and another server locked the next.
        if taken and still_at(lock, self._lock_path):
            self._lock = lock
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
            return True
        os.close(lock)
        return False

    def announce(self, info: ServerInfo, tls_cert: str | None = None) -> None:
        """Publish where the server is; it holds the claim. Agents get its certificate too."""
        certificate = address.first_certificate(tls_cert) if tls_cert else None
        self._published = address.publish(self._layout.address, address.Address(info.url, certificate))
        ensure_directory(os.path.dirname(self.pid_file), PRIVATE_DIR)
        write_atomic(self.pid_file, f"{info.pid}\n".encode(), 0o644)
        # Last: processes that wait for the server look here.
        write_atomic(self._info_path, json.dumps(info._asdict()).encode())
        sockets = (self.socket, self.agents_socket)
        files = (self._info_path, self.pid_file, *sockets, address.path_in(self._layout.address))
        self._announced = [_Announced.of(path) for path in files if os.path.lexists(path)]

    def is_ours(self) -> bool:
        """Whether the workspace is still at its path and this is its server; True if that cannot be found out."""
        try:
            return still_at(self._lock, self._lock_path)
        except NotADirectoryError:
            return False
        except OSError:
            return True

    def withdraw(self) -> None:
        """The server has ended: leave nothing but its log, and alone what is another server's."""
        if not self._announced and self.is_ours():
            remove_file(self.socket)
            remove_file(self.agents_socket)
        for file in self._announced:
            file.remove()
        for fd in (self._published, self._lock):
            if fd >= 0:
                os.close(fd)
        self._announced, self._published, self._lock = [], -1, -1

    def find(self) -> ServerInfo | None:
        """The server that runs; None where there is none, it does not listen yet, or it is one of another place."""
        info = self._running()
        return info if info and info.socket == self.socket else None

    def was_moved(self) -> bool:
        """Whether the server that runs is that of the place where this workspace was; it will notice, and end."""
        info = self._running()
        return info is not None and info.socket != self.socket

    def _running(self) -> ServerInfo | None:
        if not self.is_held():
            return None
        try:
            return _info(parse_json(read_file(self._info_path)))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
            return None

    def await_one(self) -> ServerInfo | None:
        """The running server; waits for one that is coming up until it listens. None if there is none."""
        return self._await(lambda: self.is_held() or self.is_coming())

    def _await(self, may_come: Callable[[], bool]) -> ServerInfo | None:
        deadline = time.monotonic() + _PATIENCE
        silent = 0
        while (info := self.find()) is None and may_come() and time.monotonic() < deadline:
            # More than one look: who takes the claim notes that a moment later.
            silent = silent + 1 if self._is_silent() else 0
            if silent == _LOOKS:
                break
            time.sleep(_LOOK_AGAIN)
        return info

    def _is_silent(self) -> bool:
        """Whether the running server must have published its address long ago: a missing file was removed."""
        if not self.is_held() or self.was_moved():
            return False
        try:
            return time.time() - os.stat(self._lock_path, follow_symlinks=False).st_mtime > _PATIENCE
        except OSError:
            return False

    def stop(self) -> ServerInfo | None:
        """End the server that runs and wait until it has; None where there is none."""
        info = self.await_one() or self._running()
        if not self.is_held():
            return None
        pid = info.pid if info else self._holder()
        if pid is None:
            raise Conflict(self.says_nothing(), f"fuser {self._lock_path}")
        deadline = time.monotonic() + _PATIENCE
        _signal(pid, signal.SIGTERM)
        while self.is_held():
            if time.monotonic() > deadline:
                raise Conflict(f"The server (process {pid}) did not stop", f"kill -9 {pid}")
            time.sleep(_LOOK_AGAIN)
        return info or ServerInfo(pid, "", self.socket, "", "", None)

    def _holder(self) -> int | None:
        """The process that the lock file names; None if it names none."""
        try:
            return _pid(read_file(self._lock_path))
        except (OSError, ValueError):
            return None

    def says_nothing(self) -> str:
        """The error for a server that has the claim but has not published its address in this workspace."""
        if moved := self._running():
            return f"The server at {moved.url} (process {moved.pid}) serves where this workspace was before a move"
        pid = self._holder()
        who = f"process {pid}" if pid else "unknown process"
        return f"A server is running for this workspace ({who}), but its address is unknown"

    def coming(self) -> int:
        """A lock for a server that is being started to inherit: while it is held, one is coming up or runs."""
        self._prepare()
        lock = open_lock(self._coming_path)
        fcntl.flock(lock, fcntl.LOCK_SH)
        return lock

    def is_coming(self) -> bool:
        """Whether a server that started automatically is coming up; one that runs counts too."""
        try:
            return is_locked(self._coming_path, shared=False)
        except OSError:
            return False

    def is_held(self) -> bool:
        """Whether a server runs, starts or ends."""
        # Shared, so that two who look at the same time do not take each other for the server.
        return is_locked(self._lock_path)

    def _prepare(self) -> None:
        # The longer of the two paths: only its socket may be in the short place.
        place = os.path.dirname(self.agents_socket)
        for directory in (os.path.dirname(self._layout.server), self._layout.server, place):
            ensure_directory(directory, PRIVATE_DIR)
        # Any user could have made the directory at the short path.
        info = os.stat(place, follow_symlinks=False)
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid() or info.st_mode & 0o077:
            raise Unavailable(f"{place} must be a directory that only you have access to", f"ls -ld {place}")


def _which(found: os.stat_result) -> tuple[int, int, int]:
    """Which file it is, by its time too: a file system may give the number of a removed file to the next one."""
    return found.st_dev, found.st_ino, found.st_mtime_ns


def _info(body: Any) -> ServerInfo:  # noqa: ANN401 - raw JSON
    idle, pid = body.get("until_idle"), _pid(body["pid"])
    return ServerInfo(
        pid,
        str(body["url"]),
        str(body["socket"]),
        str(body["started_at"]),
        str(body["version"]),
        None if idle is None else float(idle),
    )


def _pid(given: Any) -> int:  # noqa: ANN401 - raw JSON
    pid = int(given)
    # Signals are sent to it: some numbers mean many processes.
    if not 1 < pid < _HIGHEST_PID:
        raise ValueError(f"no process is {pid}")
    return pid


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
