"""The sweep: every process of a session, however it hides, and no other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from uuid import uuid4

import psutil
import pytest

from mas.model.ids import identity
from mas.runtime import sweep
from mas.runtime.panes import MARK
from mas.runtime.sweep import Owner, end_processes, find_processes, processes_of
from tests.site import Site, until

# Other runs sweep on the same machine, so every one has its own.
HOME = "fd01-1a2b"
OURS = Owner(str(uuid4()), HOME)
OTHER = Owner(str(uuid4()), HOME)
# A parent with a child of its own; both say nothing and wait.
FAMILY = "import subprocess, sys; subprocess.run(['sleep', '1000'])"
STUBBORN = (
    "import signal, sys, time\n"
    "for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT): signal.signal(number, signal.SIG_IGN)\n"
    "print('ready', flush=True)\n"
    "time.sleep(1000)\n"
)


class Family:
    """Starts processes for one test, and ends those that are left."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._started: list[subprocess.Popen[bytes]] = []

    def start(
        self, *argv: str, mark_as: Owner | None = None, old_mark_as: Owner | None = None, cwd: str = "/", **env: str
    ) -> psutil.Process:
        env |= {MARK: mark_as._replace(agent="00").mark} if mark_as else {}
        env |= {MARK: f"{old_mark_as.session_id}/00"} if old_mark_as else {}
        process = subprocess.Popen(
            argv, env=self._site.env | env, cwd=cwd, stdout=subprocess.PIPE, start_new_session=True
        )
        self._started.append(process)
        return psutil.Process(process.pid)

    def end(self) -> None:
        for process in self._started:
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()


@pytest.fixture
def family(bare: Site) -> Iterator[Family]:
    made = Family(bare)
    try:
        yield made
    finally:
        made.end()
        for process in bare.processes():
            process.kill()


def pids(processes: list[psutil.Process]) -> set[int]:
    return {process.pid for process in processes}


def test_what_carries_the_mark_is_found_wherever_it_went(family: Family) -> None:
    marked = family.start("sleep", "1000", mark_as=OURS)
    family.start("sleep", "1000", mark_as=OTHER)
    family.start("sleep", "1000")
    until(lambda: marked.name() == "sleep", "the program")
    assert pids(processes_of(OURS, [])) == {marked.pid}


def test_processes_of_a_copy_of_the_workspace_are_recognised_and_are_not_ours(family: Family, bare: Site) -> None:
    copy = OURS._replace(home="fd01-ffff")
    marked = family.start("sleep", "1000", mark_as=OURS)
    copied = family.start("sleep", "1000", mark_as=copy)
    until(lambda: pids(processes_of(OURS, [])) == {marked.pid}, "ours")
    until(lambda: pids(processes_of(copy._replace(agent="00"), [])) == {copied.pid}, "the copy's")
    assert end_processes(copy, processes_of(copy, []), 0.1) == []
    assert marked.is_running()
    assert find_processes(OURS, []).elsewhere is None
    assert find_processes(copy, []).elsewhere == bare.root


def test_a_process_of_an_earlier_version_is_of_the_workspace_where_its_directory_is(family: Family, bare: Site) -> None:
    homes = {}
    for name in ("one", "two"):
        directory = os.path.join(bare.directory, name, "sessions", OURS.session_id, "unit", "00")
        os.makedirs(directory)
        status = os.stat(os.path.join(bare.directory, name, "sessions"))
        homes[name] = OURS._replace(home=identity(status.st_dev, status.st_ino))
    # A launcher is recognised by where it is, what it started by its variables.
    launcher = family.start(
        "sleep",
        "1000",
        old_mark_as=OURS,
        cwd=os.path.join(bare.directory, "one", "sessions", OURS.session_id, "unit", "00"),
    )
    agent = family.start(
        "sleep",
        "1000",
        old_mark_as=OURS,
        cwd="/",
        MAS_SESSION_DIR=os.path.join(bare.directory, "one", "sessions", OURS.session_id),
    )
    until(lambda: pids(processes_of(homes["one"], [])) == {launcher.pid, agent.pid}, "the programs")
    assert processes_of(homes["two"], []) == []
    os.rename(os.path.join(bare.directory, "one"), os.path.join(bare.directory, "moved"))
    assert pids(processes_of(homes["one"], [])) == {launcher.pid, agent.pid}


def test_what_is_below_a_launcher_is_found_without_a_mark(family: Family) -> None:
    parent = family.start(sys.executable, "-c", FAMILY)
    until(parent.children, "the child")
    assert pids(processes_of(OURS, [parent.pid])) == {parent.pid, *pids(parent.children(recursive=True))}


def test_this_very_process_is_never_among_them(family: Family) -> None:
    child = family.start("sleep", "1000")
    assert pids(processes_of(OURS, [os.getpid()])) >= {child.pid}
    assert os.getpid() not in pids(processes_of(OURS, [os.getpid()]))


def test_a_marked_process_that_ends_a_session_does_not_end_itself(bare: Site) -> None:
    script = (
        "import subprocess\n"
        "from mas.runtime.sweep import Owner, end_processes, processes_of\n"
        "child = subprocess.Popen(['sleep', '1000'])\n"
        f"left = end_processes({OURS!r}, processes_of({OURS!r}, []), 0.2)\n"
        "print(left, child.wait())\n"
    )
    done = bare.run([sys.executable, "-c", script], env={MARK: OURS._replace(agent="00").mark})
    assert (done.returncode, done.stdout, done.stderr) == (0, f"[] {-signal.SIGKILL}\n", "")


def test_a_process_that_is_gone_is_no_hindrance(family: Family) -> None:
    gone = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True)
    assert processes_of(OURS, [int(gone.stdout)]) == []


def test_what_ignores_every_polite_signal_is_killed_after_the_grace(family: Family) -> None:
    stubborn = family.start(sys.executable, "-c", STUBBORN, mark_as=OURS)
    until(lambda: processes_of(OURS, []), "the program")
    assert end_processes(OURS, [stubborn], 0.1) == []
    assert processes_of(OURS, []) == []


def test_a_stopped_process_is_ended_too(family: Family) -> None:
    stopped = family.start("sleep", "1000", mark_as=OURS)
    stopped.suspend()
    assert end_processes(OURS, [stopped], 0.1) == []
    assert processes_of(OURS, []) == []


def test_what_is_born_while_the_sweep_goes_on_is_ended_as_well(family: Family) -> None:
    breeder = family.start("sh", "-c", "while :; do setsid sleep 1000 & sleep 0.005; done", mark_as=OURS)
    until(lambda: len(processes_of(OURS, [])) > 5, "a few of them")
    assert end_processes(OURS, [breeder], 0.5) == []
    assert processes_of(OURS, []) == []


def test_a_zombie_is_not_waited_for(family: Family) -> None:
    script = "import subprocess, time; child = subprocess.Popen(['true']); time.sleep(1000)"
    parent = family.start(sys.executable, "-c", script, mark_as=OURS)
    until(lambda: any(child.status() == psutil.STATUS_ZOMBIE for child in parent.children()), "the zombie")
    (zombie,) = parent.children()
    assert zombie.pid not in pids(processes_of(OURS, [parent.pid]))
    assert end_processes(OTHER, [zombie], 0.1) == []


def test_what_is_in_a_pid_namespace_that_began_with_one_of_them_is_found_whatever_its_parents(family: Family) -> None:
    """The marked one is the first process there; another came in from outside, with nothing of ours about it."""
    tried = subprocess.run(["unshare", "-Urpf", "true"], capture_output=True, check=False)
    if tried.returncode:
        pytest.skip(f"unshare: {tried.stderr.decode().strip()}")
    family.start("unshare", "-Urpf", "--kill-child", "sleep", "1000", mark_as=OURS)
    (first,) = until(
        lambda: [one for one in processes_of(OURS, []) if one.name() == "sleep"], "the first process there"
    )
    entered = family.start("nsenter", "-t", str(first.pid), "-U", "-p", "--preserve-credentials", "sleep", "999")
    until(entered.children, "what came in")
    (stranger,) = entered.children()
    until(lambda: stranger.name() == "sleep", "its program")
    found = pids(processes_of(OURS, []))
    assert stranger.pid in found
    assert entered.pid not in found


def test_what_is_held_in_a_control_group_is_found_with_all_below_it(family: Family) -> None:
    held = family.start(sys.executable, "-c", FAMILY)
    child = until(held.children, "its child")[0]
    assert pids(processes_of(OURS, [], [held.pid])) == {held.pid, child.pid}


def test_a_look_that_takes_all_the_time_there_is_reports_no_process_that_was_not_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a busy machine many others start, and one look may take longer than the patience for all of them."""
    monkeypatch.setattr(sweep, "_PATIENCE", 0.0)
    monkeypatch.setattr(sweep, "_FEW_A_SECOND", -1)
    assert end_processes(OTHER, [], 0.0) == []
