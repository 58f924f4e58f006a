"""Tries what `make dist` built, as people install it: `python -m tests.dist` after that.

The wheel holds the package, the two shell fronts and nothing else; the source archive builds the same wheel; pipx and uv install it; the
installed `mas` runs a team and serves its page. There is no Node on the way.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from glob import glob

import httpx
import psutil

import mas
from tests.site import REPOSITORY, short_directory, until

_NODE = {"node", "npm", "npx", "nodejs", "corepack"}
_PACKAGE = os.path.join(REPOSITORY, "src", "mas")
_TOOLS = os.path.join(REPOSITORY, ".dist", "bin")
_LICENCE = "licenses/LICENSE"
_SHELL = {"scripts/mas_refactored.sh", "data/share/mas/lib/session.sh"}
_ABOUT = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", _LICENCE}


class Failed(Exception):
    """Something is not as it must be."""


def check(fact: object, what: str) -> None:
    if not fact:
        raise Failed(what)


def run(argv: list[str], env: Mapping[str, str], cwd: str) -> str:
    """What a program prints; it must succeed."""
    done = subprocess.run(argv, env=env, cwd=cwd, capture_output=True, text=True, check=False, timeout=600)
    check(done.returncode == 0, f"{' '.join(argv)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def built(pattern: str) -> str:
    found = glob(os.path.join(REPOSITORY, "dist", pattern))
    check(len(found) == 1, f"dist/ holds {len(found)} files {pattern}: make dist")
    return found[0]


def without_node(directory: str) -> str:
    """A PATH like this one on which there is no Node: directories that have one are built again from links."""
    places = []
    for number, place in enumerate(os.environ["PATH"].split(":")):
        names = set(os.listdir(place)) if os.path.isdir(place) else set()
        if names & _NODE:
            copy = os.path.join(directory, f"path{number}")
            os.mkdir(copy)
            for name in names - _NODE:
                os.symlink(os.path.join(place, name), os.path.join(copy, name))
            place = copy
        places.append(place)
    return ":".join(places)


def contents(wheel: str) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def of_the_package() -> Iterator[str]:
    """All files of the package, as a wheel names them."""
    for directory, directories, names in os.walk(_PACKAGE):
        directories[:] = [name for name in directories if name != "__pycache__"]
        yield from (os.path.relpath(os.path.join(directory, name), os.path.dirname(_PACKAGE)) for name in names)


def _data(name: str) -> str:
    return f"mas-{mas.__version__}.data/{name}"


def check_wheel(wheel: str) -> None:
    """All of the package, its description, and nothing else."""
    about = f"mas-{mas.__version__}.dist-info/"
    found = set(contents(wheel))
    wanted = {*of_the_package(), *(about + name for name in _ABOUT), *(_data(name) for name in _SHELL)}
    check(found == wanted, f"the wheel lacks {sorted(wanted - found)}, and has besides {sorted(found - wanted)}")
    for part in ("mas/py.typed", "mas/http/built/index.html", "mas/providers/builtin/demo.toml", about + _LICENCE):
        check(part in found, f"the wheel lacks {part}")
    check(any(name.startswith("mas/templates/unit/") for name in found), "the wheel lacks the templates")


def check_source(source: str, wheel: str, env: Mapping[str, str], directory: str) -> None:
    """The source archive carries the built page, and builds the same wheel."""
    with tarfile.open(source) as archive:
        page = f"mas-{mas.__version__}/src/mas/http/built/index.html"
        check(page in archive.getnames(), f"the source archive lacks {page}")
    run(
        [
            *(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index"),
            *("-w", directory, source),
        ],
        env,
        directory,
    )
    again = contents(os.path.join(directory, os.path.basename(wheel)))
    differing = [name for name, data in contents(wheel).items() if again.get(name) != data]
    check(not differing and len(again) == len(contents(wheel)), f"the source archive builds another wheel: {differing}")


def by_pipx(wheel: str, env: Mapping[str, str], directory: str) -> str:
    places = {name: os.path.join(directory, name.lower()) for name in ("PIPX_HOME", "PIPX_BIN_DIR", "PIPX_MAN_DIR")}
    run([os.path.join(_TOOLS, "pipx"), "install", "--python", sys.executable, wheel], {**env, **places}, directory)
    return os.path.join(places["PIPX_BIN_DIR"], "mas")


def by_uv(wheel: str, env: Mapping[str, str], directory: str) -> str:
    places = {name: os.path.join(directory, name.lower()) for name in ("UV_TOOL_DIR", "UV_TOOL_BIN_DIR", "UV_CACHE_DIR")}
    argv = [os.path.join(_TOOLS, "uv"), "tool", "install", "--python", sys.executable, "--link-mode", "copy", wheel]
    run(argv, {**env, **places}, directory)
    return os.path.join(places["UV_TOOL_BIN_DIR"], "mas")


def check_installed(program: str, path: str, directory: str) -> None:
    """The installed command makes a workspace, runs a team, serves its page, and leaves nothing behind."""
    mark = f"MAS_SMOKE={directory}"
    env = {
        **{"PATH": path, "HOME": directory, "TMUX_TMPDIR": directory, "LANG": "C.UTF-8", "SHELL": "/bin/sh"},
        **{"TERM": "xterm-256color", "MAS_SMOKE": directory},
    }
    said = run([program, "version"], env, directory)
    check(mas.__version__ in said, f"mas version says {said!r}")
    workspace = os.path.join(directory, "ws")
    run([program, "init", workspace], env, directory)
    try:
        up = json.loads(run([program, "up", "--port", "0", "--no-browser", "--json"], env, workspace))
        check(len(up["session"]["agents"]) == 13, "mas up starts no team of 13")
        check_shell(program, up["session"]["sessionId"], env, workspace)
        url = up["server"]["url"]
        proof = {"Authorization": f"Bearer {run([program, 'token'], env, workspace).strip()}"}
        told = httpx.get(f"{url}/health", headers=proof).json()["version"]
        check(told == mas.__version__, "/health shows another version")
        page = httpx.get(url, headers={"Accept": "text/html"})
        assets = re.findall(r'(?:src|href)="(/assets/[^"]+)"', page.text)
        check(page.status_code == 200 and assets, f"GET / is no page: {page.status_code} {page.text[:200]}")
        for asset in assets:
            got = httpx.get(url + asset)
            check(got.status_code == 200 and got.content, f"GET {asset}: {got.status_code}")
    finally:
        run([program, "stop", "--all"], env, workspace)
        run([program, "serve", "--stop"], env, workspace)
    until(lambda: not _left(mark), f"nothing is left running of {program}")


def check_shell(program: str, session: str, env: Mapping[str, str], workspace: str) -> None:
    """The old front is on PATH beside `mas`, and bash finds the functions by asking."""
    front = os.path.join(os.path.dirname(program), "mas_refactored.sh")
    check(session in run([front, "status", "--json"], env, workspace), f"{front} does not list the session")
    script = '. "$("$1" env --shell-lib)" && load_session "$2" && echo "$SESSION_ID $STATUS"'
    said = run(["bash", "-c", script, "bash", program, session], {**env, "MAS": program}, workspace)
    check(said == f"{session} active\n", f"load_session says {said!r}")


def _left(mark: str) -> list[str]:
    found = []
    for process in psutil.process_iter():
        try:
            if mark in {f"{key}={value}" for key, value in process.environ().items()}:
                found.append(process.name())
        except (psutil.Error, OSError):
            continue
    return found


@contextmanager
def step(text: str) -> Iterator[None]:
    sys.stdout.write(f"{text} …")
    sys.stdout.flush()
    yield
    sys.stdout.write(" good\n")


def main() -> int:
    wheel, source = built("*.whl"), built("*.tar.gz")
    with short_directory() as directory:
        path = without_node(directory)
        check(not any(shutil.which(name, path=path) for name in _NODE), "there is Node on the way")
        # A Node that came as a Python package would not be on the way, and refuses this too.
        env = {**os.environ, "PATH": path, "NODE_OPTIONS": "--none-is-wanted"}
        with step("the wheel holds the package, the shell fronts and nothing else"):
            check_wheel(wheel)
        with step("the source archive builds the same wheel without Node"):
            check_source(source, wheel, env, directory)
        for name, install in (("pipx", by_pipx), ("uv", by_uv)):
            place = os.path.join(directory, name)
            os.mkdir(place)
            with step(f"{name} installs it without Node"):
                program = install(wheel, env, place)
            with step("  and it runs a team and serves its page"):
                check_installed(program, path, place)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        sys.exit(f"\n{failure}")
