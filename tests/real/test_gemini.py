"""Gemini CLI, the real program, against a model on loopback."""

from __future__ import annotations

import pytest

from tests.real.agent import Agent, Kind, works_from_start_to_restore
from tests.real.mock import Mock
from tests.site import Site

_SETTINGS = "templates/gemini-settings.json"


@pytest.fixture
def gemini(place: Site, model: Mock) -> Agent:
    # Its title does not say what it asks for.
    environ = (("GEMINI_API_KEY", "not-a-key"), ("GOOGLE_GEMINI_BASE_URL", model.url))
    return Agent(place, model, Kind("gemini", environ, r"permission: ✋ +Action Required \(00\)"))


def test_gemini_works_from_start_to_restore(gemini: Agent) -> None:
    works_from_start_to_restore(gemini)


def test_that_gemini_wants_a_key_is_known(gemini: Agent) -> None:
    del gemini.site.env["GEMINI_API_KEY"]
    gemini.start()
    gemini.shows_dialog("blocked", "auth")


def test_that_gemini_wants_a_way_to_sign_in_is_known(gemini: Agent) -> None:
    del gemini.site.env["GEMINI_API_KEY"]
    gemini.own_provider((_SETTINGS, '"selectedType": "gemini-api-key"', ""))
    gemini.start()
    gemini.shows_dialog("blocked", "auth")


def test_that_gemini_wants_to_trust_its_directory_is_known(gemini: Agent) -> None:
    gemini.own_provider((_SETTINGS, '"enabled": false', '"enabled": true'), ("gemini.toml", '"--skip-trust", ', ""))
    gemini.start()
    gemini.shows_dialog("blocked", "trust")
