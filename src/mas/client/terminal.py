"""An agent's terminal behind a server, over a WebSocket."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from mas.client.connection import error_named
from mas.model.errors import AgentExited, MasError, NoServer
from mas.service.agents.terminal import Look, Piece, Screen

_PATIENCE = 30.0
# The most that is buffered for a slow reader; the rest waits at the server.
_MOST_HELD = 1 << 20
_TYPED_AT_ONCE = 32 << 10
_RESET = b"\x1bc"


class RemoteTerminal:
    """The `Terminal` of an agent behind a server; for one thread at a time.

    The server sends the whole screen again if the size or the program changed, or if too much came at once. In the
    stream that is a reset and the new screen; a `look` then returns another `run`.
    """

    def __init__(self, connect: Callable[[], ClientConnection], log_path: str) -> None:
        """Opens it; `NoAgent` and the like where that cannot be."""
        self._connect = connect
        self._log_path = log_path
        self._socket: ClientConnection | None = None
        # Bytes of the stream that were not read yet, and the position of the first of them.
        self._held = bytearray()
        self._begin = 0
        self._size: tuple[int, int] | None = None
        self._screen: Screen | None = None
        self._screens = 0
        self._shown = False
        self._ended = False
        self._exit_status: int | None = None
        self._refusal: MasError | None = None
        self._opened()

    @property
    def log_path(self) -> str:
        """A file on the server's machine."""
        return self._log_path

    def look(self, fresh: bool = False) -> Look:
        self._take()
        screen = self._opened()
        return Look(str(self._screens), screen.columns, screen.rows, self._ended, self._exit_status)

    def snapshot(self) -> Screen:
        if self._shown:
            # Another one is had by coming again.
            self.close()
        screen = self._opened()
        self._shown = True
        return screen

    def read(self, position: int, most: int) -> Piece:
        self._take()
        start = max(position - self._begin, 0)
        # No reader goes back.
        del self._held[:start]
        self._begin += start
        data = bytes(self._held[:most])
        return Piece(data, self._begin + len(data), len(self._held) - len(data))

    def type(self, data: bytes) -> None:
        self._take()
        self._raise_refusal()
        if self._ended:
            raise AgentExited("The agent's program has exited", "mas show")
        for start in range(0, len(data), _TYPED_AT_ONCE):
            self._send(data[start : start + _TYPED_AT_ONCE])

    def resize(self, columns: int, rows: int) -> None:
        self._take()
        self._raise_refusal()
        self._send(json.dumps({"type": "resize", "columns": columns, "rows": rows}))

    def close(self) -> None:
        socket, self._socket = self._socket, None
        self._screen = None
        if socket is not None:
            socket.close()

    def _opened(self) -> Screen:
        """The screen that it began with, or begins with now."""
        if self._socket is None:
            self._begin += len(self._held)
            self._held.clear()
            self._socket = self._connect()
            self._shown = False
        deadline = time.monotonic() + _PATIENCE
        while self._screen is None:
            if not self._frame(deadline - time.monotonic()):
                self.close()
                raise NoServer("The server does not show the terminal", "mas output")
            self._raise_refusal()
        return self._screen

    def _take(self) -> None:
        """Take in what has come."""
        self._opened()
        while len(self._held) < _MOST_HELD and self._frame(0):
            pass

    def _raise_refusal(self) -> None:
        """Raises what was refused since the last call: a frame has no response of its own."""
        error, self._refusal = self._refusal, None
        if error is not None:
            raise error

    def _frame(self, timeout: float) -> bool:
        """Take in one frame, if one comes in time."""
        assert self._socket is not None
        try:
            frame = self._socket.recv(max(timeout, 0))
        except TimeoutError:
            return False
        except ConnectionClosed as error:
            self.close()
            self._raise_refusal()
            raise NoServer(f"The server closed the terminal: {error}", "mas serve --detach") from None
        if isinstance(frame, bytes):
            self._bytes(frame)
        else:
            self._fields(json.loads(frame))
        return True

    def _bytes(self, data: bytes) -> None:
        if self._size is None:
            self._held += data
            return
        first = self._screen is None
        if not first:
            self._held += _RESET + data
        self._screen = Screen(data, *self._size, self._begin + len(self._held), exact=False)
        self._size = None
        self._screens += 1
        self._ended, self._exit_status = False, None

    def _fields(self, fields: dict[str, Any]) -> None:
        what = fields.get("type")
        if what == "screen":
            self._size = (int(fields["columns"]), int(fields["rows"]))
        elif what == "end":
            self._ended, self._exit_status = True, fields.get("exitStatus")
        elif what == "error":
            self._refusal = error_named(str(fields["code"]), str(fields["message"]))

    def _send(self, frame: bytes | str) -> None:
        assert self._socket is not None
        try:
            self._socket.send(frame)
        except ConnectionClosed as error:
            self.close()
            raise NoServer(f"The server closed the terminal: {error}", "mas serve --detach") from None
