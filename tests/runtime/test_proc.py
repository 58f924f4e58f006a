"""Processes as /proc shows them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from mas.runtime.proc import children, descendants, has_children_lists, living, own_memory, pages, shared_once, trees

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="no /proc")


@pytest.fixture
def family() -> Iterator[subprocess.Popen[bytes]]:
    """A shell with a child whose name has brackets."""
    child = "open('/proc/self/comm', 'w').write('a) (b'); print('up', flush=True); input()"
    script = f'"{sys.executable}" -c "{child}" <&3 & wait'
    with subprocess.Popen(["sh", "-c", f"exec 3<&0; {script}"], stdin=-1, stdout=-1) as process:
        assert process.stdout
        assert process.stdout.readline() == b"up\n"
        try:
            yield process
        finally:
            for pid in (*descendants(process.pid), process.pid):
                os.kill(pid, 9)


def test_what_is_below_a_process_is_found_with_its_name_whatever_that_holds(family: subprocess.Popen[bytes]) -> None:
    assert list(descendants(family.pid).values()) == ["a) (b"]
    assert os.getpid() not in descendants(family.pid)
    assert set(descendants(family.pid)) < set(descendants(os.getpid()))
    if has_children_lists():
        assert children(family.pid) == list(descendants(family.pid))


def test_what_has_ended_is_not_below_anybody() -> None:
    with subprocess.Popen(["true"]) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        assert ended.pid not in descendants(os.getpid())
        assert ended.pid not in {pid for pid, _, _ in living()}
    with pytest.raises(OSError, match="No such"):
        children(ended.pid)
    assert (shared_once(ended.pid), own_memory(ended.pid), pages(ended.pid)) == (None, 0, (0, 0))


def test_trees_are_whole_and_apart() -> None:
    parents = {1: 0, 2: 1, 3: 2, 4: 1, 5: 9, 9: 0}
    found = {root: sorted(tree) for root, tree in trees((1, 9, 7), parents).items()}
    assert found == {1: [1, 2, 3, 4], 9: [5, 9], 7: [7]}
