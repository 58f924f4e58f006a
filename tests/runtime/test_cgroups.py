"""Control groups: found by trying, made for sessions and agents, emptied and removed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from uuid import uuid4

import pytest

from mas.model.isolation import Limits
from mas.runtime.limits.cgroups import (
    Ground,
    ground,
    group_of,
    is_group_of,
    leave,
    make_agent,
    make_session,
    members,
    remove_groups,
    session_groups,
)
from tests.site import until

_JOIN = "import os,sys\nfor group in sys.argv[1:]: open(group + '/cgroup.procs', 'w').write('0')\nprint(flush=True)\n"
# Starts two that leave it, and ends itself.
_DAEMONS = _JOIN + "for _ in range(2):\n  if not os.fork(): os.setsid(); os.execv('/bin/sleep', ['sleep', '1000'])\n"


@pytest.fixture
def where() -> Iterator[Ground]:
    found = ground()
    if found is None:
        pytest.skip("no control groups can be made here")
    yield found
    leave(found)


@pytest.fixture
def session(where: Ground) -> Iterator[str]:
    made = str(uuid4())
    yield made
    assert remove_groups(session_groups(where, made), 60.0) == []
    assert not any(map(os.path.exists, session_groups(where, made)))


def read(*names: str) -> str:
    with open(os.path.join(*names), encoding="ascii") as file:
        return file.read().strip()


def test_limits_are_set_on_the_session_and_on_each_agent(where: Ground, session: str) -> None:
    if where.version != 1:
        pytest.skip("the files of version 1 are not here")
    make_session(where, session, Limits(memory=256 << 20, processes=100))
    make_agent(where, session, "00", Limits(memory=64 << 20, processes=20, cpu=0.5))
    make_agent(where, session, "10", Limits())
    memory, pids = (os.path.dirname(group_of(where, name, session, "00") or "") for name in ("memory", "pids"))
    assert read(memory, "memory.limit_in_bytes") == str(256 << 20)
    assert read(memory, "00", "memory.limit_in_bytes") == str(64 << 20)
    assert [read(pids, name, "pids.max") for name in (".", "00", "10")] == ["100", "20", "max"]
    if cpu := group_of(where, "cpu", session, "00"):
        assert read(cpu, "cpu.cfs_quota_us") == "50000"


def test_making_again_gives_other_limits(where: Ground, session: str) -> None:
    make_session(where, session, Limits(processes=100))
    make_session(where, session, Limits())
    assert read(os.path.dirname(group_of(where, "pids", session, "00") or ""), "pids.max") == "max"


def test_what_left_everything_else_is_still_a_member_and_ends_with_the_group(where: Ground, session: str) -> None:
    make_session(where, session, Limits())
    groups = make_agent(where, session, "00", Limits(processes=10))
    subprocess.run([sys.executable, "-c", _DAEMONS, *groups], env={}, check=True, stdout=subprocess.DEVNULL)
    daemons = members(session_groups(where, session))
    assert len(daemons) == 2
    assert remove_groups(session_groups(where, session), 60.0) == []
    until(lambda: not any(map(_lives, daemons)), "the end of the daemons")


def test_a_bomb_that_forks_without_end_ends_with_its_group(where: Ground, session: str) -> None:
    make_session(where, session, Limits())
    groups = make_agent(where, session, "00", Limits(processes=50))
    bomb = _JOIN + "while True:\n  try: os.fork()\n  except OSError: pass\n"
    with subprocess.Popen([sys.executable, "-c", bomb, *groups], stdout=subprocess.DEVNULL) as process:
        until(lambda: len(members(groups)) == 50, "as many as there may be")
        assert remove_groups(session_groups(where, session), 60.0) == []
        assert process.wait() == -signal.SIGKILL


@pytest.mark.parametrize("name", ["../x", "", "a/b", ".", "a b", "x\n"])
def test_no_name_leads_elsewhere(name: str, tmp_path: object) -> None:
    with pytest.raises(ValueError, match="not a name"):
        make_agent(Ground(2, (("memory", str(tmp_path)),)), str(uuid4()), name, Limits())


def test_a_path_that_is_only_called_like_a_group_is_none(where: Ground, session: str, tmp_path: object) -> None:
    make_session(where, session, Limits())
    real = session_groups(where, session)[0]
    assert is_group_of(real, session)
    assert not is_group_of(real, str(uuid4()))
    fake = os.path.join(str(tmp_path), "mas", session)
    os.makedirs(os.path.dirname(fake))
    os.symlink(os.path.dirname(real), fake)
    assert not is_group_of(fake, session)


def test_a_delegated_tree_of_version_two_is_used_where_it_can_be_divided(tmp_path: object) -> None:
    """Plain files stand in for the kernel's: which place is chosen and what is written there."""
    root, proc = os.path.join(str(tmp_path), "tree"), os.path.join(str(tmp_path), "proc")
    ours = os.path.join(root, "user.slice", "mine.service")
    session = str(uuid4())
    for place in (
        ours,
        f"{ours}/mas",
        f"{ours}/mas/{session}",
        f"{ours}/mas/{session}/00",
        os.path.join(ours, "shell"),
    ):
        os.makedirs(place, exist_ok=True)
        for name in (
            "cgroup.controllers",
            "cgroup.subtree_control",
            "cgroup.procs",
            "pids.max",
            "memory.max",
            "cpu.max",
        ):
            with open(os.path.join(place, name), "w", encoding="ascii") as file:
                file.write("cpu memory pids" if name == "cgroup.controllers" and "shell" not in place else "")
    os.makedirs(proc)
    with open(os.path.join(proc, "cgroup"), "w", encoding="ascii") as file:
        file.write("0::/user.slice/mine.service/shell\n")
    with open(os.path.join(proc, "mountinfo"), "w", encoding="ascii") as file:
        file.write(f"30 23 0:26 / {root} rw,nosuid - cgroup2 cgroup2 rw\n")
    found = ground(proc)
    assert found == Ground(2, tuple((name, ours) for name in ("memory", "pids", "cpu")))
    make_session(found, session, Limits(memory=1 << 30))
    make_agent(found, session, "00", Limits(processes=20, cpu=1.5))
    made = os.path.join(ours, "mas", session)
    assert (read(made, "memory.max"), read(made, "pids.max")) == (str(1 << 30), "max")
    assert (read(made, "00", "pids.max"), read(made, "00", "cpu.max")) == ("20", "150000 100000")


def test_what_another_user_made_there_is_no_place_for_groups(where: Ground, session: str) -> None:
    if where.version != 1 or os.getuid():
        pytest.skip("only root makes groups of version 1")
    make_session(where, session, Limits())
    # Looked once before: whoever it becomes may not be able to read the modules that takes.
    code = (
        "import os, sys\nfrom mas.runtime.limits.cgroups import ground\n"
        "assert ground()\nos.setuid(65534)\nsys.exit(ground() is not None)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_where_there_are_no_control_groups_none_are_found(tmp_path: object) -> None:
    assert ground(str(tmp_path)) is None


def _lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
