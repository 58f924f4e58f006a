"""The built files of the web page."""

from __future__ import annotations

import mimetypes
import os
from typing import NamedTuple

from fastapi import Response

BUILT = os.path.join(os.path.dirname(__file__), "built")
ASSETS = "/assets/"
# Styles within the page are needed by the terminals, which make theirs as they run; scripts come from files alone.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "img-src 'self' data:; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_ENCODINGS = (("br", ".br"), ("gzip", ".gz"))


class _File(NamedTuple):
    """One built file, by encoding; the empty one is the file as it is."""

    kind: str
    bodies: dict[str, bytes]


class Page:
    """The built files, read once: an upgrade beneath a running server cannot mix two versions."""

    def __init__(self, directory: str = BUILT) -> None:
        self._files = {name: _read(path) for name, path in _found(directory)}

    def answer(self, name: str, accepted: str, caching: str | None = None) -> Response | None:
        """The file of that name in the best encoding that the client accepts; None if there is none."""
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
