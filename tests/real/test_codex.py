"""Codex, the real program, against a model on loopback."""

from __future__ import annotations

import pytest

from tests.real.agent import (
    Agent,
    Kind,
    hands_on_by_tools,
    names_files_without_reading_them,
    works_from_start_to_restore,
)
from tests.real.mock import Mock
from tests.site import Site

_CONFIG = "templates/codex-config.toml"
_VENDOR = "https://api.openai.com/v1"


@pytest.fixture
def codex(place: Site, model: Mock) -> Agent:
    # It does not say what it asks for.
    return Agent(place, model, Kind("codex", (("OPENAI_API_KEY", "sk-not-a-key"),), "permission"))


def test_codex_works_from_start_to_restore(codex: Agent) -> None:
    codex.own_provider((_CONFIG, _VENDOR, f"{codex.model.url}/v1"))
    works_from_start_to_restore(codex)


def test_codex_without_a_key_says_so_at_the_first_message(codex: Agent) -> None:
    codex.own_provider((_CONFIG, _VENDOR, f"{codex.model.url}/v1"))
    del codex.site.env["OPENAI_API_KEY"]
    codex.start()
    codex.becomes("idle")
    codex.site.mas("send", "--session", codex.session, "00", "Hello")
    codex.becomes("error")
    assert codex.dialogs() == [("error", "")]
    # It is back at its input line: the next message is not kept from it.
    sent = codex.site.json("send", "--session", codex.session, "--wait", "30", "00", "And now?")
    assert [delivery["state"] for delivery in sent["deliveries"]] == ["acknowledged"], sent


def test_that_codex_wants_a_login_is_known(codex: Agent) -> None:
    codex.own_provider((_CONFIG, 'model_provider = "api"', ""), (_CONFIG, _VENDOR, f"{codex.model.url}/v1"))
    codex.start()
    codex.begins_with("auth")


def test_codex_takes_a_file_that_a_message_names_for_text(codex: Agent) -> None:
    codex.own_provider((_CONFIG, _VENDOR, f"{codex.model.url}/v1"))
    names_files_without_reading_them(
        codex, "see @note.txt, me@x.org, @note.txt", r"see @note.txt, me@x.org, \@note.txt"
    )


@pytest.mark.parametrize("isolation", ["auto", "off"])
def test_codex_hands_a_message_on_by_the_tools_of_mas(codex: Agent, isolation: str) -> None:
    # An agent's configuration is written only once: one from before names too few variables.
    before = 'env_vars = ["MAS_WORKSPACE_ROOT", "MAS_SESSION_ID", "MAS_AGENT_ID", "MAS_TOKEN"]\ndefault_tools'
    codex.own_provider((_CONFIG, _VENDOR, f"{codex.model.url}/v1"), (_CONFIG, "default_tools", before))
    codex.site.env["MAS_ISOLATION"] = isolation
    hands_on_by_tools(codex)
