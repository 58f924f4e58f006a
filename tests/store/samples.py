"""What the tests of the store share: ids, entries, pictures of trees, and an ordinary user."""

from __future__ import annotations

import os
import pkgutil
import pwd
import stat
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import IO, NamedTuple, cast

import pytest

import mas.store
from mas.model.ids import SessionId
from mas.model.run import Run, agent_runs
from mas.model.session import Session, Status
from mas.store.workspace.registry import IndexEntry

NOW = "2026-01-02T03:04:05.678Z"
# What functions of the store import when they are called.
_LATE = ("base64", "ctypes", "fnmatch", "hashlib", "ipaddress", "shlex", "tomllib", "urllib.parse", "zstandard")


def new_id() -> SessionId:
    return SessionId(str(uuid.uuid4()))


def an_entry(session_id: str, status: Status = Status.ACTIVE) -> IndexEntry:
    return IndexEntry(session_id, status, NOW, NOW, "a name", 13, "/tmp/socket")


def a_session(session_id: SessionId, status: Status = Status.STOPPED) -> Session:
    agents = agent_runs(Run().settled("shell").team, {"00": "%1"})
    return Session(session_id, status, NOW, NOW, NOW, "it's a name", "/tmp/so cket", agents, "clone: /x")


class Fact(NamedTuple):
    """One thing in a tree."""

    kind: str
    mode: int
    content: bytes
    mtime: int = 0


def picture(root: str, times: bool = True) -> dict[str, Fact]:
    """Everything below `root`, by path; a link is what it says, never what it points to."""
    found = {}
    for directory, directories, files in os.walk(root):
        for name in directories + files:
            path = os.path.join(directory, name)
            info = os.lstat(path)
            kind = stat.filemode(info.st_mode)[0]
            content = os.fsencode(os.readlink(path)) if kind == "l" else b""
            if kind == "-":
                with open(path, "rb") as file:
                    content = file.read()
            mode = 0 if kind == "l" else stat.S_IMODE(info.st_mode)
            mtime = 0 if kind == "l" or not times else info.st_mtime_ns
            found[os.path.relpath(path, root)] = Fact(kind, mode, content, mtime)
    return found


def put(root: str, name: str, data: bytes | str = b"", mode: int = 0o644) -> str:
    """A file with its directories."""
    path = os.path.join(root, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data.encode() if isinstance(data, str) else data)
    os.chmod(path, mode)
    return path


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def mode(path: str) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def ordinary_user(directory: str) -> Iterator[None]:
    """Work in `directory` as a user for whom file modes count, unlike root."""
    if os.geteuid() != 0:
        yield
        return
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        pytest.skip("there is no user but root here")
    # Python and MAS may lie where only root may look.
    for name in (*_LATE, *(module.name for module in pkgutil.walk_packages(mas.store.__path__, "mas.store."))):
        import_module(name)
    os.chown(directory, nobody.pw_uid, nobody.pw_gid)
    os.seteuid(nobody.pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def program(code: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that runs `code`; it is ended when the block is left."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=os.getcwd()
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def rest_of(process: subprocess.Popen[bytes]) -> str:
    """All the other process still has to say."""
    return cast("IO[bytes]", process.stdout).read().decode()


def next_line(process: subprocess.Popen[bytes]) -> str:
    """What the other process says next; empty once it has ended."""
    return cast("IO[bytes]", process.stdout).readline().decode().strip()
