"""Intents: one owner per session, and work cut short is found by the next command."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from threading import Timer

import pytest

from mas.model.errors import Busy, Conflict
from mas.store.files.atomic import open_lock
from mas.store.files.descriptors import try_lock
from mas.store.layout import Layout
from mas.store.workspace.intents import Intent, Intents
from tests.store.samples import NOW, new_id, next_line, program, put

ID = new_id()

_HOLD = """
import sys
from mas.store.workspace.intents import Intents
from mas.store.layout import Layout
with Intents(Layout(sys.argv[1]), lambda: "then").begin(sys.argv[2], "archive", "/socket") as operation:
    print("ready", flush=True)
    sys.stdin.read()
    operation.done()
"""
_CONTEND = """
import os, sys
from mas.model.errors import Busy
from mas.store.workspace.intents import Intents
from mas.store.layout import Layout
intents = Intents(Layout(sys.argv[1]), lambda: "then")
done = 0
while done < 20:
    try:
        with intents.begin(sys.argv[2], "stop") as operation:
            os.close(os.open(sys.argv[3], os.O_CREAT | os.O_EXCL))
            os.unlink(sys.argv[3])
            operation.done()
    except Busy:
        continue
    done += 1
print(done)
"""


@pytest.fixture
def intents(layout: Layout) -> Intents:
    return Intents(layout, lambda: NOW)


@contextmanager
def owned_elsewhere(layout: Layout) -> Iterator[int]:
    """Another process at work on the session; it is killed in the middle of it."""
    with program(_HOLD, layout.root, ID) as process:
        assert next_line(process) == "ready"
        yield process.pid


def fail_at_work(intents: Intents, *undo: Callable[[], None], can_go_back: bool = True) -> None:
    """Begin something, go some steps, and be interrupted."""
    with suppress(KeyboardInterrupt), intents.begin(ID, "start") as operation:
        for step in undo:
            operation.undo(step)
        if not can_go_back:
            operation.no_return()
        raise KeyboardInterrupt


def unfinished(intents: Intents) -> list[Intent]:
    return [operation.intent for operation in intents.unfinished()]


def test_work_that_is_done_leaves_nothing(intents: Intents) -> None:
    with intents.begin(ID, "stop") as operation:
        assert intents.sessions() == {ID}
        operation.done()
    assert intents.sessions() == set()
    with intents.begin(ID, "stop") as operation:
        operation.done()


def test_a_session_that_a_process_works_on_is_busy_and_the_error_names_the_process(
    layout: Layout, intents: Intents
) -> None:
    with owned_elsewhere(layout) as pid:
        with pytest.raises(Busy) as refused, intents.begin(ID, "stop"):
            pytest.fail("two owners")
        assert f"pid {pid}" in refused.value.message
        assert "archive" in refused.value.message
        assert unfinished(intents) == []
        assert intents.sessions() == {ID}


def test_work_of_a_killed_process_is_unfinished_until_it_is_settled(layout: Layout, intents: Intents) -> None:
    with owned_elsewhere(layout) as pid:
        pass
    assert unfinished(intents) == [Intent(ID, "archive", pid, "then", "/socket")]
    with pytest.raises(Busy, match=r"An earlier archive .* was interrupted"), intents.begin(ID, "stop"):
        pytest.fail("begun over unfinished work")
    assert len(unfinished(intents)) == 1
    for operation in intents.unfinished():
        operation.done()
    assert unfinished(intents) == []
    assert intents.sessions() == set()


def test_unfinished_work_is_owned_by_the_process_that_looks_at_it(layout: Layout, intents: Intents) -> None:
    with owned_elsewhere(layout):
        pass
    for _ in intents.unfinished():
        assert unfinished(Intents(layout, lambda: NOW)) == []
        with pytest.raises(Busy), intents.begin(ID, "stop"):
            pytest.fail("two owners")


def test_of_many_processes_one_at_a_time_owns_a_session(layout: Layout, intents: Intents, place: str) -> None:
    with ExitStack() as stack:
        running = [
            stack.enter_context(program(_CONTEND, layout.root, ID, os.path.join(place, "inside"))) for _ in range(4)
        ]
        assert [next_line(process) for process in running] == ["20"] * 4
    assert intents.sessions() == set()


def test_other_sessions_are_not_kept_waiting(layout: Layout, intents: Intents) -> None:
    with owned_elsewhere(layout), intents.begin(new_id(), "stop") as operation:
        operation.done()


def test_failed_work_is_undone_last_step_first(intents: Intents) -> None:
    undone: list[str] = []
    fail_at_work(intents, *(partial(undone.append, step) for step in ("one", "two", "three")))
    assert undone == ["three", "two", "one"]
    assert intents.sessions() == set()


def test_what_cannot_be_undone_is_left_to_the_next_command(intents: Intents) -> None:
    undone: list[str] = []

    def fail() -> None:
        raise OSError("no")

    fail_at_work(intents, partial(undone.append, "first"), fail, partial(undone.append, "last"))
    assert undone == ["last", "first"]
    assert [intent.verb for intent in unfinished(intents)] == ["start"]


def test_past_the_point_of_no_return_nothing_is_undone(intents: Intents) -> None:
    undone: list[str] = []
    fail_at_work(intents, partial(undone.append, "first"), can_go_back=False)
    assert undone == []
    assert [intent.verb for intent in unfinished(intents)] == ["start"]


def test_work_that_was_neither_done_nor_undone_is_unfinished(intents: Intents) -> None:
    with intents.begin(ID, "stop"):
        pass
    assert [intent.verb for intent in unfinished(intents)] == ["stop"]


@pytest.mark.parametrize("data", [b"", b"{", b'{"session_id":', b"garbage", b"[]", b"null", b'{"x": 1}', b"\0" * 900])
def test_an_intent_cut_off_in_writing_means_that_nothing_was_touched(
    layout: Layout, intents: Intents, data: bytes
) -> None:
    put(layout.intents, ID, data)
    assert unfinished(intents) == []
    assert intents.sessions() == set()
    put(layout.intents, ID, data)
    with owned_elsewhere(layout) as pid:
        pass
    assert [intent.pid for intent in unfinished(intents)] == [pid]


def test_what_is_no_intent_is_left_alone(layout: Layout, intents: Intents) -> None:
    put(layout.intents, "note", "mine")
    os.symlink("/etc/hostname", os.path.join(layout.intents, "link"))
    assert unfinished(intents) == []
    assert intents.sessions() == set()
    assert sorted(os.listdir(layout.intents)) == ["link", "note"]


def test_a_session_that_a_script_has_locked_is_busy_and_nothing_is_left_of_the_try(
    layout: Layout, intents: Intents
) -> None:
    os.mkdir(layout.session(ID).root)
    fd = open_lock(layout.session(ID).lock)
    assert try_lock(fd)
    with pytest.raises(Busy, match="locked by another program") as refused, intents.begin(ID, "stop"):
        pytest.fail("two owners")
    assert layout.session(ID).lock in refused.value.hint
    assert intents.sessions() == set()
    os.close(fd)
    with intents.begin(ID, "stop") as operation:
        other = open_lock(layout.session(ID).lock)
        assert not try_lock(other)
        os.close(other)
        operation.done()


def test_a_look_for_unfinished_work_blocks_no_other_process(layout: Layout, intents: Intents) -> None:
    looking = open_lock(os.path.join(layout.intents, ID))
    assert try_lock(looking)
    leaving = Timer(0.05, lambda: os.close(looking))
    leaving.start()
    with intents.begin(ID, "stop") as operation:
        operation.done()
    leaving.join()
    assert intents.sessions() == set()


def test_a_lock_that_is_let_go_in_a_moment_is_waited_for(layout: Layout, intents: Intents) -> None:
    os.mkdir(layout.session(ID).root)
    fd = open_lock(layout.session(ID).lock)
    assert try_lock(fd)
    leaving = Timer(0.05, lambda: os.close(fd))
    leaving.start()
    with intents.begin(ID, "stop") as operation:
        operation.done()
    leaving.join()


def test_what_a_listing_does_by_itself_is_waited_for_but_not_by_another_listing(intents: Intents) -> None:
    with ExitStack() as lost:
        operation = lost.enter_context(intents.begin(ID, "lost"))
        with pytest.raises(Busy), intents.begin(ID, "lost"):
            pass
        operation.done()
        Timer(0.2, lost.pop_all().close).start()
        with intents.begin(ID, "stop") as stop:
            stop.done()
    assert intents.sessions() == set()


def test_a_verb_that_is_not_allowed_leaves_nothing_to_recover(intents: Intents) -> None:
    def refuse() -> None:
        raise Conflict("not now")

    with pytest.raises(Conflict, match="not now"), intents.begin(ID, "archive", allowed=refuse):
        pytest.fail("went on")
    assert intents.sessions() == set()
