"""A full disk: a real one, small enough to fill, and a real limit on the size of files."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress

import pytest

from mas.model.errors import DiskFull
from mas.model.ids import SessionId
from tests.checker import MARKER, check_world
from tests.site import Site

_BLOCK = 300 * 1024


@pytest.fixture
def small(bare: Site) -> Iterator[Site]:
    """A workspace on a file system of two megabytes."""
    mounted = os.path.join(bare.directory, "small")
    os.mkdir(mounted)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", mounted], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"a file system cannot be mounted here: {done.stderr.strip()}")
    with ExitStack() as undo:
        undo.callback(subprocess.run, ["umount", "--lazy", mounted], check=True)
        undo.callback(bare.close)
        bare.root = bare.env["MAS_WORKSPACE_ROOT"] = os.path.join(mounted, "ws")
        bare.mas("init", bare.root, "--provider", "shell")
        with open(bare.path("unit", "00", "large.bin"), "wb") as file:
            file.write(os.urandom(_BLOCK))
        yield bare


def _mark(site: Site, session_id: str) -> dict[str, str]:
    with open(site.session(session_id, MARKER), "w", encoding="utf-8") as file:
        file.write("work\n")
    return {session_id: "work\n"}


def _fill(path: str) -> None:
    """Take all the room there is, to the last block."""
    with open(path, "wb", buffering=0) as file, suppress(OSError):
        while file.write(b"x" * 4096):
            pass


def _until_full(site: Site, *args: str) -> list[str]:
    """Repeat a command until the disk is full; what it printed before that."""
    printed: list[str] = []
    while (done := site.mas(*args, code=None)).returncode == 0:
        printed.append(done.stdout.strip())
        assert len(printed) < 50, "the disk is never full"
    assert done.returncode == 6, done.stderr
    assert "The disk is full" in done.stderr
    return printed


def test_a_start_on_a_full_disk_says_so_and_works_again_once_there_is_room(small: Site) -> None:
    sessions = _until_full(small, "start", "--team", "solo")
    kept: dict[str, str] = {}
    for session_id in sessions:
        kept |= _mark(small, session_id)
    check_world(small, kept)
    assert small.statuses() == dict.fromkeys(sessions, "active")
    small.mas("stop", "--all")
    small.mas("delete", sessions[0], "--yes")
    small.mas("prune", "--keep", "0", "--status", "deleted", "--yes")
    del kept[sessions[0]]
    small.start()
    check_world(small, kept)


def test_a_clone_or_an_archive_without_room_leaves_the_session_as_it_was(small: Site) -> None:
    session_id = small.start("--team", "solo")
    small.mas("stop", session_id)
    kept = _mark(small, session_id)
    clones = _until_full(small, "clone", session_id)
    check_world(small, kept)
    done = small.mas("archive", session_id, code=6)
    assert "The disk is full" in done.stderr
    check_world(small, kept)
    assert small.statuses()[session_id] == "stopped"
    small.mas("delete", *clones, "--yes")
    small.mas("prune", "--keep", "0", "--status", "deleted", "--yes")
    small.mas("archive", session_id)
    check_world(small, kept)


def test_with_no_byte_left_sessions_are_listed_and_nothing_is_begun(small: Site) -> None:
    session_id = small.start("--team", "solo")
    kept = _mark(small, session_id)
    filler = small.path("filler")
    _fill(filler)
    assert small.statuses() == {session_id: "active"}
    for verb in ("stop", "delete", "start", "clone"):
        words = {"delete": [session_id, "--yes"], "start": ["--team", "solo"]}.get(verb, [session_id])
        done = small.mas(verb, *words, code=6)
        assert "The disk is full" in done.stderr
    check_world(small, kept)
    small.tmux("kill-server")
    done = small.mas("list")
    assert "The disk is full" in done.stderr
    os.unlink(filler)
    assert small.statuses() == {session_id: "stopped"}
    check_world(small, kept)


def test_a_template_above_the_file_size_limit_is_reported_as_a_full_disk(site: Site) -> None:
    with open(site.path("unit", "00", "large.bin"), "wb") as file:
        file.write(os.urandom(_BLOCK))
    # 64 blocks of 512 or 1024 bytes, whichever this shell counts in: less than the template either way.
    limited = ["sh", "-c", 'ulimit -f 64; exec "$@"', "sh", sys.executable, "-m", "mas", "start", "--team", "solo"]
    done = site.run(limited)
    assert done.returncode == 6, done.stderr
    assert "The disk is full" in done.stderr
    site.mas("list")
    assert check_world(site).directories == set()
    kept = _mark(site, site.start())
    check_world(site, kept)


def test_messages_begun_with_hardly_any_room_are_kept_whole_or_not_at_all(small: Site) -> None:
    session_id = SessionId(small.start("--team", "solo"))
    small.mas("stop", session_id)
    store, filler = small.world().messages(), small.path("filler")
    path = store.path(session_id)
    _fill(filler)
    for _ in range(40):
        os.truncate(filler, os.stat(filler).st_size - 4096)
        with suppress(DiskFull), store.open(session_id):
            pass
        if os.path.exists(path):
            with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as database:
                assert database.execute("PRAGMA quick_check").fetchone() == ("ok",)
            os.unlink(path)
        left = [name for name in os.listdir(os.path.dirname(path)) if name.startswith(".")]
        assert left == [], "what was not finished takes what little room there is"
    os.unlink(filler)
