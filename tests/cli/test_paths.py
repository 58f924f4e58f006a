"""Paths: whatever path a command is given, it says what is wrong with it, in a sentence and at once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from mas.cli.main import run
from tests.site import Site

COMMANDS = {
    "init": ("init", "{}"),
    "up": ("up", "--no-browser", "{}"),
    "workspace": ("--workspace", "{}", "list"),
    "workspace of init": ("init", "--workspace", "{}"),
    "workspace of doctor": ("--workspace", "{}", "doctor"),
    "config": ("start", "--config", "{}"),
    "file": ("send", "00", "--file", "{}"),
    "migrate": ("migrate", "{}"),
    "token": ("--url", "http://127.0.0.1:1", "--token-file", "{}", "list"),
    "authority": ("--url", "https://127.0.0.1:1", "--ca", "{}", "list"),
    "certificate": ("serve", "--tls-cert", "{}", "--tls-key", "{}"),
}


def _fifo(site: Site) -> str:
    os.mkfifo(site.path("pipe"))
    return site.path("pipe")


def _directory(site: Site) -> str:
    os.mkdir(site.path("directory"))
    return site.path("directory")


def _unreadable(site: Site) -> str:
    with open(site.path("closed"), "w", encoding="utf-8") as file:
        file.write("{}")
    os.chmod(site.path("closed"), 0)
    return site.path("closed")


def _loop(site: Site) -> str:
    os.symlink("loop", site.path("loop"))
    return site.path("loop")


PATHS: dict[str, Callable[[Site], str]] = {
    "under /proc": lambda site: "/proc/x",
    "under a device": lambda site: "/dev/null/x",
    "a device without end": lambda site: "/dev/zero",
    "a pipe": _fifo,
    "a directory": _directory,
    "an unreadable file": _unreadable,
    "too long a name": lambda site: "x" * 300,
    "a loop of links": _loop,
    "nothing": lambda site: "",
    "no text": lambda site: os.fsdecode(b"\xff\xfe"),
}
# Where it is what was asked for.
FINE = {("init", "a directory"), ("workspace of init", "a directory")}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("command", COMMANDS)
def test_no_path_makes_a_traceback_or_a_wait(site: Site, command: str, path: str) -> None:
    if (command, path) == ("up", "a directory"):
        pytest.skip("that is a new workspace")
    if command == "file":
        site.start("--team", "solo")
    given = PATHS[path](site)
    words = [word.format(given) for word in COMMANDS[command]]
    done = site.mas(*words, code=None, env={"MAS_WORKSPACE_ROOT": ""} if "workspace" in command else {})
    assert "Traceback" not in done.stderr
    if (command, path) in FINE:
        return
    if os.getuid() == 0 and path == "an unreadable file":
        # Nothing is unreadable to root.
        return
    assert done.returncode in (2, 3, 6), (done.returncode, done.stderr)
    assert done.stderr.startswith("error: ")
    assert "hint:" in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_a_path_with_a_nul_is_refused(
    site: Site, command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(site.root)
    assert run([word.format("a\0b") for word in COMMANDS[command]]) == 2
    assert "not a path" in capsys.readouterr().err


def test_a_message_comes_from_another_program_by_a_pipe(site: Site) -> None:
    site.start("--team", "solo", "--command", "cat")
    done = site.run(["bash", "-c", f'"{sys.executable}" -m mas send --force 00 --file <(sleep 0.2; echo hello)'])
    assert "Sent 6 bytes to 00" in done.stderr


def test_a_file_is_no_workspace_and_is_not_called_one(site: Site) -> None:
    assert "error: Not a directory: " in site.mas("init", site.path("config.json"), code=2).stderr
    for words in (("init", ""), ("--workspace", "", "list"), ("list", "--workspace=")):
        assert "the path is empty" in site.mas(*words, code=2).stderr
    assert "Cannot create the directory /proc/x: " in site.mas("init", "/proc/x", code=2).stderr


@pytest.mark.skipif(os.getuid() == 0, reason="nothing is unreadable to root")
def test_a_template_that_cannot_be_read_is_named_with_its_directory(site: Site) -> None:
    os.chmod(site.path("unit", "21", "ROLE.md"), 0)
    done = site.mas("start", code=6)
    assert done.stderr.startswith(f"error: Permission denied ({site.path('unit', '21', 'ROLE.md')})\n")


def test_the_name_of_a_file_that_cannot_be_copied_is_all_of_it(site: Site) -> None:
    # As root too: a name of which only the last part would be shown.
    argv = [
        sys.executable,
        "-c",
        "import os, sys, mas.store.files.tree as tree\n"
        "def refuse(copy, from_fd, to_fd, name): raise PermissionError(13, 'Permission denied', name)\n"
        "tree._copy_file = refuse\n"
        "tree.copy_tree(sys.argv[1], sys.argv[2])",
        site.path("unit", "21"),
        site.path("copy"),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert f"PermissionError: [Errno 13] Permission denied: '{site.path('unit', '21')}/" in done.stderr
