"""One server for all tests of a module that leave it as it was: starting one takes a second."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.served import Served
from tests.site import Site, short_directory


@pytest.fixture(scope="module")
def shared() -> Iterator[Served]:
    """A workspace and its server, for reading and for being refused."""
    with short_directory() as directory:
        site = Site(directory)
        site.mas("init", site.root, "--provider", "shell")
        made = Served(site)
        try:
            yield made
        finally:
            made.close()
            site.close()
        assert site.leftovers() == []
