"""One tmux server, used through its command line. Text never passes through a shell or a format."""

from __future__ import annotations

# Not `socket`, which makes enums of 400 constants: every command would pay 2 ms for them.
import _socket
import errno
import os
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import IO, TYPE_CHECKING

from mas.model.errors import NoTmux

if TYPE_CHECKING:
    from mas.runtime.control import Connections

_PATIENCE = 30.0
_INSTALL = "brew" if sys.platform == "darwin" else "sudo apt-get"
# What is started from inside an agent, and stays, is no process of that agent's session.
NOT_OURS = ("TMUX", "TMUX_PANE", "MAS_PANE")
# A socket's flags in /proc/net/unix once it accepts connections.
_LISTENING = "00010000"
_NOBODY_THERE = {errno.ENOENT, errno.ECONNREFUSED, errno.ENOTDIR}

Command = Sequence[str]


class TmuxFailed(NoTmux):
    """tmux answered, and the answer was no."""

    def __init__(self, command: str, reason: str, printed: str = "") -> None:
        super().__init__(f"tmux refused {command}: {reason or 'no reason given'}", "mas doctor")
        self.reason = reason
        self.printed = printed
        """What the commands before the refused one printed."""


def not_installed() -> NoTmux:
    return NoTmux("tmux is not installed", f"{_INSTALL} install tmux")


class Tmux:
    """The server at one socket. `private` ones are ours alone and read no configuration file.

    Commands go through a kept connection where there are `connections`; else each is a process of its own.
    """

    def __init__(
        self, socket_path: str, private: bool, environ: Mapping[str, str], connections: Connections | None = None
    ) -> None:
        self.socket = socket_path
        self.private = private
        self.environ = {key: value for key, value in environ.items() if key not in NOT_OURS}
        self._connections = connections

    def argv(self, *commands: Command) -> list[str]:
        """One invocation for all `commands`."""
        # -u: without it a client in a plain locale would get other scripts as question marks.
        argv = ["tmux", "-u", "-S", self.socket]
        if self.private:
            argv += ["-f", os.devnull]
        for position, command in enumerate(commands):
            if position:
                argv.append(";")
            argv += [_literal(word) for word in command]
        return argv

    def control_argv(self, session: str) -> list[str]:
        """A control-mode client attached to a session; -N: it must not start a server."""
        where = ["attach-session", "-E", "-f", "no-output,ignore-size", "-t", f"={session}"]
        first, *rest = self.argv(where)
        return [first, "-N", "-C", *rest]

    def run(self, *commands: Command, stdin: bytes | None = None, cwd: str | None = None) -> str:
        """What tmux printed; `TmuxFailed` if it refused, `NoTmux` if it does not answer."""
        if self._connections and stdin is None and cwd is None:
            answer = self._connections.ask(self, commands, _PATIENCE)
            if answer is not None:
                return answer
        return self.alone(*commands, stdin=stdin, cwd=cwd)

    def alone(
        self, *commands: Command, stdin: bytes | None = None, cwd: str | None = None, before: Command = ()
    ) -> str:
        """The same by a process of its own, which another program may run: the one `before`."""
        argv = [*before, *self.argv(*commands)]
        try:
            with _to_read(stdin) as file:
                done = subprocess.run(
                    argv,
                    stdin=file,
                    capture_output=True,
                    cwd=cwd,
                    env=self.environ,
                    timeout=_PATIENCE,
                    check=False,
                )
        except OSError as error:
            if isinstance(error, FileNotFoundError) and error.filename != cwd:
                raise not_installed() from None
            raise NoTmux(f"tmux cannot be started: {os.strerror(error.errno or 0)}", "mas doctor") from None
        except subprocess.TimeoutExpired:
            raise self._silent() from None
        return _output_of(commands[0][0], done.returncode, done.stdout, done.stderr)

    def prepare(self, *commands: Command) -> PreparedClient | None:
        """A process for commands whose input comes later, or whose output is wanted later; None if there is none.

        That is so where it cannot be started, and where a kept connection is quicker.
        """
        if self._connections:
            return None
        try:
            process = subprocess.Popen(
                self.argv(*commands),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self.environ,
            )
        except OSError:
            return None
        return PreparedClient(process, commands[0][0], self._silent())

    def _silent(self) -> NoTmux:
        return NoTmux(f"tmux at {self.socket} did not respond within {_PATIENCE:.0f} s", "mas doctor")

    def listening(self) -> bool:
        """Whether a server is there. Only a clear no is a no: anything unclear is `NoTmux`."""
        return self.pid() is not None

    def pid(self) -> int | None:
        """The server's process (0 if the system does not say), None if there is no server."""
        with closing(_socket.socket(_socket.AF_UNIX)) as probe:
            probe.settimeout(_PATIENCE)
            try:
                probe.connect(self.socket)
            except OSError as error:
                if error.errno in _NOBODY_THERE:
                    return None
                raise NoTmux(f"Cannot connect to tmux at {self.socket}: {error}", "mas doctor") from None
            if not hasattr(_socket, "SO_PEERCRED"):
                return 0
            credentials = probe.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", credentials)[0])

    def remind(self) -> None:
        """Have the server look which of its children have ended."""
        try:
            if pid := self.pid():
                os.kill(pid, signal.SIGCHLD)
        except (ProcessLookupError, PermissionError):
            return


class PreparedClient:
    """A client that was started before there was anything for it to read, or before we had time for what it prints."""

    # What a pipe takes in one piece: should we be killed, the client gets all of it or nothing.
    MOST = select.PIPE_BUF

    def __init__(self, process: subprocess.Popen[bytes], command: str, silent: NoTmux) -> None:
        self._process = process
        self._command = command
        self._silent = silent

    def printed_before(self, end: str) -> str:
        """What tmux printed before the line `end`, while the client waits for what it must read."""
        printed, last = b"", f"{end}\n".encode()
        stdout = self._process.stdout
        assert stdout is not None
        deadline = time.monotonic() + _PATIENCE
        while not printed.endswith(last):
            if not select.select([stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise self._silent
            if not (data := os.read(stdout.fileno(), select.PIPE_BUF)):
                # It has ended, and that says why.
                self.finish()
                raise TmuxFailed(self._command, "")
            printed += data
        return printed.removesuffix(last).decode("utf-8", "surrogateescape")

    def finish(self, data: bytes = b"") -> str:
        """What tmux printed, once the client has read `data`: `MOST` bytes, or fewer."""
        try:
            printed, stderr = self._process.communicate(data, timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            raise self._silent from None
        finally:
            self.cancel()
        return _output_of(self._command, self._process.returncode, printed, stderr)

    def cancel(self) -> None:
        """End the client, unless it has ended. Cancelling twice is fine."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe:
                pipe.close()


def _output_of(command: str, status: int, printed: bytes, stderr: bytes) -> str:
    text = printed.decode("utf-8", "surrogateescape")
    if status:
        raise TmuxFailed(command, stderr.decode("utf-8", "replace").strip(), text)
    return text


@contextmanager
def _to_read(data: bytes | None) -> Iterator[int]:
    """A process's input, complete before the process starts: if we are killed, it does not get half of it."""
    if data is None:
        yield subprocess.DEVNULL
        return
    with _nameless() as file:
        file.write(data)
        file.seek(0)
        yield file.fileno()


def _nameless() -> IO[bytes]:
    """A file without a name, in memory where that can be had."""
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("mas"), "w+b")
    from tempfile import TemporaryFile

    return TemporaryFile()


def listening_sockets() -> frozenset[str]:
    """Every listening socket, from one look at the kernel's list; empty if there is no list.

    Asking hundreds of servers would wake them all. One that is not in the list must still be asked.
    """
    try:
        with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as file:
            fields = [line.rstrip("\n").split(None, 7) for line in file]
    except OSError:
        return frozenset()
    return frozenset(field[7] for field in fields if len(field) > 7 and field[3] == _LISTENING)


def quoted(word: str) -> str:
    """An argument for tmux's own parser: between single quotes only the quote itself has a meaning."""
    return "'" + word.replace("'", "'\\''") + "'"


def _literal(word: str) -> str:
    """An argument that ends in `;` would end the command."""
    return word[:-1] + "\\;" if word.endswith(";") else word
