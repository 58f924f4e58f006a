"""A house for every way to shut an agent in."""

from __future__ import annotations

import pytest

from tests.sandbox.house import ALL, HOWS, SHARED, VIEWS, House
from tests.site import Site


@pytest.fixture(params=[*HOWS, ALL, SHARED])
def house(request: pytest.FixtureRequest, bare: Site) -> House:
    return House(bare, request.param)


@pytest.fixture(params=[*VIEWS, ALL, SHARED])
def viewed(request: pytest.FixtureRequest, bare: Site) -> House:
    """Only of the ways that have a view of the file system, and processes, of their own."""
    return House(bare, request.param)


@pytest.fixture
def bare_landlock(bare: Site) -> House:
    """The way that has no view of its own."""
    return House(bare, "landlock")


@pytest.fixture(params=[*VIEWS, SHARED])
def listed(request: pytest.FixtureRequest, bare: Site) -> House:
    """Only of the ways that have an empty root to put things in."""
    return House(bare, request.param)
