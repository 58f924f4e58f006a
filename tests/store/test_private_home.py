"""What is given to an account that agents run under is theirs; nothing else becomes it, whatever they do meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from mas.store.files.tree import Entry, walk
from mas.store.session import private_home
from mas.store.session.private_home import hand_over
from tests.site import short_directory
from tests.store.samples import put

ACCOUNT = 12345


@pytest.fixture
def place() -> Iterator[str]:
    if os.getuid() != 0:
        pytest.skip("only root can give files away")
    with short_directory() as directory:
        yield directory


def owner(*names: str) -> int:
    return os.lstat(os.path.join(*names)).st_uid


def test_all_of_a_tree_is_given_but_for_second_names_and_what_links_point_to(place: str) -> None:
    tree = os.path.join(place, "tree")
    os.makedirs(os.path.join(tree, "inner"))
    outside, shared = put(place, "outside", "mine"), put(place, "shared", "mine")
    put(tree, "inner/file", "theirs")
    os.symlink(outside, os.path.join(tree, "link"))
    os.link(shared, os.path.join(tree, "second"))
    os.mkfifo(os.path.join(tree, "pipe"))
    hand_over([tree], ACCOUNT, ACCOUNT)
    for name in ("", "inner", "inner/file", "link", "pipe"):
        assert owner(tree, name) == ACCOUNT, name
    assert (owner(outside), owner(shared)) == (0, 0)


def test_what_is_put_in_a_files_place_meanwhile_stays_whose_it_is(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = os.path.join(place, "tree")
    os.makedirs(tree)
    outside = put(place, "outside", "mine")
    path = put(tree, "file", "theirs")

    def swapped(root: str, past_closed: bool = False) -> Iterator[Entry]:
        for entry in walk(root, past_closed):
            os.unlink(path)
            os.link(outside, path)
            yield entry

    monkeypatch.setattr(private_home, "walk", swapped)
    hand_over([tree], ACCOUNT, ACCOUNT)
    assert owner(outside) == 0
