"""Errors as `application/problem+json`: the only place that gives errors an HTTP status."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import Scope, Send

from mas.http.threads import in_thread, is_for_want_of_threads, no_thread
from mas.http.wire import PROBLEM
from mas.model.errors import (
    Archived,
    BadInput,
    Conflict,
    Denied,
    Disk,
    DiskFull,
    Forbidden,
    MasError,
    NoProgram,
    NoSession,
    NotFound,
    NotSignedIn,
    TooMuch,
    Unavailable,
)

STATUSES: tuple[tuple[type[MasError], int], ...] = (
    (BadInput, 422),
    (NoProgram, 422),
    (NotFound, 404),
    (Archived, 410),
    (Conflict, 409),
    (NotSignedIn, 401),
    (Forbidden, 403),
    (Denied, 403),
    (TooMuch, 429),
    (DiskFull, 507),
    (Disk, 500),
    (Unavailable, 503),
    (MasError, 500),
)
_HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "1"}}
_CODES = {404: "not-found", 405: "no-method", 413: "too-large", 400: "bad-request"}
_LONGEST_ECHO = 100
_log = logging.getLogger("mas.http")


def add_handlers(app: FastAPI) -> None:
    # None of them runs in a thread: there may be none left, which is the error to report.
    app.add_exception_handler(MasError, _mas_error)
    app.add_exception_handler(NoSession, _no_session)
    app.add_exception_handler(RuntimeError, _no_thread)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _failure)


class Refusal(NamedTuple):
    """Why a request is refused, as `application/problem+json` says it."""

    status: int
    code: str
    detail: str
    hint: str = ""
    errors: Sequence[dict[str, Any]] = ()

    def response(self, request_id: str, headers: dict[str, str] | None = None) -> Response:
        body = {
            "type": f"urn:mas:problem:{self.code}",
            "title": HTTPStatus(self.status).phrase,
            **self._asdict(),
            "requestId": request_id,
        }
        more = _HEADERS.get(self.status, {}) | (headers or {})
        text = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        return Response(text, self.status, more, PROBLEM)


def problem(error: MasError) -> Refusal:
    """The refusal an error stands for."""
    status = next(status for kind, status in STATUSES if isinstance(error, kind))
    errors = [{"where": f"body.{error.field}", "what": error.message}] if error.field else []
    return Refusal(status, error.code, error.message, error.hint, errors)


async def refuse(scope: Scope, send: Send, refusal: Refusal) -> None:
    """Answer in place of the route, and end the connection."""
    kind = "websocket.http.response" if scope["type"] == "websocket" else "http.response"
    response = refusal.response(scope["state"]["request_id"], {"Connection": "close"})
    await send({"type": f"{kind}.start", "status": refusal.status, "headers": response.raw_headers})
    await send({"type": f"{kind}.body", "body": response.body})


async def _mas_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, MasError)
    return problem(error).response(_id_of(request))


async def _no_session(request: Request, error: Exception) -> Response:
    """A session that is not in the registry may be kept elsewhere: then say where."""
    session_id = getattr(request.state, "asked_session", None)
    try:
        if session_id:
            await in_thread(request.app.state.server.mas.resolve, session_id)
    except MasError as better:
        error = better
    return await _mas_error(request, error)


async def _invalid(request: Request, error: Exception) -> Response:
    """A body, path or query of the wrong shape; says where, and does not echo what was sent at length."""
    assert isinstance(error, RequestValidationError)
    found = [
        {"where": ".".join(str(step)[:_LONGEST_ECHO] for step in item["loc"]), "what": str(item["msg"])}
        for item in error.errors()[:20]
    ]
    detail = "; ".join(f"{item['where']}: {item['what']}" for item in found[:3])
    return Refusal(422, BadInput.code, detail, errors=found).response(_id_of(request))


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, "refused")
    headers = {"Allow": _allowed(request)} if error.status_code == 405 else dict(error.headers or {})
    return Refusal(error.status_code, code, str(error.detail)).response(_id_of(request), headers)


def _allowed(request: Request) -> str:
    """What the path can be asked for, by all of its routes."""
    matching = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
    return ", ".join(sorted({method for route in matching for method in getattr(route, "methods", None) or ()}))


async def _no_thread(request: Request, error: Exception) -> Response:
    """A refusal like any other: after a failure the connection closes, and a sending client may miss why."""
    if not is_for_want_of_threads(error):
        raise error
    return problem(no_thread()).response(_id_of(request))


async def _failure(request: Request, error: Exception) -> Response:
    """An unexpected error: all details go to the log, none to the caller."""
    _log.exception("%s failed", request.url.path, exc_info=error)
    return Refusal(500, "error", "The server failed; see its log", "logs/api.log").response(_id_of(request))


def _id_of(request: Request) -> str:
    return str(getattr(request.state, "request_id", ""))
