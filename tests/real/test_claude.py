"""Claude Code, the real program, against a model on loopback."""

from __future__ import annotations

import os

import pytest

from tests.real.agent import Agent, Kind, names_files_without_reading_them, works_from_start_to_restore
from tests.real.mock import Mock
from tests.site import Site, until

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
    assert claude.dialogs() == [("blocked", "auth")]


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
    claude.begins_with(kind)


def test_claude_is_answered_by_its_hook_or_by_a_person_at_its_terminal_meanwhile(claude: Agent) -> None:
    claude.start()
    claude.becomes("idle")
    claude.asks_for("touch by-hook")
    assert claude.provider.approve.method == "hook:PermissionRequest"
    until(lambda: claude.waiting(), "the hook that waits")
    claude.approve()
    claude.until(lambda: os.path.exists(claude.file("by-hook")), "what was allowed")
    claude.becomes("idle")
    claude.asks_for("touch by-hand")
    until(lambda: claude.waiting(), "the hook that waits")

    def allowed() -> bool:
        claude.press("Enter")
        return os.path.exists(claude.file("by-hand"))

    # A key that comes at once it takes for one that was not meant for this.
    claude.until(allowed, "what a person allowed")
    claude.becomes("idle")


def test_no_key_moves_claude_out_of_its_pane(claude: Agent) -> None:
    claude.start()
    claude.becomes("idle")
    # At an empty prompt this key would show all agents of the user, and move this one there.
    claude.press("Left")
    claude.send("Hello")
    claude.becomes("idle")


def test_claude_is_answered_by_key_where_no_hook_waits(claude: Agent) -> None:
    claude.own_provider(("claude.toml", "hook_timeout = 600", "hook_timeout = 0"))
    claude.start()
    claude.becomes("idle")
    claude.asks_for("touch by-key")
    until(lambda: not claude.waiting(), "no hook")
    claude.approve()
    claude.until(lambda: os.path.exists(claude.file("by-key")), "what was allowed")


def test_claude_takes_a_file_that_a_message_names_for_text(claude: Agent) -> None:
    names_files_without_reading_them(
        claude, "see @note.txt, me@x.org, @note.txt", r"see \@note.txt, me@x.org, \@note.txt"
    )
