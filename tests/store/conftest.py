"""A workspace's directories, without tmux and without the command."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from mas.store.layout import Layout
from mas.store.workspace.workspace import Workspace
from tests.site import short_directory


@pytest.fixture
def place() -> Iterator[str]:
    """An empty directory."""
    with short_directory() as directory:
        yield directory


@pytest.fixture
def layout(place: str) -> Layout:
    """A workspace with MAS's own directories and nothing in them."""
    found = Layout(os.path.join(place, "ws"))
    os.mkdir(found.root)
    Workspace(found).prepare()
    return found
