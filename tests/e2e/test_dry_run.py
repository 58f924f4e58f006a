"""What a dry run says is what the command then does: it refuses what the command refuses, in the same words."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable

import pytest

from mas.cli.main import COMMANDS, command_parser, load
from mas.model.ids import tmux_name
from tests.e2e.standin import ASLEEP, start_body
from tests.site import Site, until
from tests.store.samples import put

OF_SESSIONS = ("stop", "restore", "archive", "unarchive", "delete", "undelete")
UNKNOWN = "0123abcd-0123-4123-8123-0123456789ab"
# Calls of the other commands, and whether these refuse them.
OTHERS: dict[str, dict[tuple[str, ...], bool]] = {
    "prune": {
        (): True,
        ("--keep", "-1"): True,
        ("--keep", "0", "--status", "active"): True,
        ("--policy",): True,
        ("--policy", "--keep", "1"): True,
        ("--keep", "0"): False,
    },
    "migrate": {("missing",): True, (".",): True, ("a\nb",): True, (): False},
    "repair": {(): False},
}


def stopped(site: Site, *words: str) -> str:
    session = site.start(*(words or ASLEEP))
    site.mas("stop", session)
    return session


def lost(site: Site) -> str:
    session = site.start(*ASLEEP)
    site.tmux("kill-session", "-t", f"={tmux_name(session)}")
    until(lambda: site.statuses()[session] == "stopped", "the loss is noticed")
    return session


def damaged(site: Site, name: str) -> str:
    session = stopped(site)
    put(site.session(session), name, "{")
    return session


def without_its_program(site: Site) -> str:
    program = site.path("program.sh")
    put(site.root, "program.sh", "#!/bin/sh\nsleep 1000\n")
    os.chmod(program, 0o755)
    session = stopped(site, "--team", "solo", "--command", program)
    os.unlink(program)
    return session


def full(site: Site) -> str:
    session = start_body(site, {"team": "solo", "limits": {"disk": "1MiB"}}, *ASLEEP[2:])
    site.mas("stop", session)
    put(site.session(session), "unit/00/large", "x" * (1 << 21))
    return session


def gone(site: Site, *words: str) -> str:
    session = stopped(site)
    site.mas(*words, session)
    return session


SUBJECTS: dict[str, Callable[[Site], str]] = {
    "active": lambda site: site.start(*ASLEEP),
    "stopped": stopped,
    "lost": lost,
    "with a damaged record": lambda site: damaged(site, "metadata.json"),
    "with a damaged configuration": lambda site: damaged(site, "config.json"),
    "without its program": without_its_program,
    "with a full disk": full,
    "archived": lambda site: gone(site, "archive"),
    "deleted": lambda site: gone(site, "delete", "--yes"),
    "unknown": lambda site: UNKNOWN,
}


def test_every_command_with_a_dry_run_is_tried_here() -> None:
    having = {name for name in COMMANDS if "--dry-run" in command_parser(name, load(name)).format_help()}
    assert having == {*OF_SESSIONS, *OTHERS}


def refusal(done: subprocess.CompletedProcess[str]) -> tuple[int, str] | None:
    return (done.returncode, done.stderr) if done.returncode else None


@pytest.mark.parametrize("verb", OF_SESSIONS)
def test_a_dry_run_refuses_what_the_command_refuses(site: Site, verb: str) -> None:
    sessions = {subject: make(site) for subject, make in SUBJECTS.items()}
    yes = ["--yes"] if verb == "delete" else []
    tried, done = {}, {}
    for subject, session in sessions.items():
        before = site.mas(verb, "--dry-run", session, code=None)
        assert before.returncode or f"Would {verb} mas-" in before.stderr
        tried[subject] = refusal(before)
        done[subject] = refusal(site.mas(verb, *yes, session, code=None))
    assert tried == done
    # Neither does everything here, or nothing.
    assert {None} < set(done.values())


def test_of_several_sessions_a_dry_run_names_those_that_are_refused(site: Site) -> None:
    active, ready = site.start(*ASLEEP), stopped(site)
    done = site.mas("restore", "--dry-run", active, ready, code=1)
    assert done.stdout.split() == [ready]
    assert f"Session {active} is active" in done.stderr
    found = json.loads(site.mas("archive", "--dry-run", active, ready, "--json", code=1).stdout)
    assert [session["sessionId"] for session in found["sessions"]] == [ready]


@pytest.mark.parametrize(("command", "words"), [(name, words) for name, calls in OTHERS.items() for words in calls])
def test_so_do_the_commands_of_a_whole_workspace(site: Site, command: str, words: tuple[str, ...]) -> None:
    stopped(site)
    yes = ["--yes"] if command == "prune" else []
    tried = refusal(site.mas(command, *words, "--dry-run", code=None))
    done = refusal(site.mas(command, *words, *yes, code=None))
    assert tried == done
    assert bool(done) is OTHERS[command][words]
