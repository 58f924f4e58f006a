"""What stays open for long: counted, and no more of it than a caller's share."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from mas.http.errors import problem, refuse
from mas.http.guard.record import method_of
from mas.http.metrics import Metrics
from mas.model.errors import TooMuch
from mas.service.shares import Shares

# Kinds of streams by the path that is read.
_KINDS = {"/events": "events", "/mcp": "tools"}


class StreamLimit:
    """ASGI middleware: holds a place for each stream, and refuses those for which there is none."""

    def __init__(self, app: ASGIApp, streams: Shares, metrics: Metrics) -> None:
        self._app = app
        self._streams = streams
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = _kind(scope)
        if kind is None:
            await self._app(scope, receive, send)
            return
        try:
            give_back = self._streams.take(scope["state"]["principal"])
        except TooMuch as error:
            await refuse(scope, send, problem(error))
            return
        try:
            with self._metrics.open_stream(kind):
                await self._app(scope, receive, send)
        finally:
            give_back()


def _kind(scope: Scope) -> str | None:
    if scope["type"] == "websocket":
        return "terminals"
    return _KINDS.get(scope["path"]) if method_of(scope) == "GET" else None
