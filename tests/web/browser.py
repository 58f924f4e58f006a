"""The browser of this machine: Debian's Chromium, or Chrome."""

from __future__ import annotations

import os
import shutil
from typing import Any

MISSING = "there is no Chromium here: apt-get install chromium"
_FLAGS = (
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def how_to_launch() -> dict[str, Any] | None:
    """What Playwright must start, and with which arguments; None if there is no browser."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        return None
    # Its sandbox does not work for root.
    root = ("--no-sandbox",) if os.geteuid() == 0 else ()
    return {"executable_path": found, "args": [*_FLAGS, *root]}
