"""Keys of requests: a repeated request gets what the first one started."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from mas.store.layout import Layout
from mas.store.workspace.idempotency import Keys
from tests.site import REPOSITORY, until
from tests.store.samples import new_id

PROCESSES = 6
# Uses many keys, each once, while others do the same; the same few keys are old again and again.
BUSY = """
import os, sys
from mas.store.workspace.idempotency import Keys
from mas.store.layout import Layout

root, own, session = sys.argv[1:]
keys = Keys(Layout(root))
directory = os.path.join(Layout(root).server, "keys")
for number in range(60):
    with keys.held(f"{own}-{number}", b"a run") as key:
        assert key.session_id is None
        key.note(session, done=True)
    for name in os.listdir(directory):
        try:
            os.utime(os.path.join(directory, name), (0, 0))
        except FileNotFoundError:
            pass
"""


def test_a_key_remembers_what_it_started_and_what_was_asked_for(layout: Layout) -> None:
    session = new_id()
    with Keys(layout).held("once", b"a run") as key:
        assert (key.session_id, key.done, key.is_other_request) == (None, False, False)
        key.note(session, done=False)
    with Keys(layout).held("once", b"a run") as key:
        assert (key.session_id, key.done, key.is_other_request) == (session, False, False)
        key.note(session, done=True)
    with Keys(layout).held("once", b"another run") as key:
        assert (key.session_id, key.done, key.is_other_request) == (session, True, True)
    with Keys(layout).held("twice", b"a run") as key:
        assert key.session_id is None


def test_what_a_killed_process_left_of_a_note_goes_with_the_next_request(layout: Layout) -> None:
    with Keys(layout).held("once", b"a run") as key:
        key.note(new_id(), done=True)
    directory = os.path.join(layout.server, "keys")
    (note,) = [name for name in os.listdir(directory) if not name.endswith(".lock")]
    with open(os.path.join(directory, f".{note}.tmp"), "wb") as file:
        file.write(b'{"half')
    with Keys(layout).held("once", b"a run") as key:
        assert key.done
    assert sorted(os.listdir(directory)) == [note, f"{note}.lock"]


def test_keys_of_before_yesterday_are_forgotten(layout: Layout) -> None:
    with Keys(layout).held("old", b"a run") as key:
        key.note(new_id(), done=True)
    directory = os.path.join(layout.server, "keys")
    for name in os.listdir(directory):
        os.utime(os.path.join(directory, name), (0, 0))
    with Keys(layout).held("new", b"a run") as key:
        key.note(new_id(), done=True)
    assert len(os.listdir(directory)) == 2
    with Keys(layout).held("old", b"a run") as key:
        assert key.session_id is None


def test_keys_used_by_many_processes_at_once_while_old_ones_are_forgotten_are_no_error(layout: Layout) -> None:
    with Keys(layout).held("first", b"a run") as key:
        key.note(new_id(), done=True)
    argv = [sys.executable, "-c", BUSY, layout.root]
    busy = [
        subprocess.Popen([*argv, str(number), new_id()], cwd=REPOSITORY, stderr=subprocess.PIPE)
        for number in range(PROCESSES)
    ]
    for process in busy:
        said = process.communicate()[1]
        assert process.returncode == 0, said.decode()


def test_an_old_key_that_is_in_use_is_not_forgotten_and_held_by_one_only(layout: Layout) -> None:
    directory = os.path.join(layout.server, "keys")
    with Keys(layout).held("old", b"a run") as key:
        key.note(new_id(), done=True)
    with ThreadPoolExecutor(1) as pool, Keys(layout).held("old", b"a run"):
        for name in os.listdir(directory):
            os.utime(os.path.join(directory, name), (0, 0))
        with Keys(layout).held("new", b"a run"):
            pass

        def second() -> float:
            with Keys(layout).held("old", b"a run"):
                return time.monotonic()

        held_by_second = pool.submit(second)
        until(lambda: _waits_for_a_lock(), "the second one waits")
        let_go = time.monotonic()
        assert not held_by_second.done()
    assert held_by_second.result() >= let_go


def _waits_for_a_lock() -> bool:
    with open("/proc/locks", encoding="ascii") as file:
        return any("->" in line and f" {os.getpid()} " in line for line in file)
