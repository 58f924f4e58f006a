"""Decides which tmux server a session runs on."""

from __future__ import annotations

import os
import resource
import stat
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

from mas.model.errors import NoTmux
from mas.runtime.changing import changing, is_ours_alone
from mas.runtime.tmux import Command, PreparedClient, Tmux, TmuxFailed
from mas.settings import ServerMode, Settings

if TYPE_CHECKING:
    from mas.runtime.control import Connections

# The user's own server stays quick while it holds few of our sessions; the next ones get their own.
_FEW = 8
# A pane takes a descriptor, a viewer a few more; a server that runs out hangs for ever.
_PER_PANE = 2
_HEADROOM = 64
# 108 bytes of a socket's address, the last for its end.
_LONGEST_SOCKET = 107
# As `Layout.sockets` ends, in whatever workspace.
_BESIDE_SESSIONS = "/sessions/.mas/tmux"
# Follows the name of a session's own socket once a person's panes have stayed there after the session.
_LEFT = ".left"
_AT_START = resource.getrlimit(resource.RLIMIT_NOFILE)[0]


class TmuxFull(NoTmux):
    """The server would run out of descriptors, and then hang for ever."""

    def __init__(self, socket: str, panes: int) -> None:
        super().__init__(
            f"The tmux server at {socket} has too few file descriptors left for {panes} more panes",
            "MAS_TMUX_SERVER=session mas start",
        )


class Servers:
    """The servers one workspace may use.

    With `connections`, shared servers are always spoken to through one, a session's own only while it is watched.
    """

    def __init__(self, settings: Settings, sockets: str, connections: Connections | None = None) -> None:
        self._settings = settings
        self._sockets = sockets
        self._connections = connections

    @property
    def environ(self) -> Mapping[str, str]:
        return self._settings.environ

    def at(self, socket: str) -> Tmux:
        socket = self._moved(socket)
        connections = self._connections
        if connections and not self._is_shared(socket) and not connections.is_held(socket):
            connections = None
        return Tmux(socket, self.is_private(socket), self._settings.environ, connections)

    def watching(self, socket: str) -> AbstractContextManager[None]:
        """While a team of this server is watched, looks at it come often and should cost little."""
        if self._connections and not self._is_shared(socket):
            return self._connections.holding(socket)
        return nullcontext()

    def _is_shared(self, socket: str) -> bool:
        return socket in (self._settings.user_socket, self._private("workspace"))

    def is_private(self, socket: str) -> bool:
        """Whether a server is one of ours: by where it is, whichever server the user is in at the moment."""
        return os.path.dirname(socket) in (self._sockets, self._settings.private_sockets)

    def is_own(self, socket: str, name: str) -> bool:
        """Whether a server was made for that one session of this workspace, and lives exactly as long as it."""
        return socket in self.own({socket: name})

    def own(self, names: Mapping[str, str]) -> set[str]:
        """Which of these sockets, each with its session's name, are such a server's: by one look at their directory."""
        ours = [socket for socket, name in names.items() if socket == self._private(name)]
        there: set[str] = set()
        for directory in {os.path.dirname(socket) for socket in ours}:
            # Where it cannot be looked at, the servers themselves are asked.
            with suppress(OSError), os.scandir(directory) as entries:
                there |= {entry.path for entry in entries if not entry.is_symlink()}
        return {socket for socket in ours if socket in there and f"{socket}{_LEFT}" not in there}

    def closed(self, server: Tmux, name: str) -> None:
        """Note that a server of ours outlives its session, with panes of a person's; else clear up after it."""
        if server.listening():
            if server.socket == self._private(name):
                # On a full disk the session is closed all the same.
                with suppress(OSError):
                    os.close(os.open(f"{server.socket}{_LEFT}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
            return
        # tmux leaves the socket of a server that has ended.
        for path in (f"{server.socket}{_LEFT}", server.socket):
            with suppress(FileNotFoundError):
                os.unlink(path)

    def _moved(self, socket: str) -> str:
        """Where a server's socket is now: one beside the sessions moves with the workspace."""
        directory, name = os.path.split(socket)
        if directory == self._sockets or not directory.endswith(_BESIDE_SESSIONS):
            return socket
        return os.path.join(self._sockets, name)

    def user(self) -> Tmux:
        return self.at(self._settings.user_socket)

    def place(self, name: str, panes: int) -> str:
        """The socket of a server with room for a team of `panes`."""
        mode = self._settings.tmux_server
        if mode is ServerMode.SESSION:
            return self._private(name)
        if mode is ServerMode.WORKSPACE:
            return self._with_room(self.at(self._private("workspace")), panes)
        if mode is ServerMode.DEFAULT:
            return self._with_room(self.user(), panes)
        return self.user().socket if self._user_is_small(panes) else self._private(name)

    def _user_is_small(self, panes: int) -> bool:
        server = self.user()
        pid = server.pid()
        if pid is None:
            return True
        ours = sum(1 for session in sessions_at(server) if session.startswith("mas-"))
        return ours < _FEW and has_room(pid, panes) is True

    def _with_room(self, server: Tmux, panes: int) -> str:
        self.check_room(server, panes)
        return server.socket

    def check_room(self, server: Tmux, panes: int) -> None:
        """`TmuxFull` if opening `panes` more would bring the server near its limit."""
        pid = server.pid()
        if pid is not None and has_room(pid, panes) is False:
            raise TmuxFull(server.socket, panes)

    def scope_for(self, server: Tmux, name: str) -> tuple[str, ...]:
        """What to start a server with that would else end when its starter logs out; nothing if it runs already."""
        if "XDG_SESSION_ID" not in self._settings.environ or server.listening():
            return ()
        from mas.runtime.limits.scope import Logout, Scopes, server_scope

        stays = Scopes(self._settings.environ).at_logout()
        return server_scope(name) if stays is Logout.STAYS_IN_SCOPE else ()

    @contextmanager
    def opening(self, server: Tmux, panes: int) -> Iterator[None]:
        """Opens teams on a shared server one after the other: the room that was seen is the room there is."""
        self.ready(server)
        with self.changing(server):
            if self._is_shared(server.socket):
                self.check_room(server, panes)
            yield

    def changing(self, server: Tmux) -> AbstractContextManager[None]:
        """Opens or closes a team on a shared server while no other process does."""
        return changing(server.socket) if self._is_shared(server.socket) else nullcontext()

    def _private(self, name: str) -> str:
        """A socket of our own: beside the sessions, or in a short place where that path is too long."""
        path = f"{self._sockets}/{name}.sock"
        if len(os.fsencode(path)) <= _LONGEST_SOCKET:
            return path
        import hashlib

        where = hashlib.sha256(os.fsencode(self._sockets)).hexdigest()[:8]
        return os.path.join(self._settings.private_sockets, f"{where}-{name}.sock")

    def ready(self, server: Tmux) -> None:
        """Make the socket's directory, ours alone, and see that a server we start gets all descriptors."""
        directory = os.path.dirname(server.socket)
        if not os.path.lexists(directory):
            os.makedirs(directory, mode=0o700, exist_ok=True)
            os.chmod(directory, 0o700)
        # A server the user already runs may be kept anywhere, such as in a shared directory with `tmux -S`.
        if not (is_ours_alone(directory) or (not server.private and _is_our_socket(server.socket))):
            raise NoTmux(f"{directory} must be a directory that only you have access to", f"ls -ld {directory}")
        raise_descriptor_limit()


def _is_our_socket(path: str) -> bool:
    """Whether a socket was made by this user; no other user can fake that."""
    try:
        info = os.stat(path, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return stat.S_ISSOCK(info.st_mode) and info.st_uid == os.getuid()


def sessions_at(server: Tmux) -> frozenset[str]:
    """The tmux sessions of a server, in one call; none if it has ended since it was seen to listen."""
    return frozenset(look(server, ["list-sessions", "-F", "#{session_name}"]).splitlines())


def look(server: Tmux, listing: Command, asked: PreparedClient | None = None) -> str:
    """What a server lists; nothing if it has ended since it was seen to listen, or has no tmux session to list from.

    It may have been `asked` before.
    """
    try:
        return asked.finish() if asked else server.run(listing)
    except TmuxFailed:
        if server.listening() and (listing[0] == "list-sessions" or sessions_at(server)):
            raise
        return ""


def has_room(pid: int, panes: int) -> bool | None:
    """Whether the server can open `panes` more; None if the system does not say."""
    try:
        with open(f"/proc/{pid}/limits", encoding="ascii") as file:
            soft = next(line.split()[3] for line in file if line.startswith("Max open files"))
        used = len(os.listdir(f"/proc/{pid}/fd"))
    except (OSError, StopIteration):
        return None
    return soft == "unlimited" or used + panes * _PER_PANE + _HEADROOM <= int(soft)


def raise_descriptor_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def usual_descriptor_limit() -> int:
    """The soft limit this process was started with, for the agents to have again."""
    return _AT_START
