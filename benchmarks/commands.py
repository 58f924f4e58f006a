"""Whole commands, each a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks.arena import BIN, arena
from benchmarks.crowd import one_pane_crowd
from benchmarks.measure import Effort, Group, Row, in_turns, timed, times
from mas.settings import ServerMode

_SESSIONS = 100


def measure(effort: Effort) -> Group:
    with arena() as site:
        one_pane_crowd(site, ServerMode.AUTO, _SESSIONS)

        def running(*argv: str) -> float:
            return timed(lambda: subprocess.run(argv, env=site.env, capture_output=True, check=True))

        mas = os.path.join(BIN, "mas")
        listing, helping, version, empty = in_turns(
            effort.repeats(25),
            lambda: running(mas, "list"),
            lambda: running(mas, "--help"),
            lambda: running(mas, "version"),
            lambda: running(sys.executable, "-c", "pass"),
        )
    floor = "python -c pass"
    return Group(
        "Commands",
        (
            times(f"`mas list` with {_SESSIONS} sessions", listing, floor, empty, 5),
            Row("`mas --help`", helping, floor, empty),
            Row("`mas version`", version, floor, empty),
        ),
    )
