"""What a machine can enforce is found out by trying."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from mas.runtime.sandbox import probe as probing
from mas.runtime.sandbox.probe import landlock_abi, not_enforced, probe
from tests.sandbox.house import HOWS, must_have
from tests.site import short_directory

PROBE = probing.__file__


def run(how: str, before: str = "", shell: tuple[str, ...] = ("sh", "-c")) -> subprocess.CompletedProcess[str]:
    """The probe, with something done to its surroundings first."""
    argv = [*shell, f'{before}\nexec "$@"', "sh", sys.executable, "-ISE", PROBE, how]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("how", HOWS)
def test_a_probe_that_succeeds_says_nothing_and_leaves_nothing(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    must_have(how)
    with short_directory() as directory:
        monkeypatch.setenv("TMPDIR", directory)
        assert probe(how) == ""
        assert os.listdir(directory) == []


def test_a_missing_program_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert probe("bwrap") == "bubblewrap (bwrap) is not installed"


def test_refused_namespaces_are_the_reason() -> None:
    must_have("namespaces")
    done = run("namespaces", "echo 0 > /proc/sys/user/max_mnt_namespaces", ("unshare", "-Ur", "sh", "-c"))
    assert done.returncode == 1
    assert done.stdout == "unshare: No space left on device\n"


def test_a_hole_in_the_wall_is_found() -> None:
    """With the walls taken out of the code, the attempts succeed, and the probe says which."""
    must_have("landlock")
    holes = "import os, runpy, sys; sys.path.insert(0, sys.argv[1]); from mas.runtime.sandbox import landlock; "
    holes += "landlock.restrict = os.close; sys.argv = sys.argv[2:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    root = PROBE.rsplit("/", 4)[0]
    done = subprocess.run(
        [sys.executable, "-ISE", "-c", holes, root, PROBE, "landlock"], capture_output=True, text=True, check=False
    )
    assert done.stdout == (
        "a file outside could be written; a hidden file could be read; a process outside could be reached\n"
    )


def test_a_masked_proc_costs_the_own_processes_and_nothing_else() -> None:
    must_have("namespaces")
    # What is mounted over a part of it cannot be taken away in the inner one of the two namespaces.
    masked = 'mount -t tmpfs none /proc/sys || exit 9; set -- unshare -Urm "$@"'
    shell = ("unshare", "-Urm", "sh", "-c")
    assert run("proc").returncode == 0
    assert run("proc", masked, shell).returncode == 1
    if landlock_abi() >= 6:
        assert run("namespaces", masked, shell).stdout == "\n"


def test_every_tier_says_what_it_leaves_open() -> None:
    assert not_enforced("A", 7, "bwrap") == ()
    assert any("abstract" in line for line in not_enforced("A", 5, "bwrap"))
    newest, oldest = not_enforced("B", 7, "landlock"), not_enforced("B", 1, "landlock")
    assert set(newest) < set(oldest)
    assert any("mode and times" in line for line in newest)
    assert any("truncate" in line for line in oldest)
    assert any("signals" in line for line in oldest)
    assert len(not_enforced("D", 7, "")) == 1
