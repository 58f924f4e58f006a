"""One run of pytest, and what it came to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import psutil

IN_PARALLEL = ("-n", "3", "--dist", "worksteal")
ALONE = ("-n", "0", "-q")
_PATIENCE = 60.0


class Run(NamedTuple):
    code: int
    # The tests that failed, each with the text of all its failures.
    failed: dict[str, str]
    # Those of them after which the teardown of something that other tests used too failed.
    shared: list[str]
    passed: int
    skipped: int
    # Why it says nothing about single tests; None if it does.
    broken: str | None
    output: str


def run(*args: str, shown: bool = True) -> Run:
    """Run pytest; on Ctrl-C wait until it has cleaned up, then raise `KeyboardInterrupt`.

    Nothing that its tests started outlives it, even if one of its processes died.
    """
    with tempfile.TemporaryDirectory() as place:
        record, output = os.path.join(place, "record"), os.path.join(place, "output")
        command = [sys.executable, "-m", "pytest", "-p", "tests.runner.record", f"--record={record}", *args]
        with open(output, "w+", encoding="utf-8", errors="replace") as file, _patient() as started:
            try:
                child = subprocess.Popen(command) if shown else subprocess.Popen(command, stdout=file, stderr=file)
                started(child)
                code = child.wait()
            finally:
                lines = _lines(record)
                _end_rest({str(line["process"]) for line in lines if "process" in line})
            file.seek(0)
            return _run(code, lines, file.read())


def _lines(record: str) -> list[dict[str, Any]]:
    try:
        with open(record, encoding="utf-8") as file:
            return [json.loads(line) for line in file]
    except FileNotFoundError:
        return []


def _run(code: int, lines: list[dict[str, Any]], output: str) -> Run:
    failed: dict[str, str] = {}
    shared = []
    end = {"collected": 0, "ran": -1, "passed": 0, "skipped": 0}
    for line in lines:
        if "failed" in line:
            failed[line["failed"]] = failed.get(line["failed"], "") + f"[{line['when']}]\n{line['text']}\n"
            shared += [line["failed"]] if line["shared"] else []
        elif "collected" in line:
            end = line
    broken = _why_broken(code, bool(failed), end["collected"], end["ran"])
    return Run(code, failed, shared, end["passed"], end["skipped"], broken, output)


def _why_broken(code: int, failed: bool, collected: int, ran: int) -> str | None:
    if code not in (0, 1):
        return f"pytest exited with {code}"
    if ran < 0:
        return "pytest exited before its end"
    if ran < collected:
        return f"{collected - ran} of {collected} tests did not run"
    if bool(code) != failed:
        return f"pytest exited with {code}, and {'a' if failed else 'no'} test failed"
    return None


@contextmanager
def _patient() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Let pytest, which gets Ctrl-C too, clean up; if this process is to end otherwise, interrupt pytest."""
    received: list[int] = []
    children: list[subprocess.Popen[bytes]] = []

    def interrupt(number: int, _: object) -> None:
        received.append(number)
        for child in children if number != signal.SIGINT else []:
            child.send_signal(signal.SIGINT)

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield children.append
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if received:
            raise KeyboardInterrupt


def _end_rest(tests: set[str]) -> None:
    """What a worker that died could not clean up. Of others the tests themselves have reported what was left."""
    deadline = time.monotonic() + _PATIENCE
    while (left := [one for one in psutil.process_iter() if _started_by(one) in tests]) and time.monotonic() < deadline:
        for process in left:
            with suppress(psutil.Error):
                process.kill()


def _started_by(process: psutil.Process) -> str | None:
    try:
        return process.environ().get("MAS_TEST_RUN")
    except (psutil.Error, OSError):
        return None
