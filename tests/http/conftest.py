"""One server for all tests of a module that leave it as it was: starting one takes a second."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.served import Served
from tests.site import fresh_workspace


@pytest.fixture(scope="module")
def shared() -> Iterator[Served]:
    """A workspace and its server, for reading and for being refused."""
    with fresh_workspace("--provider", "shell") as site, closing(Served(site)) as made:
        yield made
