"""Live terminals over WebSocket: one agent per socket, or many agents on one.

Out: `{"type":"screen","columns","rows"}` and then one binary frame to start afresh with; binary frames, the bytes
the agent prints; `{"type":"end","exitStatus"?}`; `{"type":"error","code","message"}`. In: binary frames, keys;
`{"type":"input","data"}`, keys as text; `{"type":"resize","columns","rows"}`; `{"type":"ack","bytes"}`, after the
first of which at most 1 MiB is sent ahead.

On a socket for many every text frame has a `channel`, every binary one begins with it as two bytes, high one first;
`{"type":"subscribe","channel","sessionId","agent"}` and `{"type":"unsubscribe","channel"}` open and close one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from typing import Any

from fastapi import APIRouter, WebSocket, WebSocketDisconnect

from mas.http.dependencies import Server, full_id
from mas.http.guard.tickets import chosen_protocol
from mas.http.state import ServerState
from mas.http.viewer import Outlet, Size, Viewer, refused
from mas.model.errors import BadInput, MasError, NotFound
from mas.model.ids import parse_agent_id, parse_reference, shown

router = APIRouter(tags=["terminals"])

_LONGEST_FRAME = 64 << 10
_MOST_CHANNELS = 256
_HIGHEST_CHANNEL = 65535
_ABUSE = 1008
_FAILED = 1011
_UNKNOWN = 4404
_INVALID = 4422


class _Abuse(BadInput):
    """A frame that no correct client sends; the socket is closed."""


@router.websocket("/sessions/{session_id}/agents/{agent}/terminal")
async def terminal(websocket: WebSocket, server: Server, session_id: str, agent: str) -> None:
    """One agent's terminal."""
    await websocket.accept(chosen_protocol(websocket))
    socket = _Socket(websocket)
    try:
        viewer = _viewer(server, session_id, agent, socket)
        await _first_of(viewer.run(), socket.minding(_serve_one(socket, viewer)))
    except BadInput as error:
        await socket.close(error, _INVALID)
    except NotFound as error:
        await socket.close(error, _UNKNOWN)
    except MasError as error:
        await socket.close(error, _FAILED)


@router.websocket("/terminals")
async def terminals(websocket: WebSocket, server: Server) -> None:
    """The terminals of many agents."""
    await websocket.accept(chosen_protocol(websocket))
    socket = _Socket(websocket)
    async with asyncio.TaskGroup() as tasks:
        channels = _Channels(server, socket, tasks)
        try:
            await socket.minding(channels.serve())
        finally:
            channels.close()


async def _first_of(*works: Coroutine[Any, Any, None]) -> None:
    """Do all of these until one of them is over."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task in done:
        task.result()


async def _serve_one(socket: _Socket, viewer: Viewer) -> None:
    async for frame in socket.frames():
        try:
            await _put(viewer, frame)
        except MasError as error:
            await socket.send(refused(error))


async def _put(viewer: Viewer, frame: bytes | dict[str, Any]) -> None:
    """Hand a viewer what it was sent; `BadInput` if that makes no sense."""
    if isinstance(frame, bytes):
        await viewer.put(frame)
        return
    what = frame.get("type")
    if what == "input":
        try:
            await viewer.put(_text(frame, "data").encode())
        except UnicodeEncodeError:
            raise BadInput("data is not text") from None
    elif what == "resize":
        await viewer.put(Size(_number(frame, "columns"), _number(frame, "rows")))
    elif what == "ack":
        viewer.ack(_number(frame, "bytes"))
    else:
        raise BadInput(f"Not a type of frame: {shown(str(what))}")


def _viewer(server: ServerState, session_id: str, agent: str, outlet: Outlet) -> Viewer:
    """A viewer of the agent that these words name, which are checked before anything else is."""
    session, name = parse_reference(session_id), parse_agent_id(agent)
    mas = server.mas
    return Viewer(server.hall, lambda: mas.terminal(full_id(mas, session), name), outlet)


class _Socket:
    """Frames of one WebSocket, sent one after the other, in the order of their calls."""

    def __init__(self, websocket: WebSocket) -> None:
        self._websocket = websocket
        self._turn = asyncio.Lock()
        self._gone = False

    async def send(self, fields: dict[str, Any] | None, data: bytes | None = None) -> None:
        """Send a text frame and a binary one, or either; nothing once the other side is gone."""
        async with self._turn:
            try:
                if fields is not None and not self._gone:
                    await self._websocket.send_text(json.dumps(fields, separators=(",", ":")))
                if data is not None and not self._gone:
                    await self._websocket.send_bytes(data)
            except WebSocketDisconnect:
                # The receiving side notices it too, and ends the connection.
                self._gone = True

    async def close(self, error: MasError, code: int) -> None:
        """Say why, and close."""
        await self.send(refused(error))
        if not self._gone:
            self._gone = True
            with suppress(WebSocketDisconnect):
                await self._websocket.close(code)

    async def minding(self, serving: Coroutine[Any, Any, None]) -> None:
        """Serve; a client that sends invalid frames is disconnected."""
        try:
            await serving
        except _Abuse as error:
            await self.close(error, _ABUSE)

    async def frames(self) -> AsyncIterator[bytes | dict[str, Any]]:
        """What comes in, until the other side is gone."""
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                self._gone = True
                return
            frame: bytes | str = message["bytes"] if message.get("bytes") is not None else message["text"]
            if len(frame) > _LONGEST_FRAME:
                raise _Abuse(f"A frame has at most {_LONGEST_FRAME} bytes")
            yield frame if isinstance(frame, bytes) else _fields(frame)


def _fields(text: str) -> dict[str, Any]:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        raise _Abuse("A text frame is JSON") from None
    if not isinstance(fields, dict):
        raise _Abuse("A text frame is a JSON object")
    return fields


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise BadInput(f"{name} must be text")
    return value


def _number(fields: dict[str, Any], name: str, most: int = 1 << 40) -> int:
    value = fields.get(name)
    if type(value) is not int or not 0 <= value <= most:
        raise BadInput(f"{name} must be a whole number from 0 to {most}")
    return value


class _Channel:
    """One of many on a socket."""

    def __init__(self, socket: _Socket, number: int) -> None:
        self._socket = socket
        self._number = number

    async def send(self, fields: dict[str, Any] | None, data: bytes | None = None) -> None:
        marked = None if data is None else self._number.to_bytes(2, "big") + data
        await self._socket.send(fields and fields | {"channel": self._number}, marked)


class _Channels:
    """All viewers of one socket."""

    def __init__(self, server: ServerState, socket: _Socket, tasks: asyncio.TaskGroup) -> None:
        self._server = server
        self._socket = socket
        self._tasks = tasks
        self._open: dict[int, tuple[Viewer, asyncio.Task[None]]] = {}

    async def serve(self) -> None:
        """Do what comes in, until the other side is gone."""
        async for frame in self._socket.frames():
            if isinstance(frame, bytes):
                if len(frame) < 2:
                    raise _Abuse("A binary frame begins with two bytes, its channel")
                number, frame = int.from_bytes(frame[:2], "big"), frame[2:]
            else:
                try:
                    number = _number(frame, "channel", _HIGHEST_CHANNEL)
                except BadInput as error:
                    await self._socket.send(refused(error))
                    continue
            try:
                await self._take(number, frame)
            except MasError as error:
                await _Channel(self._socket, number).send(refused(error))

    async def _take(self, number: int, frame: bytes | dict[str, Any]) -> None:
        what = frame.get("type") if isinstance(frame, dict) else None
        if isinstance(frame, dict) and what == "subscribe":
            self._subscribe(number, frame)
        elif number not in self._open:
            raise NotFound(f"Nothing is subscribed on channel {number}")
        elif what == "unsubscribe":
            self._open.pop(number)[1].cancel()
        else:
            await _put(self._open[number][0], frame)

    def _subscribe(self, number: int, frame: dict[str, Any]) -> None:
        if number in self._open:
            raise BadInput(f"Channel {number} is in use")
        if len(self._open) >= _MOST_CHANNELS:
            raise BadInput(f"A socket has at most {_MOST_CHANNELS} channels")
        channel = _Channel(self._socket, number)
        viewer = _viewer(self._server, _text(frame, "sessionId"), _text(frame, "agent"), channel)
        self._open[number] = (viewer, self._tasks.create_task(self._run(number, viewer, channel)))

    async def _run(self, number: int, viewer: Viewer, channel: _Channel) -> None:
        try:
            await viewer.run()
        except MasError as error:
            del self._open[number]
            await channel.send(refused(error))

    def close(self) -> None:
        for _, task in self._open.values():
            task.cancel()
