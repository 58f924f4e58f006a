"""For browsers: the page, which holds no secrets and is handed to anybody, and signing in for what it shows.

There are no cookies: a browser sends those to every port of a machine.
"""

from __future__ import annotations

import time
from urllib.parse import urlsplit

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from mas.http.dependencies import Server
from mas.http.guard.tickets import shown_host
from mas.http.page import ASSETS
from mas.http.state import ServerState
from mas.http.wire import HelloBody, ProofBody, TicketBody, answer, answers
from mas.model.browser import Greeting, PageAccess, Place, Ticket
from mas.model.errors import Forbidden, NotFound
from mas.model.server import LoginCode
from mas.service.browsers import CODE_LIFE, TICKET_LIFE, Hello

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
    code = server.browsers.new_code()
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + CODE_LIFE))
    # Browsers do not send what follows the #.
    return answer(LoginCode(code, f"{server.url}/login#code={code}", until), 201)


@router.post("/browser/hello", summary="Have the server prove itself", **answers(Greeting))
def hello(server: Server, request: Request, body: HelloBody) -> Response:
    """The server's proof that it has the same keys as this browser: the first call of a page. Needs no token."""
    return answer(server.browsers.greet(_place(server, request), body.nonce, body.keys))


@router.post("/browser/bearer", summary="Sign in", **answers(PageAccess))
def bearer(server: Server, request: Request, body: ProofBody) -> Response:
    """A bearer for a page that proves that it has a key, or the code of a sign-in link. Needs no token."""
    given = Hello(body.key, body.nonce, body.challenge, body.proof)
    return answer(server.browsers.admit(_place(server, request), given))


@router.post("/browser/ticket", summary="Create a ticket", **answers(Ticket, 201))
def ticket(server: Server, request: Request, body: TicketBody) -> Response:
    """A ticket opens one address once, within 30 seconds, as `ticket` at the end of its query, or of a WebSocket as the
    subprotocol `ticket.…` beside `mas`. For pages, which cannot send a bearer there.
    """
    browser = request.state.browser
    if browser is None:
        raise Forbidden("Only a signed-in page needs a ticket; other clients send their token")
    made = server.browsers.new_ticket(browser, shown_host(request), body.target)
    return answer(Ticket(made, TICKET_LIFE), 201)


@router.post("/logout", include_in_schema=False)
def logout(server: Server, request: Request) -> Response:
    """Sign this browser out, in all its tabs; `mas token --rotate` signs all browsers out."""
    if request.state.browser:
        server.browsers.end(request.state.browser)
    return Response(status_code=204)


def _place(server: ServerState, request: Request) -> Place:
    return Place(shown_host(request), server.url)


@router.get("/login", include_in_schema=False)
@router.get("/", include_in_schema=False)
async def home(server: Server, request: Request) -> Response:
    """The page. It signs in by itself if its address has a code."""
    found = server.page.answer("index.html", request.headers.get("accept-encoding", ""))
    response = found or HTMLResponse(_MISSING, 503)
    # Earlier versions signed browsers in with it.
    old_cookie = f"mas-{urlsplit(server.url).port}"
    if old_cookie in request.cookies:
        response.delete_cookie(old_cookie, httponly=True, samesite="strict")
    return response


@router.get(ASSETS + "{name}", include_in_schema=False)
async def asset(server: Server, request: Request, name: str) -> Response:
    """A part of the page."""
    found = server.page.answer(f"assets/{name}", request.headers.get("accept-encoding", ""), _FOR_EVER)
    if found is None:
        raise NotFound("No such part of the page; the server may have been upgraded: reload the page")
    return found
