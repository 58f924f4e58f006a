"""An agent's own place: what it put in the way there is neither followed nor waited for."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator

import pytest

from mas.model.errors import Corrupt
from mas.store.agent.directory import AgentPlace
from mas.store.layout import SessionPaths
from tests.site import short_directory
from tests.store.samples import put, read

UUID = "550e8400-e29b-41d4-a716-446655440000"


@pytest.fixture
def session() -> Iterator[str]:
    with short_directory() as directory:
        root = os.path.join(directory, "session")
        os.makedirs(os.path.join(root, ".mas"))
        yield root


def furnish(session: str) -> AgentPlace:
    place = AgentPlace(SessionPaths(session), "00")
    place.furnish(
        UUID, [(os.path.join(place.path, "a", "settings"), "ours")], [(os.path.join(place.path, "s"), "seed")]
    )
    return place


def test_files_are_written_every_time_and_seeds_once(session: str) -> None:
    place = furnish(session)
    assert place.uuid() == UUID
    put(place.path, "s", "theirs")
    furnish(session)
    assert (read(os.path.join(place.path, "s")), read(os.path.join(place.path, "a", "settings"))) == (
        b"theirs",
        b"ours",
    )
    assert sorted(os.listdir(place.path)) == ["a", "s", "uuid"]


def test_pipes_links_and_second_names_are_neither_written_nor_waited_for(session: str) -> None:
    outside = put(os.path.dirname(session), "outside", "mine")
    place = furnish(session)
    settings = os.path.join(place.path, "a", "settings")
    makers: tuple[Callable[[str], None], ...] = (
        os.mkfifo,
        lambda path: os.symlink(outside, path),
        lambda path: os.link(outside, path),
    )
    for make in makers:
        for path in (settings, os.path.join(place.path, "a", ".settings.tmp"), os.path.join(place.path, "uuid")):
            if os.path.lexists(path):
                os.unlink(path)
            make(path)
        assert place.uuid() == ""
        furnish(session)
        assert stat.S_ISREG(os.lstat(settings).st_mode)
        assert (read(settings), read(outside)) == (b"ours", b"mine")


def test_directories_in_the_way_are_named(session: str) -> None:
    place = furnish(session)
    settings = os.path.join(place.path, "a", "settings")
    os.unlink(settings)
    os.mkdir(settings)
    with pytest.raises(Corrupt, match="settings"):
        furnish(session)
    assert os.listdir(os.path.dirname(settings)) == ["settings"]
    os.rmdir(settings)
    os.rmdir(os.path.dirname(settings))
    os.symlink("/", os.path.dirname(settings))
    with pytest.raises(Corrupt, match="not a directory"):
        furnish(session)
