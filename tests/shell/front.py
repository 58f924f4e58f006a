"""A `mas` program for shells to find, and a bash to run scripts in."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from typing import Any

from tests.site import REPOSITORY, Site

SESSION_SH = os.path.join(REPOSITORY, "lib", "session.sh")
FRONT = os.path.join(REPOSITORY, "mas_refactored.sh")


def program(path: str, text: str) -> str:
    """A small program at `path`."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o755)
    return path


def copied(checkout: str) -> str:
    """Both files as they lie in a checkout; answers where the front is."""
    os.makedirs(os.path.join(checkout, "lib"))
    shutil.copy(SESSION_SH, os.path.join(checkout, "lib"))
    return shutil.copy(FRONT, checkout)


def mas_program(site: Site) -> str:
    """This very `mas` as a program of that name."""
    return program(f"{site.directory}/bin/mas", f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m mas "$@"\n')


def bash(site: Site, script: str, *args: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a script that uses the session functions, as carefully as scripts can be run."""
    env = {"MAS": mas_program(site), **options.pop("env", {})}
    head = f"set -euo pipefail\n. {shlex.quote(SESSION_SH)}\n"
    return site.run(["bash", "-c", head + script, "script", *args], env=env, **options)
