"""What every command prints as JSON and as text, step by step through a session's life."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator

import pytest

from tests.golden import Neutral, golden
from tests.site import Site, short_directory, until

AGENT = "sh -c 'echo ready; exec cat'"
REPORTING = (
    "init", "start", "list", "show", "env", "send", "inbox", "output", "logs", "stats", "stop", "stop-all", "restore",
    "clone", "archive", "list-archived", "unarchive", "delete", "list-deleted", "undelete", "prune", "prune-done",
    "migrate", "migrate-again", "repair", "repair-damage", "doctor", "up", "version", "completion", "report",
)  # fmt: skip


class Life:
    """Runs commands and keeps what they promised."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.neutral = Neutral(site)
        self.kept: dict[str, str] = {}

    def json(self, *args: str, called: str = "") -> str:
        """Run a command with `--json`; answers the session it was about."""
        found = self.site.json(*args)
        self.kept[called or args[0]] = self.neutral.json(found)
        return found.get("sessionId", "") if isinstance(found, dict) else ""

    def text(self, *args: str) -> str:
        """Run a command as people do; answers its data."""
        done = self.site.mas(*args)
        said = "".join(f"  (stderr) {line}\n" for line in done.stderr.splitlines())
        told = f"$ mas {' '.join(args)}\n{said}{done.stdout}\n"
        # How far apart columns stand depends on what was taken out.
        self.kept["text"] = self.kept.get("text", "") + re.sub(r"(?<=\S) {2,}", "  ", self.neutral.text(told))
        return done.stdout.strip()

    def ready(self, session: str) -> None:
        logs = [self.site.session(session, "logs", f"agent-{agent}.log") for agent in ("21", "23")]
        until(lambda: all(os.path.exists(log) and os.path.getsize(log) for log in logs), "both agents")


def in_json(life: Life) -> None:
    site = life.site
    life.json("init", site.root)
    site.mas("init", site.root, "--provider", "shell")
    first = life.json("start", "--team", "pair", "--name", "Ann", "--command", AGENT)
    life.ready(first)
    life.json("list")
    life.json("show", first)
    life.json("env", first, "--agent", "21")
    life.json("output", "21")
    life.json("send", "--force", "development", "hello")
    life.json("inbox")
    life.json("report", "--as", "21", "--state", "working", "Reading the plan")
    life.json("logs")
    life.json("stats")
    life.json("stop", first)
    life.json("stop", "--all", called="stop-all")
    life.json("restore", first)
    site.mas("stop", first)
    second = life.json("clone", first, "--name", "Bob")
    life.json("archive", second)
    life.json("list", "--status", "archived", called="list-archived")
    life.json("unarchive", second)
    life.json("delete", second, "--yes")
    life.json("list", "--status", "deleted", called="list-deleted")
    life.json("undelete", second)
    life.json("prune", "--keep", "1", "--dry-run")
    life.json("prune", "--keep", "1", "--yes", called="prune-done")
    upkeep(life, first)


def upkeep(life: Life, session: str) -> None:
    site = life.site
    old = os.path.join(site.directory, "old")
    os.makedirs(os.path.join(old, "unit", "00"))
    life.json("migrate", old)
    life.json("migrate", old, called="migrate-again")
    life.json("repair")
    left = site.json("list")["sessions"][0]["sessionId"]
    os.unlink(site.session(left, ".session"))
    life.json("repair", called="repair-damage")
    found = site.json("doctor")
    keys = sorted({key for check in found["checks"] for key in check})
    life.kept["doctor"] = life.neutral.json({"keys": sorted(found), "keys of checks": keys})
    site.mas("init", site.root + "2", "--provider", "shell")
    up = site.json("up", site.root + "2", "--port", "0")
    life.kept["up"] = life.neutral.json({"keys": sorted(up), "agents": len(up["session"]["agents"])})
    life.json("version")
    life.kept["completion"] = life.neutral.json(sorted(site.json("completion", "bash")))


def in_text(life: Life) -> None:
    site = life.site
    life.text("init", site.root)
    life.text("list")
    session = life.text("start", "--team", "pair", "--name", "Ann", "--command", AGENT)
    life.ready(session)
    life.text("list")
    life.text("show")
    life.text("env")
    life.text("output", "21")
    life.text("send", "--force", "21", "hello")
    life.text("inbox")
    life.text("logs")
    life.text("stop")
    life.text("stop", "--all")
    life.text("restore", session)
    life.text("stop", session)
    copy = life.text("clone", session)
    life.text("archive", copy)
    life.text("unarchive", copy)
    life.text("delete", copy, "--yes")
    life.text("list", "--status", "deleted")
    life.text("undelete", copy)
    life.text("prune", "--keep", "1", "--dry-run")
    life.text("prune", "--keep", "1", "--yes")
    life.text("prune", "--keep", "9")
    life.text("migrate")
    life.text("repair")
    life.text("list", "--status", "active")


@pytest.fixture(scope="module")
def life() -> dict[str, str]:
    """One life of a session in JSON, and one in text."""
    kept: dict[str, str] = {}
    for tell in (in_json, in_text):
        with short_directory() as directory:
            site = Site(directory)
            try:
                told = Life(site)
                tell(told)
                kept |= told.kept
            finally:
                site.close()
                site.tmux("kill-server")
            assert site.leftovers() == []
    return kept


@pytest.mark.parametrize("step", REPORTING)
def test_the_json_of_a_command_is_as_promised(life: dict[str, str], step: str) -> None:
    golden(f"json/{step}.json", life[step])


def test_every_step_is_compared(life: dict[str, str]) -> None:
    assert {*REPORTING, "text"} == set(life)


def test_the_text_of_commands_is_as_promised(life: dict[str, str]) -> None:
    golden("text.txt", life["text"])


def test_an_example_session_directory_is_as_promised(site: Site) -> None:
    session = site.start("--team", "pair", "--name", "Ann O'Neil", "--command", AGENT)
    life = Life(site)
    life.ready(session)
    until(lambda: len(os.listdir(site.session(session, "logs"))) == 8, "all logs")
    text = ["$ tree, with modes\n", *tree(site.session(session))]
    for name in (".session", "metadata.json", "config.json", "../.sessions.index", "../.index"):
        with open(site.session(session, name), encoding="utf-8") as file:
            text.append(f"\n$ cat {name}\n{file.read()}")
    golden("session.txt", life.neutral.text("".join(text)))


def tree(root: str) -> Iterator[str]:
    """Every path below `root` with its mode; what MAS keeps for itself in `.mas` is its own affair."""
    for directory, names, files in os.walk(root):
        names.sort()
        here = os.path.relpath(directory, root)
        yield f"{os.stat(directory).st_mode & 0o7777:04o} {here}/\n"
        if here == ".mas":
            names.clear()
            continue
        for name in sorted(files):
            path = os.path.join(directory, name)
            yield f"{os.lstat(path).st_mode & 0o7777:04o} {os.path.relpath(path, root)}\n"


def test_json_is_the_only_thing_on_standard_output(site: Site) -> None:
    for args in (["start", "--team", "solo"], ["list"], ["stop", "--all"], ["prune", "--keep", "0", "--yes"]):
        json.loads(site.mas(*args, "--json").stdout)
