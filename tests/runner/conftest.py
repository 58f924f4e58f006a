from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.runner.suite import Suite


@pytest.fixture
def suite(tmp_path: os.PathLike[str]) -> Iterator[Suite]:
    with closing(Suite(os.path.realpath(tmp_path))) as made:
        yield made
