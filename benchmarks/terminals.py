"""Live terminals: a flood while somebody watches, and a key's way to its echo."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
from itertools import count
from tempfile import mkstemp

from tests.site import Site, until
from websockets.sync.client import ClientConnection, connect

from benchmarks.arena import arena, until_started
from benchmarks.floor import RawTmux
from benchmarks.measure import Effort, Group, Row, in_turns
from benchmarks.serving import serving
from mas.model.ids import SessionId
from mas.model.run import Run
from mas.model.team import team_named
from mas.settings import ServerMode

MB = 20
_LINE = "0123456789" * 9 + "abcdefgh"
# Prints so many megabytes of lines each time a line is typed, and then that this flood is over.
_FLOOD = f"""
import sys
for number, line in enumerate(sys.stdin, 1):
    for _ in range({MB} * 10):
        sys.stdout.write({_LINE + chr(10)!r} * 1010)
    sys.stdout.write("flood-" + f"over {{number}}." + chr(10))
    sys.stdout.flush()
"""
FLOODING = [sys.executable, "-c", _FLOOD]


def measure(effort: Effort) -> Group:
    return Group(
        "Live terminals",
        (*_floods(effort), *_echoes(effort)),
        (
            f"Flood: a program prints {MB} MB of lines; from the key that starts it until its last word is seen.",
            "Its floor is the same program in a bare pane, seen by capture-pane; a viewer that falls behind gets the"
            " screen anew instead of every byte.",
            "Echo: a key sent by WebSocket until it comes back from `cat`; floor: a control-mode client with output.",
        ),
    )


def _floods(effort: Effort) -> list[Row]:
    with arena() as site, serving(site) as served:
        session = start_solo(site, FLOODING)
        raw = RawTmux(site, site.user_socket)
        raw.run(["new-session", "-d", "-s", "floor", "-x", "100", "-y", "30", *FLOODING])
        floods = count(1)
        with watching(served.url, served.token, session) as viewer:
            watched, floor = in_turns(
                effort.repeats(6), lambda: flood_watched(viewer, next(floods)), lambda: _flood_bare(raw)
            )
        site.mas("stop", "--all")
    return [
        Row(f"{MB} MB printed while watched, until the viewer has the end", watched, "a bare pane", floor),
        Row("the same as megabytes a second", MB / watched, "a bare pane", MB / floor, unit="MB/s"),
    ]


def flood_watched(viewer: ClientConnection, number: int) -> float:
    """How long the program's flood of that number takes; an earlier one may still be seen."""
    begun = time.perf_counter()
    viewer.send(b"go\r")
    _read_until(viewer, b"flood-over %d." % number)
    return time.perf_counter() - begun


def _flood_bare(raw: RawTmux) -> float:
    raw.run(["clear-history", "-t", "=floor:"], ["send-keys", "-R", "-t", "=floor:"])
    begun = time.perf_counter()
    raw.run(["send-keys", "-t", "=floor:", "go", "Enter"])
    until(lambda: b"flood-over" in raw.run(["capture-pane", "-p", "-t", "=floor:"]), "the end of the flood")
    return time.perf_counter() - begun


def _echoes(effort: Effort) -> list[Row]:
    with arena() as site, serving(site) as served:
        session = start_solo(site, ["cat"])
        RawTmux(site, site.user_socket).run(["new-session", "-d", "-s", "floor", "cat"])
        bare = _Loud(site)
        with watching(served.url, served.token, session) as viewer:
            echo, floor = in_turns(effort.repeats(200), lambda: echoed(viewer), bare.echo)
        bare.close()
        site.mas("stop", "--all")
    return [Row("a key until its echo, by WebSocket", echo, "a control-mode client", floor)]


def echoed(viewer: ClientConnection) -> float:
    begun = time.perf_counter()
    viewer.send(b"x")
    _read_until(viewer, b"x")
    return time.perf_counter() - begun


class _Loud:
    """A control-mode client that gets output: what a viewer costs without a server between."""

    def __init__(self, site: Site) -> None:
        argv = ["tmux", "-S", site.user_socket, "-C", "attach-session", "-f", "ignore-size", "-t", "=floor"]
        self._process = subprocess.Popen(argv, env=site.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

    def echo(self) -> float:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        begun = time.perf_counter()
        stdin.write(b"send-keys -t =floor: -H 78\n")
        while not re.match(rb"%output %\d+ x", stdout.readline()):
            pass
        return time.perf_counter() - begun

    def close(self) -> None:
        self._process.communicate()


def start_solo(site: Site, argv: list[str]) -> SessionId:
    # A file for each: a shell that has not read its own yet would read nothing while the next one is written.
    descriptor, program = mkstemp(".sh", dir=site.directory)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(f"exec {shlex.join(argv)}\n")
    session = site.local(ServerMode.DEFAULT).start(Run(team=team_named("solo"), command=f"/bin/sh {program}"))
    until_started(site, session)
    return SessionId(session.session_id)


def watching(url: str, token: str, session: SessionId) -> ClientConnection:
    address = f"{url.replace('http', 'ws', 1)}/sessions/{session}/agents/00/terminal"
    headers = {"Authorization": f"Bearer {token}"}
    viewer = connect(address, additional_headers=headers, max_size=None, compression=None)
    first = viewer.recv()
    assert isinstance(first, str)
    assert json.loads(first)["type"] == "screen"
    viewer.recv()
    return viewer


def _read_until(viewer: ClientConnection, wanted: bytes) -> None:
    seen = b""
    while wanted not in seen:
        frame = viewer.recv(timeout=60)
        if isinstance(frame, bytes):
            seen = seen[-len(wanted) :] + frame
