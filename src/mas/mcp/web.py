"""The tools on the server, at `/mcp`: each caller acts as the agent or person that its token names."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from anyio import to_thread
from starlette.types import Receive, Scope, Send

from mas.mcp.tools import Speaker
from mas.model.errors import Forbidden, Unavailable
from mas.model.ids import SessionId, parse_agent_id
from mas.model.principal import Principal
from mas.service.mas import Mas
from mas.service.shares import Shares

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

PATH = "/mcp"
_T = TypeVar("_T")
_LARGEST_BODY = 8 << 20


class Threads(Protocol):
    """Runs work of callers, each in its share of threads."""

    async def run(self, caller: Principal, work: Callable[[], _T]) -> _T:
        """What `work` returns."""


class WebDoor:
    """An ASGI app. Each request stands for itself: nothing is kept between them, so a new server knows all clients.

    The SDK is loaded when the first one comes; most servers never need it, and it would double what they take.
    """

    def __init__(self, mas: Mas, waiters: Shares, threads: Threads) -> None:
        self._mas = mas
        self._waiters = waiters
        self._threads = threads
        self._wanted = asyncio.Event()
        self._decided = asyncio.Event()
        self._manager: StreamableHTTPSessionManager | None = None

    async def run(self) -> None:
        """Serve from the first request until cancelled. If it fails, clients are refused until it runs again."""
        await self._wanted.wait()
        try:
            manager = await to_thread.run_sync(self._load)
            async with manager.run():
                self._manager = manager
                self._decided.set()
                await asyncio.Event().wait()
        finally:
            self._manager = None
            self._decided.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._wanted.set()
        await self._decided.wait()
        if self._manager is None:
            raise Unavailable(
                "The tools for agents do not work right now; the server's log says why", "see logs/api.log"
            )
        await self._manager.handle_request(scope, receive, send)

    def _load(self) -> StreamableHTTPSessionManager:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from mas.mcp.server import make_server

        # It logs every request, as the server's own log does.
        logging.getLogger("mcp").setLevel(logging.WARNING)
        server = make_server(
            lambda context: _speaker(self._mas, context.request),
            lambda context: self._waiters.place(_principal(context.request)),
            lambda context, work: self._threads.run(_principal(context.request), work),
        )
        return StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=_LARGEST_BODY
        )


def _principal(request: Any) -> Principal:  # noqa: ANN401 - the SDK leaves it open
    principal: Principal | None = getattr(getattr(request, "state", None), "principal", None)
    if principal is None:
        raise Forbidden("The caller is unknown")
    return principal


def _speaker(mas: Mas, request: Any) -> Speaker:  # noqa: ANN401 - the SDK leaves it open
    """The caller: an agent by its token; the owner as a person, or as the agent in the address."""
    principal = _principal(request)
    if not principal.is_owner:
        return Speaker(mas, SessionId(principal.session_id or ""), principal.agent)
    named, agent = request.query_params.get("session"), request.query_params.get("agent")
    session = mas.resolve(named) if named else mas.only_active()
    return Speaker(mas, session, parse_agent_id(agent) if agent else None)
