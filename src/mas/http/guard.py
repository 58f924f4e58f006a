"""The guard in front of every route: whom a request comes from, and whether it may.

It refuses, in this order: a foreign Host (DNS rebinding), a foreign Origin (other sites' pages), a missing or
wrong token, what a token is not good for, too many requests, too large or too slow a body.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterable
from typing import Any

from fastapi import Response
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mas.http.errors import problem, refusal
from mas.http.limits import Limits
from mas.http.page import ASSETS
from mas.model.errors import Forbidden, MasError, NotSignedIn, TooMuch
from mas.model.principal import NOBODY, OWNER, Principal
from mas.service.access import Access

# The page holds nothing but itself: what it shows it has to ask for, and for that it has to sign in.
_OPEN = {"/", "/health", "/login", "/favicon.ico"}
# What an agent's token is good for, in its own session only.
_FOR_AGENTS = tuple(
    (method, re.compile(path))
    for method, path in (
        ("GET", r"messages"),
        ("POST", r"messages"),
        ("GET", r"agents"),
        ("GET", r"agents/[0-9]{2}/output"),
        ("POST", r"agents/(?P<self>[0-9]{2})/report"),
        ("GET", r"wait"),
    )
)
# Where the tools of agents are; whoever asks there speaks for itself.
_TOOLS = "/mcp"
_SAFE = {"GET", "HEAD", "OPTIONS"}
_REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?", re.IGNORECASE)
_MOST_CALLERS = 4096
_LONGEST_CLIENT = 64
# How a WebSocket says that its other end may not go on.
_NOT_ANY_MORE = 1008
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
)

Told = Callable[[dict[str, Any]], None]


class Rates:
    """A bucket of requests per caller that fills again with time."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate = rate
        self._burst = burst
        self._left: dict[str, tuple[float, float]] = {}

    def allow(self, caller: str, now: float) -> bool:
        """Whether there is one more for `caller`; takes it."""
        left, at = self._left.pop(caller, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        while len(self._left) >= _MOST_CALLERS:
            del self._left[next(iter(self._left))]
        self._left[caller] = (left - 1 if left >= 1 else left, now)
        return left >= 1


class Guard:
    """ASGI middleware. Tells `told` of every request when it is over."""

    def __init__(
        self, app: ASGIApp, access: Access, hosts: Iterable[str], cookie: str, limits: Limits, told: Told
    ) -> None:
        self._app = app
        self._access = access
        self._hosts = {host.lower() for host in hosts}
        self._cookie = cookie
        self._limits = limits
        self._told = told
        self._rates = Rates(limits.rate, limits.burst)
        self._failures = Rates(limits.failed_rate, limits.failed_burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        request = _Request(scope, receive, send)
        try:
            try:
                principal = self._admitted(request)
            except MasError as error:
                await request.refuse(problem(error, request.id))
                return
            scope["state"]["principal"] = principal
            scope["state"]["request_id"] = request.id
            if request.announced() > self._limits.body_size:
                await request.refuse(_too_large(self._limits, request.id))
                return
            request.is_admitted = lambda: self._is_still(principal, request)
            await request.pass_on(self._app, self._limits)
        finally:
            self._told(request.record())

    def _admitted(self, request: _Request) -> Principal:
        """Who asks; a `MasError` if they may not."""
        if not request.on_socket_file:
            self._check_host(request)
        _check_origin(request)
        principal = self._principal(request)
        caller = f"{request.client} {principal or ''}"
        if not self._rates.allow(caller, time.monotonic()):
            raise TooMuch("Too many requests; wait a second")
        if request.path in _OPEN or request.path.startswith(ASSETS):
            return principal or NOBODY
        if principal is None:
            if not self._failures.allow(request.client, time.monotonic()):
                raise TooMuch("Too many requests without a good token; wait a second")
            raise NotSignedIn("A token is needed", "mas token; mas url")
        if not principal.is_owner and not _is_for_agent(principal, request.method, request.path):
            raise Forbidden(f"The token of {principal} is not good for {request.method} {request.path[:100]}")
        request.principal = str(principal)
        return principal

    def _check_host(self, request: _Request) -> None:
        given = ", ".join(request.headers.getlist("host"))
        host = _HOST.fullmatch(given)
        if host is None or host[1].strip("[]").lower() not in self._hosts:
            raise Forbidden(f"This server is not called {given[:100]!r}", "mas serve --allow-host NAME")

    def _is_still(self, principal: Principal, request: _Request) -> bool:
        """Whether what was shown to come in is good even now: a stream may last for days."""
        try:
            return principal is NOBODY or self._principal(request) == principal
        except MasError:
            return False

    def _principal(self, request: _Request) -> Principal | None:
        word, _, token = request.headers.get("authorization", "").partition(" ")
        if word.lower() == "bearer":
            return self._access.who(token.strip())
        if request.on_socket_file:
            # Whoever can open the file is this user: the connection has seen to that.
            return OWNER
        if self._access.knows_cookie(request.cookie(self._cookie)):
            _check_site(request)
            return OWNER
        return None


class _Request:
    """One request or WebSocket on its way through."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.headers = Headers(scope=scope)
        self.path: str = scope["path"]
        self.method: str = scope.get("method", "WEBSOCKET")
        self.on_socket_file = scope["server"] is not None and scope["server"][1] is None
        # Behind a proxy it is whatever the other end said it is.
        self.client = "socket" if self.on_socket_file else (scope["client"] or ("", 0))[0][:_LONGEST_CLIENT]
        self.principal = ""
        self.is_admitted: Callable[[], bool] = lambda: True
        given = self.headers.get("x-request-id", "")
        self.id = given if _REQUEST_ID.fullmatch(given) else f"{time.time_ns():x}"
        self._receive = receive
        self._send = send
        self._status = 0
        self._began = time.monotonic()
        self._size = 0
        self._whole = False
        self._refused = False
        self._is_cut = False
        scope.setdefault("state", {})

    def announced(self) -> int:
        return int(self.headers.get("content-length", "0"))

    def cookie(self, name: str) -> str:
        return cookie_parser(self.headers.get("cookie", "")).get(name, "")

    async def pass_on(self, app: ASGIApp, limits: Limits) -> None:
        deadline = time.monotonic() + limits.body_time

        async def receive() -> Message:
            if self.scope["type"] == "websocket":
                message = await self._receive()
                if self.is_admitted():
                    return message
                await self._cut_off()
                return {"type": "websocket.disconnect", "code": _NOT_ANY_MORE}
            if self._whole or self._status:
                return await self._receive()
            # The whole body has to come by one deadline.
            try:
                async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                    message = await self._receive()
            except TimeoutError:
                await self.refuse(refusal(408, "too-slow", "The body did not come in time", request_id=self.id))
                return {"type": "http.disconnect"}
            self._whole = not message.get("more_body", False)
            self._size += len(message.get("body", b""))
            if self._size > limits.body_size:
                await self.refuse(_too_large(limits, self.id))
                return {"type": "http.disconnect"}
            return message

        try:
            await app(self.scope, receive, self._counted)
        except ClientDisconnect:
            # Refused while the body came, or gone.
            return

    async def _counted(self, message: Message) -> None:
        kind = message["type"]
        if kind == "http.response.start" and self._status:
            # Refused while the body came; whatever the route makes of that, nobody waits for it.
            return
        if kind in ("http.response.start", "websocket.http.response.start"):
            self._status = message["status"]
            named = {name for name, _ in message["headers"]}
            extra = [(name, value) for name, value in HEADERS if name not in named]
            message["headers"] = [*message["headers"], *extra, (b"x-request-id", self.id.encode())]
        elif kind == "websocket.accept":
            self._status = 101
        elif kind == "http.response.body" and self._refused:
            return
        elif (kind == "websocket.send" or message.get("more_body")) and not self.is_admitted():
            await self._cut_off()
        if self._is_cut and self.scope["type"] == "http":
            # The route hears that the other end has gone, as soon as it listens.
            return
        if self._is_cut:
            raise ConnectionResetError("not admitted any more")
        await self._send(message)

    async def _cut_off(self) -> None:
        """End a stream in the middle."""
        if self._is_cut:
            return
        self._is_cut = True
        if self.scope["type"] == "websocket":
            await self._send({"type": "websocket.close", "code": _NOT_ANY_MORE})
        else:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def refuse(self, response: Response) -> None:
        """Answer in place of the route."""
        kind = "websocket.http.response" if self.scope["type"] == "websocket" else "http.response"
        if self._status:
            return
        headers = [*response.raw_headers, (b"connection", b"close")]
        await self._counted({"type": f"{kind}.start", "status": response.status_code, "headers": headers})
        await self._send({"type": f"{kind}.body", "body": response.body})
        self._refused = True

    def record(self) -> dict[str, Any]:
        """What the log keeps of it."""
        made = self.scope["state"].get("session_id")
        return {
            "requestId": self.id,
            "client": self.client,
            "principal": self.principal,
            "method": self.method,
            "path": self.path[:300],
            "route": getattr(self.scope.get("route"), "path", "none"),
            "status": self._status,
            "seconds": round(time.monotonic() - self._began, 6),
            "named": self.scope["state"].get("named_session"),
            **({"sessionId": made} if made else {}),
        }


def _check_origin(request: _Request) -> None:
    """A page of another site may not speak to us with its visitor's cookie, nor read our answers."""
    origin = request.headers.get("origin")
    if origin is None:
        return
    scheme, _, place = origin.partition("://")
    # What came encrypted has an encrypted page. Where a proxy did that, only it knows.
    schemes = ("https",) if request.scope["scheme"] in ("https", "wss") else ("http", "https")
    # Host has been checked; whatever port or proxy it names, the browser's page has the same.
    if scheme not in schemes or place.lower() != request.headers.get("host", "").lower():
        raise Forbidden(f"Pages of {origin[:100]!r} may not use this server")


def _check_site(request: _Request) -> None:
    """A cookie goes along with whatever a page of another port of this machine asks for: only ours may use it."""
    headers = request.headers
    # A browser names the page's origin with everything that changes something; others have tokens.
    if request.method not in _SAFE and "origin" not in headers:
        raise Forbidden("A signed-in browser must say where a request comes from (Origin)")
    if headers.get("sec-fetch-site") in ("cross-site", "same-site") and headers.get("sec-fetch-mode") != "navigate":
        raise Forbidden("Pages of other servers may not use this one")


def _is_for_agent(principal: Principal, method: str, path: str) -> bool:
    """Whether a call is one for agents, of this one's session, and about itself where it speaks of one."""
    if path == _TOOLS:
        return True
    own = f"/sessions/{principal.session_id}/"
    if not path.startswith(own):
        return False
    for verb, what in _FOR_AGENTS:
        found = what.fullmatch(path.removeprefix(own)) if verb == method else None
        if found:
            return found.groupdict().get("self", principal.agent) == principal.agent
    return False


def _too_large(limits: Limits, request_id: str) -> Response:
    return refusal(413, "too-large", f"A body holds at most {limits.body_size} bytes", request_id=request_id)
