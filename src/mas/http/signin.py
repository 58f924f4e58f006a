"""Signing a browser in: a one-time code becomes a cookie that no script and no other site can use."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from mas.http.wire import answer, answers
from mas.model.errors import NotSignedIn
from mas.model.server import LoginCode
from mas.service.access import CODE_LIFE, COOKIE_LIFE, Access

router = APIRouter(tags=["sign in"])


def _access(request: Request) -> Access:
    access: Access = request.app.state.access
    return access


@router.post("/login-codes", summary="Make a one-time code", **answers(LoginCode, 201))
def new_code(request: Request) -> Response:
    """A code that signs one browser in, once, within minutes; `mas url` prints an address with one."""
    code = _access(request).new_code()
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + CODE_LIFE))
    return answer(LoginCode(code, f"{request.app.state.url}/login?code={code}", until), 201)


@router.get("/login", include_in_schema=False)
def login(request: Request, code: Annotated[str, Query(max_length=200)] = "") -> Response:
    """Spend a one-time code: the browser gets its cookie and an address without the code."""
    access = _access(request)
    if not access.spend_code(code):
        raise NotSignedIn("This address was used already, or is too old", "mas url")
    response = RedirectResponse("/", 303)
    secure = request.url.scheme == "https"
    name = request.app.state.cookie
    response.set_cookie(name, access.cookie(), COOKIE_LIFE, httponly=True, samesite="strict", secure=secure)
    return response


@router.post("/logout", include_in_schema=False)
def logout(request: Request) -> Response:
    """Forget the cookie in this browser; `mas token --rotate` ends it in all."""
    response = Response(status_code=204)
    response.delete_cookie(request.app.state.cookie, httponly=True, samesite="strict")
    return response
