"""How large a body may be, and when it must be complete."""

from __future__ import annotations

import asyncio
import time

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mas.http.errors import Refusal, refuse
from mas.http.limits import ServerLimits


class BodyLimit:
    """ASGI middleware: refuses too large a body, as announced or as it comes, and one that does not come in time."""

    def __init__(self, app: ASGIApp, limits: ServerLimits) -> None:
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = _Body(scope, receive, send, self._limits)
        if int(Headers(scope=scope).get("content-length", "0")) > self._limits.body_size:
            await body.refuse_size()
        elif scope["type"] == "websocket":
            await self._app(scope, receive, send)
        else:
            try:
                await self._app(scope, body.receive, body.send)
            except ClientDisconnect:
                # Refused while the body came, or gone.
                return


class _Body:
    """One request's body on its way in."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, limits: ServerLimits) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._limits = limits
        self._deadline = time.monotonic() + limits.body_time
        self._size = 0
        self._is_whole = self._is_answered = self._is_refused = False

    async def receive(self) -> Message:
        if self._is_whole or self._is_answered:
            return await self._receive()
        # The whole body has to come by one deadline.
        try:
            async with asyncio.timeout(max(0.0, self._deadline - time.monotonic())):
                message = await self._receive()
        except TimeoutError:
            return await self._refuse(Refusal(408, "too-slow", "The body did not arrive in time"))
        self._is_whole = not message.get("more_body", False)
        self._size += len(message.get("body", b""))
        return message if self._size <= self._limits.body_size else await self.refuse_size()

    async def send(self, message: Message) -> None:
        """Pass on the route's response, unless its body was refused: then the client no longer waits for it."""
        self._is_answered = True
        if not self._is_refused:
            await self._send(message)

    async def refuse_size(self) -> Message:
        return await self._refuse(Refusal(413, "too-large", f"A body holds at most {self._limits.body_size} bytes"))

    async def _refuse(self, refusal: Refusal) -> Message:
        """Respond, unless the route has; the route is told, as ASGI does, that the client disconnected."""
        if not self._is_answered:
            self._is_answered = self._is_refused = True
            await refuse(self._scope, self._send, refusal)
        return {"type": "http.disconnect"}
