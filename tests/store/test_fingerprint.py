"""Stamps: what is remembered of a file holds for as long as its stamp is the same."""

from __future__ import annotations

import os
import time

import pytest

from mas.store.files import fingerprint
from mas.store.files.fingerprint import is_settled, stamp_of
from mas.store.layout import Layout
from mas.store.session.session_files import Records
from mas.store.workspace.registry import Registry
from tests.site import until
from tests.store.samples import NOW, a_session, new_id, put


def test_every_change_of_a_file_that_is_settled_shows_in_its_stamp(place: str) -> None:
    path = put(place, "file", b"one")
    for data in (b"two", b"three"):
        until(lambda: is_settled(stamp_of(path)), "a settled file")
        before = stamp_of(path)
        put(place, "file", data)
        assert stamp_of(path) != before
    until(lambda: is_settled(stamp_of(path)), "a settled file")
    before = stamp_of(path)
    os.replace(put(place, "other", b"three"), path)
    assert stamp_of(path) != before


def test_a_change_of_this_very_moment_is_not_settled() -> None:
    second = 1_000_000_000
    now = time.time_ns()
    assert not is_settled((1, 1, 1, 1, now + second))
    assert is_settled((1, 1, 1, 1, now - second))
    assert is_settled((1, 1, 1, now + second, now - second)), "anybody may set the time of its content"


def test_files_that_are_not_settled_are_not_remembered(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprint, "_TICK_NS", 1 << 62)
    registry, records, session = Registry(layout, lambda: NOW), Records(layout, remember=True), a_session(new_id())
    registry.rebuild(list)
    os.mkdir(layout.session(session.id).root, 0o700)
    records.save(session)
    assert registry.read() == []
    assert records.is_whole(session.id)
    assert (registry._seen, records.just_seen(session.id)) == (None, None)
