"""Golden files: what MAS promises to print and to write, as plain text under version control."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from mas import __version__
from tests.site import REPOSITORY, Site

GOLDEN = os.path.join(REPOSITORY, "tests", "golden")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{3}Z)?")
_MESSAGE = re.compile(r"\bm-[0-9a-f]{16}\b")
_PANE = re.compile(r"%\d+")
_MEASURED = re.compile(
    r'("(?:disk|diskFree|processes|pid|launcher|cpu|cpuSeconds|cores|memory|memoryFree)": ?)\d+(?:\.\d+)?'
)
_SIZE = re.compile(r"\d+(?:\.\d)? (?:B|KiB|MiB|GiB)\b")


def golden(name: str, text: str) -> None:
    """`text` must be what the golden file holds; UPDATE_GOLDEN=1 writes it instead, to be read before it is kept."""
    path = os.path.join(GOLDEN, name)
    if os.environ.get("UPDATE_GOLDEN"):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    with open(path, encoding="utf-8") as file:
        assert text == file.read(), f"{name} has changed; if that is meant: UPDATE_GOLDEN=1 make test"


class Neutral:
    """Takes out of a text whatever differs from run to run; the same session always becomes the same word."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._sessions: dict[str, str] = {}

    def text(self, text: str) -> str:
        for session_id in _UUID.findall(text):
            self._sessions.setdefault(session_id, f"{{session {len(self._sessions) + 1}}}")
        for session_id, word in self._sessions.items():
            text = text.replace(session_id, word).replace(session_id[:8], word)
        text = text.replace(self._site.root, "{workspace}").replace(self._site.user_socket, "{socket}")
        text = text.replace(self._site.directory, "{site}").replace(__version__, "{version}")
        text = _MESSAGE.sub("{message}", text)
        text = _TIME.sub("{time}", text)
        text = _MEASURED.sub(r"\1{number}", text)
        text = _SIZE.sub("{size}", text)
        return _PANE.sub("%{pane}", text)

    def json(self, value: Any) -> str:
        return self.text(json.dumps(value, indent=2, ensure_ascii=False)) + "\n"
