"""Claude Code, the real program, against a model on loopback."""

from __future__ import annotations

import pytest

from tests.real.agent import Agent, Kind, works_from_start_to_restore
from tests.real.mock import Mock
from tests.site import Site

KEY = "sk-ant-api03-not-a-key-0123456789abcdefghijklmnop"
_HOME = "templates/claude-home.json"


@pytest.fixture
def claude(place: Site, model: Mock) -> Agent:
    # Its composer makes four spaces of a tab.
    environ = (("ANTHROPIC_API_KEY", KEY), ("ANTHROPIC_BASE_URL", model.url))
    return Agent(place, model, Kind("claude", environ, "permission: approve Bash: COMMAND", tab="    "))


def test_claude_works_from_start_to_restore(claude: Agent) -> None:
    works_from_start_to_restore(claude)


def test_claude_takes_a_token_in_place_of_a_key(claude: Agent) -> None:
    claude.site.env["ANTHROPIC_AUTH_TOKEN"] = claude.site.env.pop("ANTHROPIC_API_KEY")
    claude.start()
    claude.becomes("idle")
    claude.send("Hello")


def test_claude_without_a_key_says_so_at_the_first_message(claude: Agent) -> None:
    del claude.site.env["ANTHROPIC_API_KEY"]
    claude.start()
    claude.becomes("idle")
    claude.site.mas("send", "--session", claude.session, "00", "Hello")
    claude.becomes("blocked")
    assert claude.shown()["stateText"] == "auth: Not logged in · Please run /login"
    claude.shows_dialog("blocked", "auth")


@pytest.mark.parametrize(
    ("file", "old", "new", "kind"),
    [
        (_HOME, '"hasTrustDialogAccepted": true', '"hasTrustDialogAccepted": false', "trust"),
        (_HOME, "{key_tail}", "another key", "auth"),
        ("claude.toml", '"--session-id"', '"--dangerously-skip-permissions", "--session-id"', "question"),
    ],
)
def test_what_claude_asks_at_the_start_is_known(claude: Agent, file: str, old: str, new: str, kind: str) -> None:
    # It refuses to skip permissions as root, unless told that it is contained.
    claude.site.env["IS_SANDBOX"] = "1"
    claude.own_provider((file, old, new))
    claude.start()
    claude.shows_dialog("blocked", kind)
    assert claude.state() != "idle"
