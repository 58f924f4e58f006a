"""What the tests of real agent programs share: the programs, a model that answers by rule, a workspace."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from tests.real.mock import Mock, mock_model
from tests.site import REPOSITORY, Site, fresh_site

_PLACE = os.path.join(REPOSITORY, ".real")
_PINS = os.path.join(REPOSITORY, "tests", "real", "clis", "package-lock.json")


@pytest.fixture(scope="session")
def programs() -> str:
    """The directory of the pinned programs; without them their tests are skipped, with the reason."""
    if _content(os.path.join(_PLACE, "installed")) != _content(_PINS):
        why = _content(os.path.join(_PLACE, "why")).strip() or "scripts/real-clis has not installed them"
        pytest.skip(f"no real agent programs: {why}")
    return os.path.join(_PLACE, "node_modules", ".bin")


@pytest.fixture
def model() -> Iterator[Mock]:
    with mock_model() as mock:
        yield mock
        # A program that speaks to the mock in a way it does not know would be tested for nothing.
        assert mock.strange == []


@pytest.fixture
def place(programs: str, model: Mock) -> Iterator[Site]:
    """A fresh workspace that finds the programs; nothing of the caller's environment but the way to other programs."""
    with fresh_site() as made:
        # As people have it.
        made.env["MAS_ISOLATION"] = "auto"
        made.env["PATH"] = f"{programs}:{made.env['PATH']}"
        made.mas("init", made.root)
        with open(made.path("config.json"), encoding="utf-8") as file:
            config = json.load(file)
        # The model is a service of this machine, which agents reach if it is named.
        with open(made.path("config.json"), "w", encoding="utf-8") as file:
            json.dump(config | {"isolation": {"private": [f"localhost:{model.port}"]}}, file)
        yield made


def _content(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""
