"""A message to an idle agent: from the call to the program that reads it."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from tests.site import Site, until

from benchmarks.arena import arena
from benchmarks.floor import RawTmux
from benchmarks.measure import Effort, Group, Row, in_turns, times
from mas.model.ids import SessionId
from mas.model.run import Run
from mas.model.team import team_named
from mas.service.local import LocalMas
from mas.settings import ServerMode

_READER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reader.py")
_PATIENCE = 30.0
_TEXT = "please look at the failing test and say what you think is wrong with it; " * 2


def measure(effort: Effort) -> Group:
    with arena() as site, reporting(site, "product") as reader, reporting(site, "floor") as raw_reader:
        raw = RawTmux(site, site.user_socket)
        mas = site.local(ServerMode.DEFAULT)
        _write_provider(site, reader.argv)
        session = mas.start(Run(team=team_named("solo"), provider="reader"))
        raw.run(["new-session", "-d", "-s", "floor", *raw_reader.argv])
        pane = raw.run(["list-panes", "-s", "-t", "=floor:", "-F", "#{pane_id}"]).decode().strip()
        _until_pasting(raw, pane, raw_reader)
        _until_pasting(raw, session.agents[0].pane or "", reader)
        enters: list[float] = []
        product, floor = in_turns(
            effort.repeats(40),
            lambda: _send(mas, SessionId(session.session_id), reader, enters),
            lambda: _paste(raw, pane, raw_reader),
        )
        mas.stop(SessionId(session.session_id))
    unknown = 0.2
    return Group(
        "Message to an idle agent",
        (
            times("send: call → text at the program", product, "one tmux invocation", floor, 2),
            Row("send: call → Enter at the program, submit delay 0", median(enters), "one tmux invocation", floor),
            Row("submit delay of a program MAS does not know (shown apart)", unknown),
        ),
        (
            f"A message of {len(_TEXT)} bytes to a program that asked for bracketed paste.",
            "Floor: load-buffer, paste-buffer and send-keys in one invocation, to a program with no launcher between.",
        ),
    )


@contextmanager
def reporting(site: Site, name: str) -> Iterator[Reader]:
    """A stand-in's pipe, open on both ends so that neither side waits for the other to come."""
    fifo = os.path.join(site.directory, f"{name}.fifo")
    os.mkfifo(fifo)
    fd = os.open(fifo, os.O_RDWR)
    try:
        yield Reader([sys.executable, "-ISE", _READER, fifo], fd)
    finally:
        os.close(fd)


class Reader:
    """The stand-in that reads messages, seen through its reports."""

    def __init__(self, argv: list[str], reports: int) -> None:
        self.argv = argv
        self._reports = reports
        self._lines: list[bytes] = []

    def wait_for(self, what: str) -> float:
        """When it happened, in seconds of the monotonic clock that all processes share."""
        while True:
            while not self._lines:
                self._lines = os.read(self._reports, 4096).splitlines()
            word, _, at = self._lines.pop(0).partition(b" ")
            if word.decode() == what:
                return int(at) / 1e9

    def spoke(self) -> bool:
        """Whether there is anything to hear; waits a moment for it."""
        return bool(self._lines or select.select([self._reports], [], [], 0.05)[0])


def _send(mas: LocalMas, session: SessionId, reader: Reader, enters: list[float]) -> float:
    begun = time.monotonic()
    mas.send(session, "00", _TEXT, wait=_PATIENCE)
    text = reader.wait_for("text") - begun
    enters.append(reader.wait_for("enter") - begun)
    return text


def _paste(raw: RawTmux, pane: str, reader: Reader) -> float:
    begun = time.monotonic()
    raw.run(
        ["load-buffer", "-b", "floor", "-"],
        ["paste-buffer", "-p", "-r", "-d", "-b", "floor", "-t", pane],
        ["send-keys", "-t", pane, "Enter"],
        stdin=_TEXT.encode(),
    )
    text = reader.wait_for("text") - begun
    reader.wait_for("enter")
    return text


def _write_provider(site: Site, argv: list[str]) -> None:
    os.mkdir(site.path("providers"))
    words = ", ".join(f'"{word}"' for word in argv)
    with open(site.path("providers", "reader.toml"), "w", encoding="utf-8") as file:
        file.write(
            'provider = { id = "reader" }\ninput = { submit_delay = 0.0, ack = "osc:working" }\n'
            f'[launch]\nargv = [{words}]\n[status]\nsources = ["osc7501"]\n'
        )


def _until_pasting(raw: RawTmux, pane: str, reader: Reader) -> None:
    """Wait until tmux has seen the program ask for bracketed paste: only such a paste is reported."""
    reader.wait_for("ready")
    probe = [["set-buffer", "-b", "probe", "x"], ["paste-buffer", "-p", "-d", "-b", "probe", "-t", pane]]
    until(lambda: raw.run(*probe) or reader.spoke(), "bracketed paste")
    reader.wait_for("text")
