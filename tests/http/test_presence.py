"""A workspace and its server: one at most, found where it is, and gone when the workspace is."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import closing, suppress

import psutil
import pytest

from mas.model.server import ServerInfo
from mas.store.server.presence import Presence
from tests.served import Served
from tests.site import Site, until

ANNOUNCED = (
    ("sessions", ".mas", "server", "server.json"),
    ("sessions", ".mas", "server", "api.sock"),
    ("sessions", ".mas", "server", "agents.sock"),
    ("sessions", ".mas", "address", "url"),
    ("logs", "api.pid"),
)


def remove(path: str) -> None:
    """Remove a directory in which a server may be writing just now."""

    def is_gone() -> bool:
        shutil.rmtree(path, ignore_errors=True)
        return not os.path.exists(path)

    until(is_gone, f"{path} is gone")


def wait_ended(served: Served) -> None:
    until(lambda: not _lives(served.pid), "the server has ended by itself")


def _lives(pid: int) -> bool:
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


@pytest.fixture
def paused(served: Served) -> Iterator[Served]:
    """A server that notices nothing for a while."""
    os.kill(served.pid, signal.SIGSTOP)
    try:
        yield served
    finally:
        with suppress(ProcessLookupError):
            os.kill(served.pid, signal.SIGCONT)


@pytest.mark.parametrize("what", ["workspace", "sessions", "sessions/.mas"])
def test_a_server_whose_workspace_is_removed_ends_by_itself(served: Served, what: str) -> None:
    remove(served.site.root if what == "workspace" else served.site.path(what))
    wait_ended(served)


@pytest.mark.parametrize("what", ["workspace", "sessions/.mas"])
def test_a_server_that_goes_late_leaves_that_of_a_workspace_made_again_alone(paused: Served, what: str) -> None:
    site = paused.site
    remove(site.root if what == "workspace" else site.path(what))
    site.mas("init", site.root, "--provider", "shell")
    with closing(Served(site)) as second:
        os.kill(paused.pid, signal.SIGCONT)
        wait_ended(paused)
        assert _lives(second.pid)
        assert all(os.path.exists(site.path(*names)) for names in ANNOUNCED)
        assert site.mas("url").stdout.startswith(second.url)
        assert site.json("serve", "--stop")["pid"] == second.pid
        assert not any(os.path.exists(site.path(*names)) for names in ANNOUNCED)


def test_a_file_of_a_later_server_stays_even_with_the_number_of_an_earlier_servers_file(site: Site) -> None:
    earlier = Presence(site.world().layout, site.home)
    earlier.claim()
    earlier.announce(ServerInfo(os.getpid(), "http://127.0.0.1:1", earlier.socket, "", "", None))
    announced = os.stat(earlier.pid_file)

    def is_written_later() -> bool:
        with open(earlier.pid_file, "w", encoding="ascii") as file:
            file.write("2\n")
        return os.stat(earlier.pid_file).st_mtime_ns > announced.st_mtime_ns

    until(is_written_later, "a file with a later time")
    assert os.stat(earlier.pid_file).st_ino == announced.st_ino
    earlier.withdraw()
    with open(earlier.pid_file, encoding="ascii") as file:
        assert file.read() == "2\n"
    # A control: what is its own it takes away.
    assert not os.path.exists(site.path(*ANNOUNCED[0]))


def test_one_whose_file_was_removed_is_named_and_can_be_stopped(served: Served) -> None:
    site = served.site
    server = site.path("sessions", ".mas", "server")
    os.unlink(os.path.join(server, "server.json"))
    # It has been there for long: no command waits for its address.
    os.utime(os.path.join(server, "server.lock"), (0, 0))
    said = json.loads(site.mas("url", "--json", code=7).stderr)
    assert f"process {served.pid}" in said["message"]
    assert said["hint"].startswith("mas serve --stop")
    assert f"process {served.pid}" in site.mas("serve", "--port", "0", code=4).stderr
    assert f"process {served.pid}" in site.mas("serve", "--stop").stderr
    wait_ended(served)
    assert site.mas("serve", "--stop").stderr.startswith("No server is running")


def test_the_server_of_a_workspace_that_was_moved_ends_and_leaves_nothing_there(served: Served) -> None:
    site, there = served.site, f"{served.site.root}-moved"
    os.rename(site.root, there)
    said = site.mas("url", "--workspace", there, env={"MAS_WORKSPACE_ROOT": ""}, cwd=site.home, code=7).stderr
    assert "No server is running" in said
    wait_ended(served)
    assert not any(os.path.exists(os.path.join(there, *names)) for names in ANNOUNCED)


def test_a_session_that_is_started_where_a_workspace_was_moved_to_has_a_server(paused: Served) -> None:
    site, there = paused.site, f"{paused.site.root}-moved"
    os.rename(site.root, there)
    site.root, site.env["MAS_WORKSPACE_ROOT"], site.env["MAS_SERVER"] = there, there, "auto"
    site.start()
    os.kill(paused.pid, signal.SIGCONT)
    wait_ended(paused)
    assert site.mas("url").stdout.startswith("http://127.0.0.1:")
    site.mas("serve", "--stop")
