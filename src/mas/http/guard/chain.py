"""The guard: all checks in front of the routes, in one order."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from mas.http.guard.admission import (
    Admission,
    HostCheck,
    RateCheck,
    SignInCheck,
    TokenCheck,
    check_connection,
    check_entrance,
    check_origin,
    check_peer,
    check_scope,
)
from mas.http.guard.body import BodyLimit
from mas.http.guard.headers import DefaultHeaders
from mas.http.guard.record import Keep, Recorder
from mas.http.guard.revocation import Revocation
from mas.http.guard.streams import StreamLimit
from mas.http.state import ServerState


class Guard:
    """ASGI middleware: a request passes from the first of these to the last, its answer back from the last."""

    def __init__(self, app: ASGIApp, server: ServerState, keep: Keep) -> None:
        """`keep` gets the record of every request that is over."""
        limits = server.limits
        tokens = TokenCheck(server.access, server.browsers)
        checks = (
            check_peer,
            HostCheck(server.hosts),
            check_origin,
            tokens,
            check_entrance,
            RateCheck(limits),
            SignInCheck(limits),
            check_connection,
            check_scope,
        )
        self._app = app
        guarded: ASGIApp = StreamLimit(app, server.streams, server.metrics)
        guarded = BodyLimit(guarded, limits)
        guarded = Revocation(guarded, tokens)
        guarded = Admission(guarded, checks)
        guarded = DefaultHeaders(guarded)
        self._guarded = Recorder(guarded, server.metrics, keep)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self._app if scope["type"] == "lifespan" else self._guarded)(scope, receive, send)
