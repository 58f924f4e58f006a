"""Errors: one exit code per kind, the sentence for people, the code for scripts, the next command for both."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Callable

import pytest

from mas.cli.main import COMMANDS
from tests.checker import UUID4
from tests.golden import Neutral, golden
from tests.site import Site

UNKNOWN = "00000000-0000-4000-8000-000000000000"
# What each command needs to get as far as looking for a workspace.
ENOUGH = {
    "rename": ["x", "y"],
    "send": ["00", "hello"],
    "ask": ["00", "hello"],
    "output": ["00"],
    "report": ["busy"],
    "unarchive": [UNKNOWN],
    "undelete": [UNKNOWN],
    "restore": [UNKNOWN],
    "archive": [UNKNOWN],
    "delete": [UNKNOWN],
    "prune": ["--keep", "1"],
}
NEED_NO_WORKSPACE = {"init", "up", "version", "completion", "doctor", "teams"}

Case = tuple[int, list[str]]


def stopped(site: Site) -> str:
    session = site.start()
    site.mas("stop", session)
    return session


def archived(site: Site) -> str:
    session = stopped(site)
    site.mas("archive", session)
    return session


def deleted(site: Site) -> str:
    session = stopped(site)
    site.mas("delete", session, "--yes")
    return session


def taken(site: Site) -> str:
    site.start("--name", "shop")
    return "shop"


def damaged(site: Site) -> str:
    session = stopped(site)
    with open(site.session(session, "metadata.json"), "w", encoding="utf-8") as file:
        file.write("{")
    return session


def write(site: Site, name: str, text: str) -> str:
    with open(site.path(name), "w", encoding="utf-8") as file:
        file.write(text)
    return name


CASES: dict[str, Callable[[Site], Case]] = {
    "an unknown option": lambda site: (2, ["list", "--bogus"]),
    "a mistyped command": lambda site: (2, ["stpo"]),
    "a command like no other": lambda site: (2, ["xyzzy"]),
    "a hostile id": lambda site: (2, ["show", "../../etc/passwd"]),
    "an id that is too short": lambda site: (3, ["show", "ab"]),
    "a name like an id": lambda site: (2, ["start", "--name", "mas-550e8400"]),
    "a name that is taken": lambda site: (4, ["rename", site.start("--name", "web"), taken(site)]),
    "no session named, none active": lambda site: (2, ["show"]),
    "sessions named and all of them": lambda site: (2, ["stop", UNKNOWN, "--all"]),
    "nothing to delete": lambda site: (2, ["delete"]),
    "nobody to say yes": lambda site: (2, ["delete", stopped(site)]),
    "a negative number": lambda site: (2, ["list", "--limit", "-1"]),
    "no agent named": lambda site: (2, ["output", site.start()]),
    "two sessions where one is meant": lambda site: (2, ["logs", "aaaa", "bbbb"]),
    "a bad age": lambda site: (2, ["prune", "--older-than", "soon"]),
    "no policy": lambda site: (2, ["prune"]),
    "a bad name": lambda site: (2, ["start", "--name", "two\nlines"]),
    "an unknown provider": lambda site: (2, ["start", "--provider", "nobody"]),
    "a configuration that is not JSON": lambda site: (2, ["start", "--config", write(site, "run.json", "{")]),
    "a configuration that is a directory": lambda site: (2, ["start", "--config", "unit"]),
    "a configuration with an unknown field": lambda site: (
        2,
        ["start", "--config", write(site, "run.json", '{"agent": {}}')],
    ),
    "a message with a control character": lambda site: (2, ["send", "--session", site.start(), "00", "a\x1b[201~b"]),
    "no such session": lambda site: (3, ["show", UNKNOWN]),
    "a deleted session": lambda site: (3, ["show", deleted(site)]),
    "no such agent": lambda site: (3, ["output", site.start(), "99"]),
    "nobody to be": lambda site: (3, ["env", site.start(), "--agent", "99"]),
    "no such unit": lambda site: (3, ["send", "--session", site.start(), "marketing", "hello"]),
    "no such file": lambda site: (3, ["start", "--config", "nowhere.json"]),
    "no such archive": lambda site: (3, ["unarchive", UNKNOWN]),
    "nothing in the trash": lambda site: (3, ["undelete", UNKNOWN]),
    "nothing to migrate there": lambda site: (3, ["migrate", site.home]),
    "no such workspace": lambda site: (3, ["list", "--workspace", site.home]),
    "an active session cannot be archived": lambda site: (4, ["archive", site.start()]),
    "an active session cannot be restored": lambda site: (4, ["restore", site.start()]),
    "an archived session": lambda site: (4, ["show", archived(site)]),
    "nobody there to send to": lambda site: (4, ["send", "--session", stopped(site), "00", "hello"]),
    "nothing there to attach to": lambda site: (4, ["attach", stopped(site)]),
    "a damaged session": lambda site: (5, ["show", damaged(site)]),
    "a missing program": lambda site: (7, ["start", "--command", "no-such-agent"]),
}


@pytest.mark.parametrize("name", CASES)
def test_an_error_has_its_code_its_sentence_and_the_next_command(site: Site, name: str) -> None:
    code, args = CASES[name](site)
    compare(site, name, code, args)


def compare(site: Site, name: str, code: int, args: list[str], env: dict[str, str] | None = None) -> None:
    told = site.mas(*args, code=code, env=env or {})
    wired = site.mas("--json", *args, code=code, env=env or {})
    assert told.stdout == wired.stdout == ""
    said = json.loads(wired.stderr)
    # A terminal gets as much of an id as one has to type.
    hint = UUID4.sub(lambda found: found[0][:8], said["hint"])
    assert told.stderr == f"error: {said['message']}\nhint:  {hint}\n"
    neutral = Neutral(site)
    shown = [neutral.text(text) for text in (shlex.join(args), told.stderr, wired.stderr)]
    golden(f"errors/{name.replace(' ', '-')}.txt", f"$ mas {shown[0]}\n{shown[1]}exit code {code}\n\n{shown[2]}")


def test_without_tmux_the_error_says_so(site: Site) -> None:
    compare(site, "no tmux", 7, ["start"], {"PATH": site.home})


def test_a_damaged_configuration_of_the_workspace_is_named(site: Site) -> None:
    write(site, "config.json", "{")
    compare(site, "a damaged configuration", 5, ["list"])


def test_a_full_disk_is_named_and_nothing_half_made_stays(site: Site) -> None:
    limit = f'ulimit -f 0; exec "{sys.executable}" -m mas start --team solo'
    done = site.run(["bash", "-c", limit])
    assert (done.returncode, done.stdout) == (6, "")
    assert done.stderr.startswith("error: The disk is full")
    assert "\nhint:  df -h; mas prune --older-than 7d\n" in done.stderr
    assert [name for name in os.listdir(site.path("sessions")) if not name.startswith(".")] == []
    wired = site.run(["bash", "-c", f"{limit} --json"])
    assert json.loads(wired.stderr)["code"] == "disk-full"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("stpo", "stop"), ("lst", "list"), ("stat", "stats"), ("archiv", "archive"), ("halp", "--help")],
)
def test_a_mistyped_command_names_the_near_one(bare: Site, typed: str, meant: str) -> None:
    assert bare.mas(typed, code=2).stderr.endswith(f"hint:  mas {meant}\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_bad_option_leads_to_the_help_of_its_command(bare: Site, command: str) -> None:
    done = bare.mas(command, *ENOUGH.get(command, []), "--bogus", code=2)
    assert done.stderr.endswith(f"hint:  mas {command} --help\n")


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - NEED_NO_WORKSPACE))
def test_outside_a_workspace_every_command_leads_to_init(bare: Site, command: str) -> None:
    for told, hint in (("", "mas init"), (bare.root, f"mas init {bare.root}")):
        env = {"MAS_WORKSPACE_ROOT": told}
        done = bare.mas(command, *ENOUGH.get(command, []), code=3, cwd=bare.home, env=env)
        assert done.stderr.endswith(f"hint:  {hint}\n")
    assert os.listdir(bare.home) == []


def test_every_hint_names_a_command_there_is() -> None:
    directory = os.path.join(os.path.dirname(__file__), "..", "golden", "errors")
    for name in os.listdir(directory):
        with open(os.path.join(directory, name), encoding="utf-8") as file:
            hint = re.search(r"^hint:  (.*)$", file.read(), re.MULTILINE)
        assert hint, name
        named = re.findall(r"\bmas ([\w-]+)", hint[1])
        assert set(named) <= {*COMMANDS, "--help"}, (name, hint[1])


def test_several_sessions_are_gone_through_in_spite_of_a_failure(site: Site) -> None:
    active, idle = site.start(), stopped(site)
    done = site.mas("archive", active, idle, code=1)
    assert done.stdout.split() == [idle]
    assert f"mas stop {active[:8]}" in done.stderr
