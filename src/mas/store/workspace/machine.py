"""What was found out about this machine by trying, kept until it reboots or anything that matters changes."""

from __future__ import annotations

import json
import os

from mas.model.fields import parse_json
from mas.store.files.descriptors import SAFE
from mas.store.layout import PRIVATE_FILE, Layout


class Probed:
    """Findings by name under one key: with another key there are none. Only a cache: unreadable is empty here."""

    def __init__(self, layout: Layout, key: str) -> None:
        self._path = os.path.join(layout.private, "isolation.json")
        self._key = key

    def read(self) -> dict[str, str]:
        try:
            with open(self._path, "rb") as file:
                body = parse_json(file.read())
            if body["key"] != self._key:
                return {}
            return {str(name): str(value) for name, value in body["found"].items()}
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return {}

    def write(self, found: dict[str, str]) -> None:
        """Keep all that was found; of several who do so at once the last one wins."""
        half = f"{self._path}.{os.getpid()}.tmp"
        try:
            fd = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | SAFE, PRIVATE_FILE)
            with open(fd, "w", encoding="utf-8") as file:
                json.dump({"key": self._key, "found": found}, file)
            os.replace(half, self._path)
        except OSError:
            # Then it is tried again next time.
            try:
                os.unlink(half)
            except OSError:
                pass
