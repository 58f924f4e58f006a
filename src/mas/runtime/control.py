"""Open connections to tmux servers: a command over one starts no process.

tmux answers a client in control mode only while that client is attached to a session, so each connection is
attached to one of ours: without output (a client that gets output and stops reading would freeze every agent),
without a say in the size of windows, and without touching the session's environment.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import subprocess
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from threading import Condition, Event, Lock, Thread

from mas.model.errors import NoTmux
from mas.runtime.changing import unchanged
from mas.runtime.threads import started
from mas.runtime.tmux import Command, Tmux, TmuxFailed, quoted

_LOOKING = frozenset(("capture-pane", "display-message", "list-panes", "list-sessions", "list-windows", "show-options"))
# The other commands that are allowed here. None of them can end the session that the connection is attached to.
_DOING = frozenset(("copy-mode", "if-shell", "resize-pane", "resize-window", "send-keys"))
# Longer ones are too long for a message to the server as well; more words overflow tmux's parser.
_LONGEST_LINE = 16 << 10
_MOST_WORDS = 2000
_OURS = re.compile(r"mas-[0-9a-f]{8}")
_IDLE = 60.0
# How long a client may take to exit after it was asked to.
_ENDING = 1.0
# How long one that is being opened when all are closed is waited for.
_OPENING = 5.0
_NEXT_TRY = 1.0
_BLOCK = 1 << 16
# Which process a client belongs to.
_OWNER = "MAS_CONTROL"
_CLIENT = "tmux: client"


class Connections:
    """All connections of this process, each opened when it is first used. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._settled = Condition(self._lock)
        self._open: dict[str, _Connection] = {}
        self._made: list[_Connection] = []
        self._opening: set[str] = set()
        self._not_before: dict[str, float] = {}
        self._holds: Counter[str] = Counter()
        self._closed = False

    def ask(self, server: Tmux, commands: Sequence[Command], patience: float) -> str | None:
        """What tmux printed; None if nothing of it was done, so that it can be asked another way.

        `TmuxFailed` if tmux refused, `NoTmux` if it did not answer or may have done it before the connection broke.
        """
        line = line_of(commands)
        connection = self._connection(server, patience) if line else None
        if not line or not connection:
            return None
        try:
            return connection.ask(commands[0][0], line, patience)
        except _NotSaid:
            return None
        except _Cut:
            if all(command[0] in _LOOKING for command in commands):
                return None
            raise NoTmux(f"tmux at {server.socket} exited during a command", "mas list") from None

    @contextmanager
    def holding(self, path: str) -> Iterator[None]:
        """Use a connection to this server while held; the last one to let go ends it."""
        with self._lock:
            self._holds[path] += 1
        try:
            yield
        finally:
            with self._lock:
                self._holds[path] -= 1
                last = None
                if not self._holds[path]:
                    del self._holds[path]
                    last = self._open.pop(path, None)
            if last:
                last.end()

    def is_held(self, path: str) -> bool:
        return path in self._holds

    def close(self) -> None:
        """End all connections and reap their processes. Closing twice is fine; what is asked later is not done here."""
        with self._lock:
            self._closed = True
            made, self._made = self._made, []
            self._open.clear()
            # A thread that is opening one sees that it must not, and closes it.
            self._settled.wait_for(lambda: not self._opening, _OPENING)
        for connection in made:
            connection.end()
        for connection in made:
            connection.wait()

    def _connection(self, server: Tmux, patience: float) -> _Connection | None:
        path = server.socket
        with self._lock:
            there = self._open.get(path)
            if there and not there.ended:
                return there
            # One thread opens it; the others need not wait for that.
            if self._closed or path in self._opening or time.monotonic() < self._not_before.get(path, 0.0):
                return None
            self._opening.add(path)
        opened: _Connection | None = None
        try:
            # If a team comes or goes, the next try is a moment later.
            with unchanged(path) as can_begin:
                opened = _opened(server, patience) if can_begin else None
            kept = self._keep(path, opened)
            if opened and not kept:
                opened.end()
                opened.wait()
        finally:
            with self._settled:
                self._opening.discard(path)
                self._settled.notify_all()
        return kept

    def _keep(self, path: str, opened: _Connection | None) -> _Connection | None:
        with self._lock:
            if self._closed:
                return None
            # Those that have been let go may still be ending.
            self._made = [connection for connection in self._made if connection.lives]
            if opened:
                self._made.append(opened)
                self._open[path] = opened
                self._not_before.pop(path, None)
            else:
                self._open.pop(path, None)
                self._not_before[path] = time.monotonic() + _NEXT_TRY
            return opened


def end_orphans(*where: str) -> None:
    """End the clients of processes that are gone: of servers with these sockets, or sockets in these directories.

    tmux drops a client only when the client has read all of tmux's output. A client that was being written to when its
    process was killed stays for ever, and with it a server that should have ended with its last session.
    """
    import psutil

    for process in psutil.process_iter():
        try:
            if process.name() != _CLIENT:
                continue
            owner = process.environ().get(_OWNER, "")
            if owner.isdigit() and int(owner) != process.ppid() and _is_at(process.cmdline(), where):
                process.kill()
        except (psutil.Error, OSError):
            continue


def _is_at(argv: list[str], where: tuple[str, ...]) -> bool:
    """Whether a client was started for one of these places, or its socket was moved since, with its workspace."""
    path = next((after for word, after in pairwise(argv) if word == "-S"), "")
    return path in where or os.path.dirname(path) in where or not os.path.lexists(path)


def line_of(commands: Sequence[Command]) -> str | None:
    """The commands as tmux's own parser reads them; None if they cannot be written or sent so."""
    if any(command[0] not in _LOOKING and command[0] not in _DOING for command in commands):
        return None
    if sum(map(len, commands)) > _MOST_WORDS or not all(_is_plain(word) for command in commands for word in command):
        return None
    line = " ; ".join(" ".join(map(quoted, command)) for command in commands)
    return line if len(line.encode()) <= _LONGEST_LINE else None


def _is_plain(word: str) -> bool:
    """Whether an argument can be part of a line: no control characters, only UTF-8."""
    return not any(letter < " " or letter == "\x7f" or "\ud800" <= letter <= "\udfff" for letter in word)


class _NotSaid(Exception):
    """The connection had ended before anything was sent."""


class _Cut(Exception):
    """The connection ended before the answer came."""


class _Request:
    """A line and the part of its response received so far; the response ends with a secret word."""

    def __init__(self) -> None:
        self.word = os.urandom(16).hex().encode()
        self.printed: list[bytes] = []
        self.refused: list[bytes] | None = None
        self.done = Event()
        self.cut = False


class _Connection:
    """One control-mode client; a thread listens to it, so that tmux never waits for us."""

    def __init__(self, server: Tmux, session: str) -> None:
        self._session = session.encode()
        self._socket_path = server.socket
        self._lock = Lock()
        self._waiting: deque[_Request] = deque()
        self._used = time.monotonic()
        self._block: bytes | None = None
        self._lines: list[bytes] = []
        self._settled = Event()
        self.ended = False
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                # Its own process group: what a terminal sends to ours is not meant for it. It ends when its input
                # does, but for what `end_orphans` is for.
                self._process = subprocess.Popen(
                    server.control_argv(session),
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    stderr=subprocess.DEVNULL,
                    env={**server.environ, _OWNER: str(os.getpid())},
                    start_new_session=True,
                )
            except OSError:
                ours.close()
                raise
        self._hearing = ours
        self._hearing.settimeout(_IDLE)
        # Its own object, since a timeout belongs to one.
        self._speaking = ours.dup()
        self._listener = Thread(target=self._listen, name=f"tmux {session}", daemon=True)
        if not started(self._listener):
            self._finish()
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    def settle(self, patience: float) -> None:
        """Wait until it is attached or has ended; a command sent earlier would reach a client without a session."""
        if not self._settled.wait(patience):
            self.end()
            raise self._silent(patience)

    def ask(self, command: str, line: str, patience: float) -> str:
        """What tmux printed for one line of commands."""
        request = self._say(line, patience)
        if not request.done.wait(patience):
            self.end()
            raise self._silent(patience)
        if request.cut:
            raise _Cut
        if request.refused is not None:
            raise TmuxFailed(command, _text(request.refused).strip())
        return _text([line + b"\n" for line in request.printed])

    def _say(self, line: str, patience: float) -> _Request:
        request = _Request()
        if not self._lock.acquire(timeout=patience):
            raise self._silent(patience)
        try:
            if self.ended:
                raise _NotSaid
            self._used = time.monotonic()
            self._waiting.append(request)
            self._speaking.settimeout(patience)
            # The second line is done even if the first is refused, so there is always an end to the answer.
            self._speaking.sendall(f"{line}\ndisplay-message -p {request.word.decode()}\n".encode())
        except OSError:
            # Part of it may have been sent; the listener ends the wait of all callers.
            self.end()
        finally:
            self._lock.release()
        return request

    def _silent(self, patience: float) -> NoTmux:
        return NoTmux(f"tmux at {self._socket_path} did not respond within {patience:.0f} s", "mas doctor")

    def end(self) -> None:
        """Have the connection end; does not wait for it."""
        self.ended = True
        try:
            self._hearing.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    @property
    def lives(self) -> bool:
        return self._listener.is_alive()

    def wait(self) -> None:
        """Wait until its process is gone."""
        self._listener.join()

    def _listen(self) -> None:
        rest = b""
        while not self.ended:
            try:
                data = self._hearing.recv(_BLOCK)
            except TimeoutError:
                self._end_if_idle()
                continue
            except OSError:
                break
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._hear(line)
        self._finish()

    def _end_if_idle(self) -> None:
        with self._lock:
            if not self._waiting and time.monotonic() - self._used >= _IDLE:
                self.end()

    def _hear(self, line: bytes) -> None:
        """One line from tmux: the end of a response, part of a block, or a notification, most of which are ignored."""
        if self._waiting and line == self._waiting[0].word:
            self._block = None
            self._waiting.popleft().done.set()
        elif self._block is not None:
            kind, _, which = line.partition(b" ")
            if which == self._block and kind in (b"%end", b"%error"):
                self._keep_block(kind == b"%error")
            else:
                self._lines.append(line)
        elif line.startswith(b"%begin "):
            self._block = line.partition(b" ")[2]
            self._lines = []
        elif line.startswith(b"%session-changed "):
            # tmux may move a client whose session was closed to any other one, where it has no business.
            self.ended = self.ended or line.split(b" ", 2)[2] != self._session
            self._settled.set()
        elif line.startswith(b"%exit"):
            self.ended = True

    def _keep_block(self, refused: bool) -> None:
        self._block = None
        if not self._waiting:
            return
        if refused:
            self._waiting[0].refused = self._lines
        else:
            self._waiting[0].printed += self._lines

    def _finish(self) -> None:
        """Wake all waiting callers, and reap the process."""
        with self._lock:
            self.ended = True
            cut = list(self._waiting)
            self._waiting.clear()
            self._hearing.close()
            self._speaking.close()
        self._settled.set()
        for request in cut:
            request.cut = True
            request.done.set()
        try:
            self._process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _opened(server: Tmux, patience: float) -> _Connection | None:
    """A connection that answers; None if the server has none of our sessions or takes no such client."""
    try:
        sessions = server.alone(["list-sessions", "-F", "#{session_name}"]).splitlines()
    except TmuxFailed:
        return None
    name = next(filter(_OURS.fullmatch, sessions), None)
    if name is None:
        return None
    try:
        connection = _Connection(server, name)
    except OSError:
        return None
    try:
        connection.settle(patience)
    finally:
        if connection.ended:
            connection.end()
            connection.wait()
    return None if connection.ended else connection


def _text(lines: list[bytes]) -> str:
    return b"".join(lines).decode("utf-8", "surrogateescape")
