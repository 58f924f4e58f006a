"""For browsers: the page, which holds no secrets and is handed to anybody, and signing in for what it shows.

A one-time code becomes a cookie that no script and no other site can use.
"""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from mas.http.dependencies import Server
from mas.http.page import ASSETS
from mas.http.wire import answer, answers
from mas.model.errors import NotFound, NotSignedIn
from mas.model.server import LoginCode
from mas.service.access import CODE_LIFE, COOKIE_LIFE

router = APIRouter(tags=["sign in"])

# The name of an asset changes with its content.
_FOR_EVER = "public, max-age=31536000, immutable"
_MISSING = """<!doctype html><html lang="en"><meta charset="utf-8"><title>MAS</title>
<meta name="viewport" content="width=device-width"><style>:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:4rem auto;padding:0 1rem}</style>
<h1>The page was not built</h1><p>This MAS was installed without its web page. The API works; see <a href="/docs">its
description</a>. To have the page: <code>make setup</code> in the repository, or install MAS again without
<code>MAS_SKIP_WEB</code>, then restart the server.</p></html>"""


@router.post("/login-codes", summary="Create a sign-in code", **answers(LoginCode, 201))
def new_code(server: Server) -> Response:
    """A code that signs in one browser, once, within five minutes. `mas url` prints an address with one."""
    code = server.access.new_code()
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + CODE_LIFE))
    return answer(LoginCode(code, f"{server.url}/login?code={code}", until), 201)


@router.get("/login", include_in_schema=False)
def login(server: Server, request: Request, code: Annotated[str, Query(max_length=200)] = "") -> Response:
    """Spend a one-time code: the browser gets its cookie and an address without the code."""
    access = server.access
    if not access.spend_code(code):
        raise NotSignedIn("This sign-in address was already used or has expired", "mas url")
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


@router.get("/", include_in_schema=False)
async def home(server: Server, request: Request) -> Response:
    """The page."""
    found = server.page.answer("index.html", request.headers.get("accept-encoding", ""))
    return found or HTMLResponse(_MISSING, 503)


@router.get(ASSETS + "{name}", include_in_schema=False)
async def asset(server: Server, request: Request, name: str) -> Response:
    """A part of the page."""
    found = server.page.answer(f"assets/{name}", request.headers.get("accept-encoding", ""), _FOR_EVER)
    if found is None:
        raise NotFound("No such part of the page; the server may have been upgraded: reload the page")
    return found
