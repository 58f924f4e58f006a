"""Keys of requests: asked again, a request is told what it started."""

from __future__ import annotations

import os

from mas.store.keys import Keys
from mas.store.layout import Layout
from tests.store.samples import new_id


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
