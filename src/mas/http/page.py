"""The web page: the built files, which hold no secrets and are handed to anybody; what they show needs a sign-in."""

from __future__ import annotations

import mimetypes
import os
from typing import NamedTuple

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from mas.model.errors import NotFound

router = APIRouter()

BUILT = os.path.join(os.path.dirname(__file__), "built")
ASSETS = "/assets/"
# Styles within the page are needed by the terminals, which make theirs as they run; scripts come from files alone.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "img-src 'self' data:; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# The name of an asset changes with its content.
_FOR_EVER = "public, max-age=31536000, immutable"
_ENCODINGS = (("br", ".br"), ("gzip", ".gz"))
_MISSING = """<!doctype html><html lang="en"><meta charset="utf-8"><title>MAS</title>
<meta name="viewport" content="width=device-width"><style>:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:4rem auto;padding:0 1rem}</style>
<h1>The page was not built</h1><p>This MAS was installed without its web page. The API works; see <a href="/docs">its
description</a>. To have the page: <code>make setup</code> in the repository, or install MAS again without
<code>MAS_SKIP_WEB</code>, then restart the server.</p></html>"""


class _File(NamedTuple):
    """One built file, by encoding; the empty one is the file as it is."""

    kind: str
    bodies: dict[str, bytes]


class Page:
    """The built files, read once: an upgrade beneath a running server cannot mix two versions."""

    def __init__(self, directory: str = BUILT) -> None:
        self._files = {name: _read(path) for name, path in _found(directory)}

    def answer(self, name: str, accepted: str, caching: str | None = None) -> Response | None:
        """The file called so in the best encoding the other side takes; None if there is none."""
        file = self._files.get(name)
        if file is None:
            return None
        offered = {part.partition(";")[0].strip() for part in accepted.split(",")}
        encoding = next((known for known, _ in _ENCODINGS if known in offered and known in file.bodies), "")
        headers = {"Content-Security-Policy": _POLICY, "Vary": "Accept-Encoding"}
        if encoding:
            headers["Content-Encoding"] = encoding
        if caching:
            headers["Cache-Control"] = caching
        return Response(file.bodies[encoding], 200, headers, file.kind)


@router.get("/", include_in_schema=False)
async def home(request: Request) -> Response:
    """The page."""
    page: Page = request.app.state.page
    found = page.answer("index.html", request.headers.get("accept-encoding", ""))
    return found or HTMLResponse(_MISSING, 503)


@router.get(ASSETS + "{name}", include_in_schema=False)
async def asset(request: Request, name: str) -> Response:
    """A part of the page."""
    page: Page = request.app.state.page
    found = page.answer(f"assets/{name}", request.headers.get("accept-encoding", ""), _FOR_EVER)
    if found is None:
        raise NotFound("Not a part of the page; it may be of another version: load the page again")
    return found


def _found(directory: str) -> list[tuple[str, str]]:
    """Every file that a browser may ask for, by name."""
    names = ["index.html"] if os.path.isfile(os.path.join(directory, "index.html")) else []
    assets = os.path.join(directory, "assets")
    if names:
        names += [f"assets/{name}" for name in os.listdir(assets) if not name.endswith((".br", ".gz"))]
    return [(name, os.path.join(directory, name)) for name in names]


def _read(path: str) -> _File:
    bodies = {}
    for encoding, suffix in (("", ""), *_ENCODINGS):
        if os.path.exists(path + suffix):
            with open(path + suffix, "rb") as file:
                bodies[encoding] = file.read()
    return _File(mimetypes.guess_type(path)[0] or "application/octet-stream", bodies)
