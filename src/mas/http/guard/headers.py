"""The headers of every response."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
)


class DefaultHeaders:
    """ASGI middleware: adds the request's id, and those of `HEADERS` that the route has not set."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"].endswith("response.start"):
                named = {name for name, _ in message["headers"]}
                extra = [(name, value) for name, value in HEADERS if name not in named]
                request_id = (b"x-request-id", scope["state"]["request_id"].encode())
                message["headers"] = [*message["headers"], *extra, request_id]
            await send(message)

        await self._app(scope, receive, with_headers)
