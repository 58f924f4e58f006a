"""The record of a request: its caller, its path, its result and its duration; for the log and the metrics."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mas.http.metrics import Metrics
from mas.http.peer import Arrival, Entrance
from mas.model.principal import NOBODY

_REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LONGEST_CLIENT = 64
_UPGRADED = 101

Keep = Callable[[dict[str, Any]], None]


class Recorder:
    """ASGI middleware: gives every request an id, and counts and keeps it when it is over."""

    def __init__(self, app: ASGIApp, metrics: Metrics, keep: Keep) -> None:
        self._app = app
        self._metrics = metrics
        self._keep = keep

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.monotonic()
        status = 0
        given = Headers(scope=scope).get("x-request-id", "")
        state = scope.setdefault("state", {})
        state["request_id"] = given if _REQUEST_ID.fullmatch(given) else f"{time.time_ns():x}"

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"].endswith("response.start"):
                status = message["status"]
            elif message["type"] == "websocket.accept":
                status = _UPGRADED
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            seconds = round(time.monotonic() - began, 6)
            route = getattr(scope.get("route"), "path", "none")
            self._metrics.request(method_of(scope), route, status, seconds)
            self._keep(_record(scope, status, seconds))


def _record(scope: Scope, status: int, seconds: float) -> dict[str, Any]:
    state = scope["state"]
    principal, made = state.get("principal"), state.get("session_id")
    return {
        "requestId": state["request_id"],
        "client": client_of(scope),
        "principal": "" if principal in (None, NOBODY) else str(principal),
        "method": method_of(scope),
        "path": scope["path"][:300],
        "status": status,
        "seconds": seconds,
        "named": state.get("named_session"),
        **({"sessionId": made} if made else {}),
    }


def method_of(scope: Scope) -> str:
    return str(scope.get("method", "WEBSOCKET"))


def arrival_of(scope: Scope) -> Arrival:
    """How the connection of a request came in."""
    arrival: Arrival = scope["state"]["arrival"]
    return arrival


def client_of(scope: Scope) -> str:
    """The client's address; behind a proxy it is whatever the client says it is."""
    entrance = arrival_of(scope).entrance
    return (scope["client"] or ("", 0))[0][:_LONGEST_CLIENT] if entrance is Entrance.ADDRESS else str(entrance)
