"""The providers that come with MAS: what they run, and what they would know of a screen."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest

from mas.model.errors import NoProgram
from mas.model.team import Agent
from mas.pane.screen import dialog_on, known_screens, state_on
from mas.providers.provider import AgentHome, Program, Providers
from mas.runtime.panes import MARK
from mas.store.files.matching import is_any
from tests.site import short_directory

HOME = AgentHome(
    workspace="/ws",
    session_dir="/ws/sessions/s",
    unit_dir="/ws/sessions/s/unit/00",
    state_dir="/ws/sessions/s/.mas/agents/00",
    agent_uuid="11111111-1111-4111-8111-111111111111",
    role_file="/ws/sessions/s/unit/00/ROLE.md",
    role='Be "kind"\nand short',
)
STATE = HOME.state_dir
UUID = HOME.agent_uuid
REAL = ("aider", "claude", "codex", "gemini")
TOOLS_PASSED = {"MAS_WORKSPACE_ROOT", "MAS_SESSION_ID", "MAS_AGENT_ID", "MAS_TOKEN"}


@pytest.fixture
def place() -> Iterator[str]:
    """A directory with a program of each name, and nothing else."""
    with short_directory() as directory:
        for name in REAL:
            path = os.path.join(directory, name)
            with open(path, "w", encoding="ascii") as file:
                file.write("#!/bin/sh\n")
            os.chmod(path, 0o755)
        yield directory


def program(place: str, name: str, model: str | None = None, home: AgentHome = HOME, **environ: str) -> Program:
    providers = Providers("/nowhere", {"PATH": place, **environ})
    return providers.program(Agent("00", provider=name, model=model), home)


def words(found: Program) -> str:
    return " ".join((os.path.basename(found.argv[0]), *found.argv[1:]))


def tools_of(server: dict[str, Any]) -> set[str]:
    """What a program passes on to the tools that MAS gives it; it must be MAS that it starts."""
    assert [server["command"], *server["args"]] == [sys.executable, "-m", "mas", "mcp"]
    return set(server.get("env_vars") or server["env"])


def test_every_built_in_file_is_whole() -> None:
    providers = Providers("/nowhere", {"PATH": os.environ["PATH"]})
    assert providers.names() == ["aider", "claude", "codex", "demo", "gemini", "generic", "shell"]
    for name in providers.names():
        assert providers.get(name).provider.description


def test_claude_is_started_with_its_own_home_hooks_and_role(place: str) -> None:
    found = program(place, "claude", "opus", ANTHROPIC_API_KEY="k" * 30, CLAUDECODE="1", SECRET="x")
    assert words(found) == (
        f"claude --model opus --append-system-prompt-file {HOME.role_file} "
        f"--settings {STATE}/mas-settings.json --mcp-config {STATE}/mas-mcp.json --session-id {UUID}"
    )
    assert dict(found.env) == {
        "ANTHROPIC_API_KEY": "k" * 30,
        "CLAUDE_CONFIG_DIR": STATE,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_AGENT_VIEW": "1",
    }
    files = dict(found.files)
    settings = json.loads(files[f"{STATE}/mas-settings.json"])
    # It deletes conversations that are older, 30 days by default.
    assert settings["cleanupPeriodDays"] == 36500
    hooks = settings["hooks"]
    # Its own default lets it run commands without asking.
    assert settings["permissions"] == {"defaultMode": "default", "allow": ["mcp__mas"]}
    assert tools_of(json.loads(files[f"{STATE}/mas-mcp.json"])["mcpServers"]["mas"]) == TOOLS_PASSED
    assert set(hooks) == {sign.match.partition(":")[0] for sign in found.status.hook_map}
    for event, ((group,),) in ((event, (groups,)) for event, groups in hooks.items()):
        assert group["hooks"][0]["command"].endswith(f"mas hook {event}")
    ((path, text),) = found.seed
    seed = json.loads(text)
    assert path == f"{STATE}/.claude.json"
    assert seed["hasCompletedOnboarding"] is True
    assert seed["projects"] == {HOME.session_dir: {"hasTrustDialogAccepted": True}}
    assert seed["customApiKeyResponses"]["approved"] == ["k" * 20]


def test_claude_without_a_role_and_a_model_gets_the_usual_ones(place: str) -> None:
    found = program(place, "claude", home=HOME._replace(role_file="", role=""))
    assert words(found) == (
        f"claude --model sonnet --settings {STATE}/mas-settings.json --mcp-config {STATE}/mas-mcp.json "
        f"--session-id {UUID}"
    )


def test_codex_is_started_with_its_own_home_and_the_role_in_its_configuration(place: str) -> None:
    found = program(place, "codex", "gpt", OPENAI_API_KEY="k")
    usual = "-a on-request -s workspace-write --no-daemon -c"
    assert words(found._replace(argv=found.argv[:-1])) == f"codex -m gpt {usual}"
    without = program(place, "codex")
    assert words(without._replace(argv=without.argv[:-1])) == f"codex {usual}"
    assert dict(found.env) == {"OPENAI_API_KEY": "k", "CODEX_HOME": STATE}
    ((path, text),) = found.seed
    config = tomllib.loads(text)
    assert path == f"{STATE}/config.toml"
    assert config["developer_instructions"] == HOME.role
    assert config["model_providers"][config["model_provider"]]["env_key"] == "OPENAI_API_KEY"
    assert config["projects"] == {HOME.session_dir: {"trust_level": "trusted"}}
    for argv in (found.argv, found.resume):
        given = tomllib.loads(argv[argv.index("-c") + 1])["mcp_servers"]["mas"]
        # All that makes an agent of a program, and the mark of its session's processes.
        needed = TOOLS_PASSED | {"MAS_SESSION_DIR", "MAS_HOOKS", "MAS_PORT", MARK}
        assert tools_of(config["mcp_servers"]["mas"] | given) == needed


def test_gemini_is_started_with_its_own_home_and_the_role_as_its_memory(place: str) -> None:
    found = program(place, "gemini", "pro", GEMINI_API_KEY="k")
    assert words(found) == f"gemini -m pro --approval-mode default --skip-trust --session-id {UUID}"
    assert dict(found.env) == {"GEMINI_API_KEY": "k", "GEMINI_CLI_HOME": STATE}
    files = dict(found.files)
    settings = json.loads(files[f"{STATE}/.gemini/settings.json"])
    assert settings["security"]["folderTrust"]["enabled"] is False
    # That it has started means no state, but that its titles can be believed.
    assert set(settings["hooks"]) == {"SessionStart", *(sign.match for sign in found.status.hook_map)}
    assert tools_of(settings["mcpServers"]["mas"]) == TOOLS_PASSED
    assert files[f"{STATE}/.gemini/GEMINI.md"] == f"{HOME.role}\n"


def test_aider_is_started_without_git_and_reads_the_role(place: str) -> None:
    found = program(place, "aider", "openai/x", OPENAI_API_KEY="k")
    assert words(found).startswith(f"aider --model openai/x --read {HOME.role_file} --no-git ")
    assert dict(found.env) == {"OPENAI_API_KEY": "k"}


@pytest.mark.parametrize("name", REAL)
def test_a_conversation_that_was_kept_is_resumed(name: str) -> None:
    kept = {"aider": "chat.md", "claude": f"projects/x/{UUID}.jsonl", "codex": "sessions/2026/01/a.jsonl",
            "gemini": ".gemini/tmp/x/chats/a.json"}  # fmt: skip
    with short_directory() as directory:
        path = os.path.join(directory, kept[name])
        bin_ = os.path.join(directory, "bin")
        os.mkdir(bin_)
        os.symlink("/bin/true", os.path.join(bin_, name))
        providers = Providers("/nowhere", {"PATH": bin_}, is_any=is_any)
        home = HOME._replace(state_dir=directory)
        agent = Agent("00", provider=name)
        assert not providers.program(agent, home, resume=True).resumes
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii"):
            pass
        found = providers.program(agent, home, resume=True)
        assert found.resumes
        assert "resum" in words(found) or "restore" in words(found)
        assert "--session-id" not in found.argv


@pytest.mark.parametrize("name", REAL)
def test_one_that_is_not_installed_says_how_to_get_it(name: str) -> None:
    with pytest.raises(NoProgram, match=name) as refused:
        program("/nowhere", name)
    assert "install" in refused.value.hint
    view = Providers("/nowhere", {"PATH": "/nowhere"}).look(name)
    assert (view.installed, view.program, view.version) == (False, None, None)
    assert view.install


@pytest.mark.parametrize(
    ("name", "screen", "kind"),
    [
        ("claude", " Is this a project you trust?\n   No, exit\n > Yes, I trust this folder\n", "trust"),
        ("claude", "                Not logged in · Run /login\n> \n", "auth"),
        ("claude", "  Detected a custom API key in your environment\n    Yes\n  ❯ No (recommended)\n", "auth"),
        ("claude", "  WARNING: Claude Code running in Bypass Permissions mode\n  ❯ No, exit\n", "question"),
        ("gemini", "│ Enter Gemini API Key   │\n", "auth"),
        ("gemini", "│ Do you trust the files in this folder?   │\n", "trust"),
        ("claude", "a page that says: you are not logged in\n> ", ""),
        ("codex", " Choose how to go on\n> 1. Sign in with ChatGPT\n", "auth"),
        ("codex", " 3 hooks need review before they can run.\n", "trust"),
        ("claude", "an ordinary answer about trust in folders\n> ", ""),
        ("codex", "an ordinary answer about hooks\n> ", ""),
    ],
)
def test_a_first_screen_that_waits_for_a_person_is_known(name: str, screen: str, kind: str) -> None:
    dialogs = Providers("/nowhere", {}).get(name).status.startup_dialogs
    assert [dialog.kind for dialog in dialogs if re.search(dialog.match, screen)] == ([kind] if kind else [])


def screens() -> Iterator[tuple[str, str, str, str]]:
    """The ends of screens that the real programs have shown: provider, which one, what it means, its text."""
    directory = os.path.join(os.path.dirname(__file__), "screens")
    for file_name in sorted(os.listdir(directory)):
        with open(os.path.join(directory, file_name), encoding="utf-8") as file:
            for part in file.read().split("=== ")[1:]:
                head, _, text = part.partition("\n")
                which, _, meaning = head.partition(": ")
                yield file_name.split("-")[0], f"{file_name.removesuffix('.txt')} {which}", meaning, text


SCREENS = list(screens())


def read(name: str, screen: str) -> tuple[tuple[str, str, str] | None, str]:
    """The dialog that a provider sees on a screen, and the state it reads there."""
    status = Providers("/nowhere", {}).get(name).status
    dialogs, states = known_screens(Program((), status=status).state_plan())
    lines = screen.rstrip().split("\n")
    return dialog_on(lines, dialogs), state_on(lines, states)[0]


@pytest.mark.parametrize(("name", "which", "meaning", "screen"), SCREENS, ids=[one[1] for one in SCREENS])
def test_a_screen_that_a_program_has_shown_means_what_it_did(name: str, which: str, meaning: str, screen: str) -> None:
    dialog, state = read(name, screen)
    told = (dialog[1] or dialog[0]) if dialog else state
    assert told == meaning.replace("-", "")
    # Nor does any other take it for one of its own.
    for other in {*REAL} - {name}:
        assert read(other, screen) == (None, "")


@pytest.mark.parametrize("name", REAL)
def test_every_built_in_program_has_shown_screens(name: str) -> None:
    assert len([which for agent, which, _, _ in SCREENS if agent == name]) >= 7


@pytest.mark.parametrize(
    ("end", "state"),
    [
        ("────────\nReadonly: ../ROLE.md\nmain.py  other.py\n>", "idle"),
        ("────────\narchitect>", "idle"),
        ("────────\nask multi>", "idle"),
        # A message whose last line is empty, before Enter or after it.
        ("────────\n> one\n>", ""),
        ("────────\n> one", ""),
        ("an answer that ends so:\n>", ""),
        ("Run shell command? (Y)es/(N)o/(D)on't ask again [Yes]:", "blocked"),
        ("Add main.py to the chat? (Y)es/(N)o/(A)ll/(S)kip all/(D)on't ask again [Yes]:", "blocked"),
        ("Add main.py to the chat? (Y)es/(N)o [Yes]: y\n\nAdded main.py", ""),
    ],
)
def test_aiders_prompt_is_distinguished_from_all_its_other_last_lines(end: str, state: str) -> None:
    assert read("aider", f"Aider v0.86.2\n{end}\n\n\n") == (None, state)


@pytest.mark.parametrize(
    ("name", "title", "state"),
    [
        ("claude", "✳ Claude Code", None),
        ("claude", "◐ Thinking", "working"),
        ("claude", "⠐ Thinking", "working"),
        ("codex", "00", None),
        ("codex", "⠏ 00", "working"),
        ("codex", "[ . ] Action Required | 00", "blocked:permission"),
        ("gemini", "◇  Ready (00)", "idle"),
        ("gemini", "✦  Working… (00)", "working"),
        ("gemini", "✋  Action Required (00)", "blocked:permission"),
    ],
)
def test_titles_report_states(name: str, title: str, state: str | None) -> None:
    titles = Providers("/nowhere", {}).get(name).status.title_map
    found = next((sign for sign in titles if re.search(sign.match, title)), None)
    assert (found and ":".join(filter(None, (found.state, found.kind)))) == state


@pytest.mark.parametrize(
    ("name", "text", "typed"),
    [
        ("claude", "see @a.txt, me@x.org, (@b) @ all", r"see \@a.txt, me@x.org, (\@b) @ all"),
        ("claude", "C:\\", "C:\\ "),
        ("gemini", "see @a.txt, me@x.org, @ all", r"see \@a.txt, me\@x.org, @ all "),
        ("gemini", r"see \@a.txt", r"see \@a.txt "),
        ("gemini", "@a\nwho is @", "\\@a\nwho is @ "),
        # A blank behind a backslash ends no word.
        ("gemini", "see @a\\", "see \\@a\\  "),
        ("gemini", "@a.txt\nit is", "\\@a.txt\nit is"),
        ("codex", "see @a.txt or @b.txt", r"see @a.txt or \@b.txt"),
        ("codex", "@a.txt it is", "@a.txt it is"),
        ("aider", "see @a.txt\\", "see @a.txt\\ "),
        ("aider", "update role", "update role "),
        ("aider", "update role \nor so", "update role \nor so"),
        ("shell", "echo @a\\", "echo @a\\"),
    ],
)
def test_what_would_be_a_mention_to_a_program_is_typed_as_text(name: str, text: str, typed: str) -> None:
    assert Providers("/nowhere", {}).get(name).input.neutral(text) == typed
