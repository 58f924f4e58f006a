"""The page's files: for anybody, for ever, compressed, under a strict policy; a word of help where they are missing."""

from __future__ import annotations

import os
import re
from types import SimpleNamespace

from fastapi import FastAPI
from fastapi.testclient import TestClient

from mas.http.browser import router
from mas.http.page import Page
from tests.served import Served


def assets(page: str) -> list[str]:
    return re.findall(r'(?:src|href)="(/assets/[^"]+)"', page)


def test_the_page_needs_no_token_and_no_script_but_its_own(shared: Served) -> None:
    answer = shared.client("").get("/")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "default-src 'none'" in policy
    assert "<script>" not in answer.text
    assert answer.headers["cache-control"] == "no-store"


def test_its_parts_are_kept_for_ever_by_names_that_change(shared: Served) -> None:
    found = assets(shared.client("").get("/").text)
    assert any(name.endswith(".js") for name in found)
    assert any(name.endswith(".css") for name in found)
    for name in found:
        assert re.search(r"-[A-Z0-9]{8}\.", name), name
        answer = shared.client("").get(name)
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_browser_gets_the_best_encoding_it_takes(shared: Served) -> None:
    script = next(name for name in assets(shared.client("").get("/").text) if name.endswith(".js"))
    sizes = {}
    for accepted, encoding in (("br, gzip;q=0.5", "br"), ("gzip, deflate", "gzip"), ("identity", None)):
        with shared.client("").stream("GET", script, headers={"Accept-Encoding": accepted}) as answer:
            assert answer.headers.get("content-encoding") == encoding
            assert answer.headers["content-type"].startswith("text/javascript")
            sizes[encoding] = len(b"".join(answer.iter_raw()))
    assert sizes["br"] < sizes["gzip"] < sizes[None]


def test_nothing_else_can_be_had_that_way(shared: Served) -> None:
    for name in ("digest", "../index.html", "..%2findex.html", "%2e%2e/digest", "page.js", "", "page.js.gz"):
        answer = shared.client("").get(f"/assets/{name}")
        assert answer.status_code in (401, 404), name


def test_without_a_built_page_the_server_says_what_to_do(tmp_path: os.PathLike[str]) -> None:
    app = FastAPI()
    app.state.server = SimpleNamespace(page=Page(os.fspath(tmp_path)), url="http://127.0.0.1:7717")
    app.include_router(router)
    with TestClient(app) as client:
        answer = client.get("/")
    assert answer.status_code == 503
    assert "make setup" in answer.text
