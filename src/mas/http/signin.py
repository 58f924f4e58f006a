"""Signing a browser in: a one-time code becomes a cookie that no script and no other site can use."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from mas.http.dependencies import Server
from mas.http.wire import answer, answers
from mas.model.errors import NotSignedIn
from mas.model.server import LoginCode
from mas.service.access import CODE_LIFE, COOKIE_LIFE

router = APIRouter(tags=["sign in"])


@router.post("/login-codes", summary="Make a one-time code", **answers(LoginCode, 201))
def new_code(server: Server) -> Response:
    """A code that signs one browser in, once, within minutes; `mas url` prints an address with one."""
    code = server.access.new_code()
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + CODE_LIFE))
    return answer(LoginCode(code, f"{server.url}/login?code={code}", until), 201)


@router.get("/login", include_in_schema=False)
def login(server: Server, request: Request, code: Annotated[str, Query(max_length=200)] = "") -> Response:
    """Spend a one-time code: the browser gets its cookie and an address without the code."""
    access = server.access
    if not access.spend_code(code):
        raise NotSignedIn("This address was used already, or is too old", "mas url")
    response = RedirectResponse("/", 303)
    secure = request.url.scheme == "https"
    response.set_cookie(server.cookie, access.cookie(), COOKIE_LIFE, httponly=True, samesite="strict", secure=secure)
    return response


@router.post("/logout", include_in_schema=False)
def logout(server: Server) -> Response:
    """Forget the cookie in this browser; `mas token --rotate` ends it in all."""
    response = Response(status_code=204)
    response.delete_cookie(server.cookie, httponly=True, samesite="strict")
    return response
