"""The web page, which holds no secrets and is handed to anybody; what it shows needs a sign-in."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from mas.http.dependencies import Server
from mas.http.page_files import ASSETS
from mas.model.errors import NotFound

router = APIRouter()

# The name of an asset changes with its content.
_FOR_EVER = "public, max-age=31536000, immutable"
_MISSING = """<!doctype html><html lang="en"><meta charset="utf-8"><title>MAS</title>
<meta name="viewport" content="width=device-width"><style>:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:4rem auto;padding:0 1rem}</style>
<h1>The page was not built</h1><p>This MAS was installed without its web page. The API works; see <a href="/docs">its
description</a>. To have the page: <code>make setup</code> in the repository, or install MAS again without
<code>MAS_SKIP_WEB</code>, then restart the server.</p></html>"""


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
        raise NotFound("Not a part of the page; it may be of another version: load the page again")
    return found
