"""Tests are run several times beside other work; those that did not always pass are named, with how often."""

from __future__ import annotations

import os
import signal

from tests.runner.suite import Suite
from tests.site import until

STEADY = ("tests.runner.steady", "-n", "1")


def test_what_did_not_always_pass_is_named_with_how_often_and_its_first_failure(suite: Suite) -> None:
    suite.put(
        "test_it.py",
        """
from once import first

def test_once(): assert not first("once"), "the first time"
def test_always(): assert False, "first: " + str(first("always"))
def test_good(): pass
""",
    )
    code, lines = suite.run(*STEADY, "--runs", "2")
    assert code == 1
    assert lines[-3:-1] == ["failed in 2 of 2: test_it.py::test_always", "failed in 1 of 2: test_it.py::test_once"]
    assert lines[-1].startswith("tests that did not always pass: 2; runs: 2, load: 0, ")
    kept = suite.text("artefacts", "steady.txt")
    assert kept.splitlines()[-3:] == lines[-3:]
    assert "the first time" in kept
    assert "first: True" in kept
    assert "first: False" not in kept


def test_beside_it_processors_are_busy_and_interrupted_it_says_what_it_has_seen(suite: Suite) -> None:
    suite.put(
        "test_it.py",
        """
import time
import psutil
from once import first

def test_load():
    worker = psutil.Process()
    busy = [one for one in worker.parent().parent().children() if one.pid != worker.ppid()]
    assert len(busy) == 1
    while any(sum(one.cpu_times()[:2]) < 0.1 for one in busy): pass

def test_once():
    assert not first("once")

def test_long():
    if not first("one"):
        first("two")
        time.sleep(1000)
""",
    )
    child = suite.begin(*STEADY, "--load", "1")
    until(lambda: suite.has("two.tried"), "the second run began")
    os.killpg(child.pid, signal.SIGINT)
    output, _ = child.communicate(timeout=60)
    assert child.returncode == 1
    assert [line for line in output.splitlines() if line.startswith(("failed in ", "run "))] == [
        "failed in 1 of 1: test_it.py::test_once",
        "run 2: interrupted",
    ]
    assert list(suite.processes()) == []


def test_a_run_that_says_nothing_of_single_tests_ends_it(suite: Suite) -> None:
    code, lines = suite.run(*STEADY, "--runs", "3", "nowhere.py")
    assert code == 1
    assert lines[-2].startswith("run 1: pytest exited with ")
