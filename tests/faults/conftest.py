"""A field to cut verbs short in, and drivers that do it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.faults.driver import Driver
from tests.faults.field import Field
from tests.site import Site, fresh_workspace

_MEMORY = "/dev/shm"


@pytest.fixture
def site() -> Iterator[Site]:
    """The usual site, in memory where that can be had: what was written outlives a killed process there too,
    and thousands of cuts need not wait for a disk."""
    with fresh_workspace("--provider", "shell", within=_MEMORY if os.access(_MEMORY, os.W_OK) else "/tmp") as made:
        yield made


@pytest.fixture
def field(site: Site) -> Field:
    return Field(site)


@pytest.fixture
def driver(site: Site) -> Iterator[Driver]:
    with Driver(site) as made:
        yield made


@pytest.fixture
def other(site: Site) -> Iterator[Driver]:
    """A second process beside `driver`."""
    with Driver(site) as made:
        yield made
