"""What a machine can enforce is found out by trying."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from functools import cache

import pytest

from mas.runtime.sandbox import probe as probing
from mas.runtime.sandbox.probe import NotTried, landlock_abi, probe
from tests.sandbox.house import HOWS, must_have
from tests.site import short_directory

PROBE = probing.__file__
ROOT = PROBE.rsplit("/", 4)[0]
TRIALS = (*HOWS, "proc", "network")
# What a caller may have and be, who starts in a directory that is in no view of the machine.
AT_ROOT = "cd /"
SURROUNDINGS = {
    "a private directory": "true",
    "a removed directory": "mkdir gone; cd gone; rmdir ../gone",
    "no home": "unset HOME",
    "few variables": 'set -- env -i PATH="$PATH" "$@"',
    "closed streams": "exec 0<&- 2>&-",
    "few files": "ulimit -S -n 24",
    "no file may grow": "ulimit -S -f 0",
    "exits of children ignored": 'set -- env --ignore-signal=CHLD "$@"',
    "a mask of all modes": "umask 777",
    "temporary files in shared memory": "export TMPDIR=/dev/shm",
    "temporary files of a login": "test ! -w /run || export TMPDIR=/run",
    "temporary files nowhere": "export TMPDIR=/nowhere",
    "temporary files in a relative directory": "export TMPDIR=.",
}
_ASK = """
import json, sys
sys.path.insert(0, sys.argv[1])
from mas.runtime.sandbox.probe import probe
json.dump({how: probe(how) for how in sys.argv[2:]}, sys.stdout)
"""


@cache
def found(before: str) -> dict[str, str]:
    """What a caller finds for whom something was done first."""
    argv = ["sh", "-c", f'{before}\nexec "$@"', "sh", sys.executable, "-BISE", "-c", _ASK, ROOT, *TRIALS]
    with short_directory() as directory:
        done = subprocess.run(argv, stdout=subprocess.PIPE, cwd=directory, check=True)
    results: dict[str, str] = json.loads(done.stdout)
    return results


def run(how: str, before: str = "", shell: tuple[str, ...] = ("sh", "-c")) -> subprocess.CompletedProcess[str]:
    """The probe, with something done to its surroundings first."""
    argv = [*shell, f'{before}\nexec "$@"', "sh", sys.executable, "-ISE", PROBE, how]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)


def changed(code: str, how: str) -> subprocess.CompletedProcess[str]:
    """The probe, with something changed in its process."""
    prelude = f"import os, runpy, sys; sys.path.insert(0, sys.argv[1]); {code}; "
    prelude += "sys.argv = sys.argv[2:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    argv = [sys.executable, "-ISE", "-c", prelude, ROOT, PROBE, how]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("how", HOWS)
def test_a_probe_that_succeeds_says_nothing_and_leaves_nothing(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    must_have(how)
    with short_directory() as directory:
        monkeypatch.setenv("TMPDIR", directory)
        assert probe(how) == ""
        assert os.listdir(directory) == []


@pytest.mark.parametrize("surroundings", SURROUNDINGS)
def test_where_and_how_a_trial_is_made_changes_no_result(surroundings: str) -> None:
    assert found(SURROUNDINGS[surroundings]) == found(AT_ROOT)


def test_a_trial_that_could_not_be_made_has_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with open(os.devnull, "rb") as first_free:
        resource.setrlimit(resource.RLIMIT_NOFILE, (first_free.fileno() + 1, hard))
        try:
            with pytest.raises(NotTried, match="Too many open files"):
                probe("namespaces")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    monkeypatch.setattr(probing, "_PATIENCE", 0)
    with pytest.raises(NotTried, match="timed out"):
        probe("network")


@pytest.mark.parametrize("how", HOWS)
def test_without_a_place_for_its_files_there_is_no_result(how: str) -> None:
    must_have(how)
    done = run(how, "ulimit -f 0")
    assert done.stdout == ""
    assert "No usable temporary directory" in done.stderr


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("status", ["true", "false"])
def test_an_attempt_that_does_not_finish_is_neither_a_wall_nor_a_hole(how: str, status: str) -> None:
    must_have(how)
    code = "from mas.runtime.sandbox import enter; made = enter.SandboxProgram; "
    code += f"enter.SandboxProgram = lambda argv, *more: made(('/usr/bin/{status}',), *more)"
    done = changed(code, how)
    assert done.stdout == ""
    assert "the attempt ended on the way" in done.stderr


def test_a_missing_program_is_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert probe("bwrap") == "bubblewrap (bwrap) is not installed"


def test_refused_namespaces_are_the_reason() -> None:
    must_have("namespaces")
    done = run("namespaces", "echo 0 > /proc/sys/user/max_mnt_namespaces", ("unshare", "-Ur", "sh", "-c"))
    assert done.stdout == "-unshare: No space left on device\n"


def test_a_hole_in_the_wall_is_found() -> None:
    """With the walls taken out of the code, the attempts succeed, and the probe says which."""
    must_have("landlock")
    holes = "from mas.runtime.sandbox import landlock; landlock.restrict = os.close"
    assert changed(holes, "landlock").stdout == (
        "-a file outside could be written; a hidden file could be read; a process outside could be reached\n"
    )


def test_a_masked_proc_costs_the_own_processes_and_nothing_else() -> None:
    must_have("namespaces")
    # What is mounted over a part of it cannot be taken away in the inner one of the two namespaces.
    masked = 'mount -t tmpfs none /proc/sys || exit 9; set -- unshare -Urm "$@"'
    shell = ("unshare", "-Urm", "sh", "-c")
    assert run("proc").stdout == "+\n"
    assert run("proc", masked, shell).stdout == "-a new /proc is refused here\n"
    if landlock_abi() >= 6:
        assert run("namespaces", masked, shell).stdout == "+\n"
