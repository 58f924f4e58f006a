"""Completion: the candidates, and the scripts in real shells."""

from __future__ import annotations

import os
import shlex
import shutil
from typing import Any

import pytest

from mas.cli.main import COMMANDS
from tests.shell.front import mas_program
from tests.site import Site
from tests.terminal import Terminal

COMMON = {"--help", "--workspace", "--url", "--token", "--token-file", "--ca", "--json"}


def offered(site: Site, *words: str, **options: Any) -> list[str]:
    """The candidates for the last of `words`."""
    done = site.mas("complete", "--", *words, **options)
    assert done.stderr == ""
    return [line.partition("\t")[0] for line in done.stdout.splitlines()]


def test_commands_are_offered_first(bare: Site) -> None:
    assert offered(bare, "") == offered(bare) == [*COMMANDS, "help"]
    assert offered(bare, "un") == ["unarchive", "undelete"]
    assert offered(bare, "--json", "sto") == ["stop"]
    assert offered(bare, "--workspace", "stop", "sta") == ["start", "stats"]
    assert offered(bare, "--url", "stop", "--token", "show", "sta") == ["start", "stats"]
    assert offered(bare, "help", "sto") == ["stop"]
    assert offered(bare, "help", "stop", "") == []
    assert offered(bare, "nonsense", "") == []


def test_each_candidate_says_what_it_is(bare: Site) -> None:
    assert bare.mas("complete", "--", "attac").stdout == "attach\topen a session in tmux\n"


def test_options_are_offered_until_they_are_used(bare: Site) -> None:
    assert set(offered(bare, "-")) == {*COMMON, "--version"}
    assert set(offered(bare, "stop", "-")) == {*COMMON, "--all", "--dry-run", "--yes"}
    assert set(offered(bare, "stop", "--all", "--")) == {*COMMON, "--dry-run", "--yes"}
    assert offered(bare, "start", "--team", "solo", "--pr") == ["--provider"]
    assert offered(bare, "prune", "--status", "error", "--st") == ["--status"]
    assert offered(bare, "send", "--", "-") == []


def test_choices_are_offered_in_every_spelling(bare: Site) -> None:
    assert offered(bare, "start", "--team", "") == ["default", "dev", "pair", "solo"]
    assert offered(bare, "start", "--team", "=", "so") == ["solo"]
    assert offered(bare, "start", "--team", "=") == ["default", "dev", "pair", "solo"]
    assert offered(bare, "start", "--team=so") == ["--team=solo"]
    assert offered(bare, "list", "--status", "a") == ["active", "archived"]
    assert offered(bare, "completion", "") == ["bash", "zsh", "fish"]
    assert offered(bare, "completion", "bash", "") == []
    assert offered(bare, "list", "--limit", "") == []


def test_paths_are_left_to_the_shell(bare: Site) -> None:
    assert offered(bare, "start", "--config", "run") == [":files"]
    for words in (["--workspace", ""], ["list", "--workspace", "x"], ["init", ""], ["migrate", "/"], ["up", ""]):
        assert offered(bare, *words) == [":directories"]


def test_sessions_are_offered_by_their_state(site: Site) -> None:
    active, stopped, archived, deleted = (site.start("--team", "solo", "--name", name) for name in "abcd")
    for session in (stopped, archived):
        site.mas("stop", session)
    site.mas("archive", archived)
    site.mas("delete", deleted, "--yes")
    here = [active, "a", stopped, "b"]
    found = {command: offered(site, command, "") for command in ("show", "stats", "delete", "clone", "rename")}
    assert found == dict.fromkeys(found, here)
    assert offered(site, "stop", "") == offered(site, "send", "--session", "") == [active, "a"]
    assert offered(site, "restore", "") == offered(site, "archive", "") == [stopped, "b"]
    assert offered(site, "unarchive", "") == [archived, "c"]
    assert offered(site, "undelete", "") == [deleted, "d"]
    assert offered(site, "show", active[:6]) == [active]
    assert offered(site, "show", "mas-") == [f"mas-{session[:8]}" for session in (active, stopped)]
    assert offered(site, "show", active, "") == []
    assert offered(site, "delete", active, "") == [stopped, "b"]
    assert site.mas("complete", "--", "stop", "").stdout == f"{active}\tactive a\na\tactive mas-{active[:8]}\n"


def test_agents_are_those_of_the_session_that_is_meant(site: Site) -> None:
    pair, solo = site.start("--team", "pair"), site.start("--team", "solo")
    everybody = ["00", "21", "23"]
    assert offered(site, "logs", "") == [pair, solo, *everybody]
    assert offered(site, "logs", pair[:8], "") == ["21", "23"]
    assert offered(site, "logs", "21", "") == [pair, solo]
    assert offered(site, "output", solo, "") == offered(site, "attach", f"mas-{solo[:8]}", "") == ["00"]
    assert offered(site, "output", solo, "00", "") == []
    assert offered(site, "inbox", pair[:8], "") == ["21", "23"]
    assert offered(site, "env", pair, "--agent", "") == ["21", "23"]
    assert offered(site, "send", "") == [*everybody, "development", "meta", "managers", "all", "person"]
    assert offered(site, "send", "--session", pair, "") == ["21", "23", "development", "managers", "all", "person"]
    assert offered(site, "send", f"--session={solo}", "m") == ["meta", "managers"]
    assert offered(site, "send", "--session", pair, "--from", "") == ["21", "23"]
    assert offered(site, "send", "21", "") == []
    assert offered(site, "send", "", env={"MAS_SESSION_ID": solo}) == ["00", "meta", "managers", "all", "person"]


def test_an_agent_of_a_named_session_is_offered_behind_the_colon(site: Site) -> None:
    site.start("--team", "pair", "--name", "web")
    site.start("--team", "solo", "--name", "a name")
    groups = ["development", "managers", "all", "person"]
    assert offered(site, "send", "web:") == [f"web:{one}" for one in ("21", "23", *groups)]
    assert offered(site, "send", "we") == ["web:21", "web:23"]
    assert offered(site, "output", "web:2") == offered(site, "restart-agent", "web:2") == ["web:21", "web:23"]
    # As bash cuts the words.
    assert offered(site, "send", "web", ":") == ["21", "23", *groups]
    assert offered(site, "logs", "web", ":", "23") == ["23"]
    assert "demo" in offered(site, "start", "--provider", "")
    assert "web" in offered(site, "rm", "")


def test_the_workspace_named_on_the_line_is_the_one_asked(site: Site) -> None:
    session = site.start()
    nowhere = {"MAS_WORKSPACE_ROOT": ""}
    there = {"env": nowhere, "cwd": site.home}
    assert offered(site, "--workspace", site.root, "stop", "", **there) == [session]
    assert offered(site, "stop", f"--workspace={site.root}", "", **there) == [session]
    os.symlink(site.root, os.path.join(site.home, "ws"))
    assert offered(site, "stop", "--workspace", "~/ws", "", **there) == [session]


@pytest.mark.parametrize(
    "words", [["stop", ""], ["send", ""], ["logs", "x", ""], ["send", "--session", "-", ""], ["", ""]]
)
def test_outside_a_workspace_nothing_is_offered_and_nothing_printed(bare: Site, words: list[str]) -> None:
    assert offered(bare, *words) == []
    assert os.listdir(bare.directory) == ["home"]


def in_bash(site: Site, *words: str, cwd: str | None = None) -> list[str]:
    """What bash would offer for the last of `words`."""
    script = """
        eval "$(mas completion bash)"
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(left over)
        _mas_complete
        for word in ${COMPREPLY[@]+"${COMPREPLY[@]}"}; do printf '%s\\n' "$word"; done
    """
    env = {"PATH": f"{os.path.dirname(mas_program(site))}:{site.env['PATH']}"}
    done = site.run(["bash", "-uc", script, "bash", *words], env=env, cwd=cwd or site.root)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_bash_offers_what_mas_offers(site: Site) -> None:
    session = site.start("--team", "pair", "--name", "two words")
    assert in_bash(site, "mas", "sto") == ["stop"]
    assert in_bash(site, "mas", "stop", "") == [session]
    assert in_bash(site, "mas", "send", "") == ["21", "23", "development", "managers", "all", "person"]
    assert in_bash(site, "mas", "start", "--team", "=", "s") == ["solo"]
    assert in_bash(site, "mas", "start", "--config", "") == []
    assert in_bash(site, "mas", "show", "$(touch pwned)") == []
    assert in_bash(site, "no-such-mas", "") == []
    assert not os.path.exists(site.path("pwned"))


def test_bash_completes_at_a_real_prompt(site: Site) -> None:
    session = site.start()
    with open(site.path("run-me.json"), "w", encoding="utf-8") as file:
        file.write("{}")
    env = {**site.env, "PATH": f"{os.path.dirname(mas_program(site))}:{site.env['PATH']}", "PS1": "> "}
    with Terminal(["/bin/bash", "--norc", "--noprofile", "-i"], env, site.root) as shell:
        shell.type('eval "$(mas completion bash)"; bind "set enable-bracketed-paste off"; echo read""y\n')
        shell.until("ready")
        for typed, completed in (
            ("mas sto\t", "mas stop "),
            (f"mas stop {session[:2]}\t", f"mas stop {session} "),
            ("mas start --team=so\t", "mas start --team=solo "),
            ("mas start --config run\t", "mas start --config run-me.json "),
            ("mas --workspace wor\t", "mas --workspace workflows/"),
        ):
            shell.type(typed)
            shell.until(completed)
            shell.type("\x15")
        shell.type("exit 0\n")
        shell.end()


ZSH = """
compdef() { print "registered $*" }
_describe() { print -l -- "${(@P)2}" }
_files() { print "files $*" }
eval "$(mas completion zsh)"
words=("$@"); CURRENT=$#
_mas_complete
"""


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_offers_what_mas_offers(site: Site) -> None:
    session = site.start("--team", "solo", "--name", "a:b")
    env = {"PATH": f"{os.path.dirname(mas_program(site))}:{site.env['PATH']}"}

    def in_zsh(*words: str) -> list[str]:
        done = site.run(["zsh", "-fc", ZSH, "zsh", *words], env=env)
        assert done.stderr == ""
        return done.stdout.splitlines()[1:]

    assert in_zsh("mas", "sto") == ["stop:end a session's programs, keep its directory"]
    assert in_zsh("mas", "stop", "") == [f"{session}:active a:b"]
    assert in_zsh("mas", "start", "--config", "") == ["files "]
    assert in_zsh("mas", "init", "") == ["files -/"]


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_offers_what_mas_offers(site: Site) -> None:
    session = site.start("--team", "solo", "--name", "ann")
    env = {"PATH": f"{os.path.dirname(mas_program(site))}:{site.env['PATH']}"}

    def in_fish(line: str) -> list[str]:
        script = f"mas completion fish | source; complete -C {shlex.quote(line)}"
        return site.run(["fish", "--no-config", "-c", script], env=env).stdout.splitlines()

    assert in_fish("mas sto") == ["stop\tend a session's programs, keep its directory"]
    assert in_fish("mas stop ") == [f"{session}\tactive ann"]
    assert in_fish("mas start --team=so") == ["--team=solo"]
    assert "workflows/" in [found.partition("\t")[0] for found in in_fish("mas init wor")]


def test_the_bash_script_is_clean(bare: Site) -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    script = bare.mas("completion", "bash").stdout
    assert bare.run(["shellcheck", "-s", "bash", "-"], input=script).stdout == ""
