"""Ends a stream when its token is no longer valid, or its browser signed out: a stream may last for days."""

from __future__ import annotations

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mas.http.guard.admission import TokenCheck

# How a WebSocket says that its other end may not go on.
_NOT_ANY_MORE = 1008


class Revocation:
    """ASGI middleware: looks at the token again with every part of a stream."""

    def __init__(self, app: ASGIApp, tokens: TokenCheck) -> None:
        self._app = app
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = HTTPConnection(scope)
        is_socket = scope["type"] == "websocket"
        is_cut = False

        async def is_good() -> bool:
            nonlocal is_cut
            if not is_cut and not self._tokens.is_still_good(request):
                is_cut = True
                rest = {"type": "http.response.body", "body": b"", "more_body": False}
                await send({"type": "websocket.close", "code": _NOT_ANY_MORE} if is_socket else rest)
            return not is_cut

        async def checked_receive() -> Message:
            message = await receive()
            if not is_socket or await is_good():
                return message
            return {"type": "websocket.disconnect", "code": _NOT_ANY_MORE}

        async def checked_send(message: Message) -> None:
            is_part = message["type"] == "websocket.send" or message.get("more_body", False)
            if not is_cut and (not is_part or await is_good()):
                await send(message)
            elif is_socket:
                raise ConnectionResetError("not admitted any more")
            # An HTTP route learns that the client disconnected when it next receives.

        await self._app(scope, checked_receive, checked_send)
