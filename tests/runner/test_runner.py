"""What failed is run again alone: what passes then is named and kept, and nothing else is forgiven."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from itertools import islice

import pytest

from tests.faults.field import steps
from tests.runner.suite import Suite
from tests.seed import SEED
from tests.site import until

RUNNER = ("tests.runner", "-n", "1")


def test_what_passes_alone_is_named_and_kept_and_the_run_is_green(suite: Suite) -> None:
    suite.put(
        "test_it.py",
        """
import os, signal, subprocess
import pytest
from once import first

@pytest.fixture
def torn():
    yield
    assert not first("torn"), "the teardown fails"

@pytest.mark.parametrize("name", ["a b::c", "[d]"])
def test_body(name):
    with open("seeds", "a") as file:
        print(os.environ["MAS_TORTURE_SEED"], file=file)
    print("what it printed")
    assert not first(name), "the body fails"

def test_torn(torn): pass

def test_crash():
    if first("crash"):
        env = {**os.environ, "MAS_TEST_RUN": str(os.getpid())}
        subprocess.Popen(["sleep", "1000"], env=env, start_new_session=True)
        os.kill(os.getpid(), signal.SIGKILL)

def test_good(): pass

@pytest.mark.skip(reason="not here")
def test_skipped(): pass
""",
    )
    code, lines = suite.run(*RUNNER, "-n", "2")
    named = [line for line in lines[-10:] if line.startswith("UNSTEADY ")]
    tests = ("test_body[a b::c]", "test_body[[d]]", "test_torn", "test_crash")
    assert sorted(named) == sorted(f"UNSTEADY test_it.py::{test}" for test in tests)
    assert code == 0
    assert lines[-1] == "5 passed, 0 failed, 1 skipped"
    assert "= 5 passed, 1 skipped, 4 unsteady in " in lines[-2]
    # What pytest said of the first run stays: of the torn one the body had passed.
    assert any("3 failed, 2 passed, 1 skipped, 1 error in " in line for line in lines)
    kept = suite.text("artefacts", "unsteady.txt")
    assert all(line in kept for line in named)
    for text in ("assert not first(name)", "what it printed", "the teardown fails", "crashed while running"):
        assert text in kept
    assert len(set(suite.text("seeds").split())) == 1
    assert list(suite.processes()) == []


def test_what_fails_alone_too_is_red_whatever_else_is_unsteady(suite: Suite) -> None:
    suite.put(
        "test_it.py",
        """
import os
import pytest
from once import first

def test_once(): assert not first("once")
def test_always(): assert 6 * 7 == 41, "the tries: " + str([first("one"), first("two")])
def test_crash(): os._exit(0)

def test_skipped():
    if not first("skipped"): pytest.skip("no longer here")
    assert False
""",
    )
    code, lines = suite.run(*RUNNER)
    assert code == 1
    assert sorted(lines[-7:-3]) == [
        "FAILED test_it.py::test_always - also alone",
        "FAILED test_it.py::test_crash - also alone",
        "FAILED test_it.py::test_skipped - also alone",
        "UNSTEADY test_it.py::test_once",
    ]
    assert "= 3 failed, 1 passed, 1 unsteady in " in lines[-2]
    assert lines[-1] == "1 passed, 3 failed, 0 skipped"
    tried = [line for line in lines if line.startswith("again, alone")]
    assert len([line for line in tried if "test_always: failed" in line]) == 2
    assert len([line for line in tried if "test_crash: failed" in line]) == 2
    assert "test_always" not in suite.text("artefacts", "unsteady.txt")


def test_more_than_five_that_failed_are_red_and_not_run_again(suite: Suite) -> None:
    suite.put(
        "test_it.py",
        """
import pytest
from once import first

@pytest.mark.parametrize("number", range(6))
def test_once(number): assert not first(number)
""",
    )
    code, lines = suite.run(*RUNNER)
    assert code == 1
    assert lines[-1] == "RED: 6 tests failed; at most 5 are run again"
    assert "= 6 failed in " in lines[-2]
    assert len([line for line in lines[-8:] if line.startswith("FAILED ")]) == 6
    assert not suite.has("artefacts")


# A suite that says nothing about single tests, what it is called with, and what is said of it.
BROKEN = {
    "a collection error": ("import nowhere", (), "RED: pytest exited with 2; no test is run again"),
    "no tests at all": ("", (), "RED: pytest exited with 5; no test is run again"),
    "an unknown option": ("def test_it(): pass", ("--nonsense",), "RED: pytest exited with 4; no test is run again"),
    "an error in pytest": (
        "def pytest_sessionstart(): raise RuntimeError",
        ("-p", "test_it"),
        "RED: pytest exited with 3; no test is run again",
    ),
    "tests that did not run": (
        "import os\ndef test_a(): os._exit(1)\ndef test_b(): pass\ndef test_c(): pass",
        ("--max-worker-restart=0",),
        "RED: 2 of 3 tests did not run; no test is run again",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_run_that_says_nothing_of_single_tests_is_red_at_once(suite: Suite, case: str) -> None:
    body, args, said = BROKEN[case]
    suite.put("test_it.py", body)
    suite.put("test_other.py", "from once import first\ndef test_once(): assert not first('once')")
    only = () if case == "a collection error" else ("test_it.py",)
    code, lines = suite.run(*RUNNER, *args, *only)
    assert code != 0
    assert lines[-1] == said
    # Nor does anything run that could be collected.
    assert not suite.has("once.tried")


def test_a_process_that_was_left_behind_is_red_at_once_whatever_test_it_is_laid_to(suite: Suite) -> None:
    """The session's own check fails in the teardown of the last test, which alone has no fault."""
    suite.put("conftest.py", "from tests.conftest import nothing_left_behind")
    suite.put(
        "test_it.py",
        """
import os, subprocess

def test_guilty():
    env = {**os.environ, "MAS_TEST_RUN": str(os.getpid())}
    subprocess.Popen(["sleep", "1000"], env=env, start_new_session=True).returncode = 0

def test_last(): pass
""",
    )
    code, lines = suite.run(*RUNNER)
    assert code == 1
    said = "RED: what tests share could not be torn down after test_it.py::test_last; no test is run again"
    assert lines[-1] == said
    assert "= 2 passed, 1 error in " in lines[-2]
    assert "ERROR test_it.py::test_last" in lines[-3]
    assert list(suite.processes()) == []


def test_what_is_left_to_chance_is_the_same_with_the_same_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = set()
    for seed in ("1", "2", "1"):
        monkeypatch.setenv(SEED, seed)
        drawn.add(tuple(islice(steps(1000), 3)))
    assert len(drawn) == 2


@pytest.mark.parametrize(
    ("signalled", "number", "workers"),
    [(os.killpg, signal.SIGINT, ("gw0", "gw1")), (os.kill, signal.SIGTERM, ())],
    ids=["Ctrl-C to all of the group", "told alone to end"],
)
def test_an_interrupted_run_cleans_up_and_runs_nothing_again(
    suite: Suite, signalled: Callable[[int, int], None], number: int, workers: tuple[str, ...]
) -> None:
    suite.put(
        "test_it.py",
        """
import os, time
import pytest
from once import first

@pytest.fixture
def torn():
    yield
    first(f"torn {os.environ.get('PYTEST_XDIST_WORKER')}")

def test_failed(): assert first("failed") is None

@pytest.mark.parametrize("number", range(4))
def test_long(torn, number):
    first(f"begun {os.environ.get('PYTEST_XDIST_WORKER')}")
    time.sleep(1000)
""",
    )
    child = suite.begin(*RUNNER, "-n", str(len(workers)))
    begun = ["failed.tried", *(f"begun {worker}.tried" for worker in workers or ("None",))]
    until(lambda: all(map(suite.has, begun)), "the tests began")
    signalled(child.pid, number)
    output, _ = child.communicate(timeout=60)
    assert child.returncode == 130
    assert output.splitlines()[-1] == "RED: interrupted"
    assert "again, alone" not in output
    assert list(suite.processes()) == []
    assert all(suite.has(name.replace("begun", "torn")) for name in begun)
