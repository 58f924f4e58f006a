"""A tmux server that dies while a team is opened: an error, and nothing of the team is left."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from threading import Event, Thread

import psutil
import pytest

from mas.model.errors import MasError, NoTmux
from mas.runtime.runtime import Place
from mas.settings import ServerMode
from tests.runtime.ground import DEFAULT_TEAM, NAME, Ground, started_by
from tests.site import Site, until

# Stands before the real tmux on PATH and kills the server whenever a client has opened a session.
KILLER = """#!/bin/sh
'{tmux}' "$@"
code=$?
for word in "$@"; do
    [ "$word" = new-session ] || continue
    socket=
    for each in "$@"; do [ "$socket" = next ] && {{ socket=$each; break; }}; [ "$each" = -S ] && socket=next; done
    kill -9 "$('{tmux}' -S "$socket" display-message -p '#{{pid}}')" 2>/dev/null
    echo 'lost server' >&2
    exit 1
done
exit $code
"""


def install_killer(site: Site) -> str:
    """A PATH on which tmux is the killer."""
    directory = os.path.join(site.directory, "bin")
    os.mkdir(directory)
    path = os.path.join(directory, "tmux")
    with open(path, "w", encoding="utf-8") as file:
        file.write(KILLER.format(tmux=shutil.which("tmux")))
    os.chmod(path, 0o755)
    return f"{directory}:{site.env['PATH']}"


@pytest.mark.parametrize("mode", list(ServerMode))
def test_a_server_killed_after_it_opened_the_team_is_an_error_that_leaves_nothing(
    bare: Site, mode: ServerMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = install_killer(bare)
    bare.env["PATH"] = path
    monkeypatch.setenv("PATH", path)
    ground = Ground(bare, mode)
    socket = ground.runtime.place(NAME, 13)
    with pytest.raises(NoTmux):
        ground.runtime.open(socket, ground.plan(DEFAULT_TEAM))
    place = Place(socket, NAME)
    assert ground.runtime.alive([place]) == {place: False}
    until(lambda: not started_by(bare, "sleep"), "the end of what had started")
    assert mode in (ServerMode.DEFAULT, ServerMode.AUTO) or not os.path.lexists(socket)


@pytest.mark.parametrize("mode", list(ServerMode))
def test_a_session_whose_server_dies_while_it_starts_does_not_exist(site: Site, mode: ServerMode) -> None:
    done = site.mas("start", "--team", "pair", env={"PATH": install_killer(site), "MAS_TMUX_SERVER": mode}, code=None)
    assert done.returncode != 0
    assert done.stderr
    assert site.statuses() == {}
    assert [name for name in os.listdir(site.path("sessions")) if not name.startswith(".")] == []
    until(lambda: not site.processes(), "the end of everything")


def test_a_server_killed_at_any_moment_leaves_a_whole_team_or_none(bare: Site) -> None:
    ground = Ground(bare, ServerMode.DEFAULT)
    for number in range(12):
        place = Place(bare.user_socket, f"mas-{number:08x}")
        opened = Event()
        killer = Thread(target=kill_server_at_first_pane, args=(bare, number, opened))
        killer.start()
        try:
            panes = ground.runtime.open(place.socket, ground.plan(DEFAULT_TEAM, place.name))
        except MasError:
            assert ground.runtime.panes(place) == []
        else:
            assert len(panes) == 13
        finally:
            opened.set()
            killer.join()
        until(lambda: not started_by(bare, "sleep"), "the end of every program")


def kill_server_at_first_pane(site: Site, wait_for: int, opened: Event) -> None:
    """Kill the server once it has started that many programs, or once it has started all."""
    while True:
        done = opened.is_set()
        ours = site.processes()
        if done or sum(1 for process in ours if _name(process) == "sleep") >= wait_for + 1:
            for process in ours:
                if _name(process).startswith("tmux: server"):
                    process.kill()
            if done:
                return


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.Error:
        return ""


_SLOW_TMUX = """#!/bin/sh
echo $$ > "$PLACE/began.tmp"
mv "$PLACE/began.tmp" "$PLACE/began"
until test -e "$PLACE/go"; do sleep 0.01; done
cat > "$PLACE/read.tmp"
mv "$PLACE/read.tmp" "$PLACE/read"
"""
_TYPIST = """
import os, sys
from mas.runtime.tmux import Tmux

Tmux(sys.argv[1], True, dict(os.environ)).alone(["load-buffer", "-"], stdin=b"x" * (1 << 20))
"""


def test_a_client_whose_process_is_killed_does_not_read_half_of_a_text(bare: Site) -> None:
    """It would paste that half, and press Enter behind it."""
    program = os.path.join(bare.directory, "tmux")
    with open(program, "w", encoding="utf-8") as file:
        file.write(_SLOW_TMUX)
    os.chmod(program, 0o755)
    env = {**bare.env, "PLACE": bare.directory, "PATH": f"{bare.directory}:{bare.env['PATH']}"}
    typist = subprocess.Popen([sys.executable, "-c", _TYPIST, os.path.join(bare.directory, "s")], env=env)
    until(lambda: os.path.exists(os.path.join(bare.directory, "began")), "the client")
    typist.kill()
    typist.wait()
    with open(os.path.join(bare.directory, "go"), "w", encoding="utf-8"):
        pass
    read = os.path.join(bare.directory, "read")
    until(lambda: os.path.exists(read), "what it read")
    assert os.path.getsize(read) == 1 << 20
