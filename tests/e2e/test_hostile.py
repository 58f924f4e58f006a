"""Hostile input: names, ids, units, commands and paths are refused or passed on exactly, and never executed."""

from __future__ import annotations

import json
import os
import shlex
import sys

import pytest

from tests.e2e.standin import ASLEEP, command, received, start_body, start_receivers, tmux_name, tree, write
from tests.site import Site, until

NASTY = (
    "../../etc", "..", "x;", ";", "#(touch x)", "#{pane_id}", "$(touch x)", "`touch x`", "-leading", "--help",
    "a b", "'", '"', "\\", "*", "~", "|touch x", "&touch x", ">x", "日本語", "🎉", "é" * 300, "x" * 300,
    "a\nb", "a\tb", "\x1b[31m", "\x7f", "\u202e", "\ufeff", "%1", "=x", ":", "all", "managers",
)  # fmt: skip
WORST = ("../../etc", "x;", "#(touch x)", "$(touch x)", "-leading", "'", "a\nb", "日本語", "x" * 300, "\x1b[31m")


def assert_nothing_executed(site: Site) -> None:
    marks = [path for path in tree(site.directory) if os.path.basename(path) == "x"]
    assert marks == []


def test_names_are_refused_or_kept_exactly(site: Site) -> None:
    session = site.start(*ASLEEP)
    site.mas("stop", session)
    for name in ("x;", "#(touch x)", "$(touch x)", "'", "日本語"):
        clone = site.json("clone", session, f"--name={name}")
        assert clone["name"] == name
        assert site.json("show", clone["sessionId"])["name"] == name
    for name in ("../../etc", "-leading", "a\nb", "\x1b[31m", "x" * 300, " ", "\u202e"):
        site.mas("clone", session, f"--name={name}", code=2)
    assert len(site.statuses()) == 6
    assert_nothing_executed(site)


def test_a_running_session_may_have_the_nastiest_name(site: Site) -> None:
    name = "#(touch x) $(touch x) 'é' \";"
    session = site.start(*ASLEEP, f"--name={name}")
    assert site.json("list")["sessions"][0]["name"] == name
    assert name in site.mas("list").stdout
    assert site.tmux_sessions() == {tmux_name(session)}
    assert_nothing_executed(site)


def test_what_is_no_id_is_refused_by_every_verb(site: Site) -> None:
    session = site.start(*ASLEEP)
    verbs: tuple[tuple[str, ...], ...] = (
        ("show",), ("stop",), ("restore",), ("clone",), ("archive",), ("unarchive",), ("delete", "--yes"),
        ("undelete",), ("env",), ("stats",),
    )  # fmt: skip
    for verb, text in zip(verbs, WORST, strict=True):
        done = site.mas(*verb, "--", text, code=None)
        # What could be a session's name is looked for, and not found.
        assert done.returncode in (2, 3)
        assert "Traceback" not in done.stderr
    assert site.four_places(session) == {"active"}
    assert_nothing_executed(site)


def test_targets_and_agents_are_looked_up_not_interpreted(site: Site) -> None:
    session = site.start(*ASLEEP)
    for text in (*WORST, "%0", "000", "{last}"):
        done = site.mas("send", "--session", session, "--", text, "hello", code=None)
        assert done.returncode in (2, 3), text
    for text in ("0; touch x", "%0", "../0"):
        site.mas("env", session, f"--agent={text}", code=2)
    assert_nothing_executed(site)


def test_unit_names_that_could_mean_something_else_are_refused(site: Site) -> None:
    for text in (*WORST, "", "1ops", "all", "a\0b"):
        body = json.dumps({"agents": {"units": [{"name": text, "manager": {}}]}})
        done = site.mas("start", "--config", "-", "--command", "sleep 1000", input=body, code=2)
        assert "Traceback" not in done.stderr
    assert site.statuses() == {}
    assert site.tmux_sessions() == set()
    assert_nothing_executed(site)


BODIES = (
    "", "[]", "{", '{"agents": {"units": {}}}', '{"team": "../x"}', '{"provider": "../../etc/passwd"}',
    '{"env": {"A B": "1"}}', '{"env": {"A": "\\u0000"}}', '{"surprise": 1}',
    '{"agents": {"metaManager": {"id": "../0"}}}', '{"agents": {"metaManager": {"command": "a\\u0000b"}}}',
    '{"name": "\\ud800"}', '{"env": {"A": "\\ud800"}}', '{"agents": {"metaManager": {"command": "echo \\ud800"}}}',
    "[" * 100_000,
)  # fmt: skip


def test_a_body_that_is_none_makes_nothing(site: Site) -> None:
    for body in BODIES:
        done = site.mas("start", "--config", "-", input=body, code=2)
        assert "Traceback" not in done.stderr
    site.mas("start", "--config", site.directory, code=2)
    site.mas("start", "--config", os.path.join(site.directory, "nowhere"), code=3)
    assert site.statuses() == {}
    assert site.tmux_sessions() == set()


def test_the_arguments_of_a_command_reach_the_program_exactly(site: Site) -> None:
    words = [text for text in NASTY if "\n" not in text] + ["", " ", "a\nb", "$HOME", "x;", "trailing;"]
    program = write(
        "import json, sys, time\njson.dump(sys.argv[1:], open('argv.tmp', 'w'))\n"
        "import os\nos.rename('argv.tmp', 'argv.json')\ntime.sleep(1000)\n",
        site.directory, "argv.py",
    )  # fmt: skip
    session = site.start("--team", "solo", "--command", shlex.join([sys.executable, program, *words]))
    path = site.session(session, "unit", "00", "argv.json")
    until(lambda: os.path.exists(path), "the program's arguments")
    with open(path, encoding="utf-8") as file:
        assert json.load(file) == words
    site.mas("stop", session)
    os.unlink(path)
    site.mas("restore", session)
    until(lambda: os.path.exists(path), "the program's arguments after restoring")
    with open(path, encoding="utf-8") as file:
        assert json.load(file) == words
    assert_nothing_executed(site)


def test_an_invalid_command_is_refused(site: Site) -> None:
    for text in ("", "'unfinished", "\\"):
        site.mas("start", f"--command={text}", code=2)
    for text in ("../../bin/nothing", "-x", "$(touch x)", "; touch x"):
        site.mas("start", f"--command={text}", code=7)
    assert site.statuses() == {}
    assert_nothing_executed(site)


def test_environment_values_reach_every_agent_exactly(site: Site) -> None:
    values = {f"V{number}": text for number, text in enumerate((*NASTY, "a\nb", "", "$HOME"))}
    program = write(
        "import json, os, time\njson.dump(dict(os.environ), open('env.tmp', 'w'))\n"
        "os.rename('env.tmp', 'env.json')\ntime.sleep(1000)\n",
        site.directory, "environ.py",
    )  # fmt: skip
    session = start_body(site, {"team": "solo", "env": values}, "--command", shlex.join([sys.executable, program]))
    path = site.session(session, "unit", "00", "env.json")
    until(lambda: os.path.exists(path), "the program's environment")
    with open(path, encoding="utf-8") as file:
        found = json.load(file)
    assert {key: found.get(key) for key in values} == values
    assert_nothing_executed(site)


@pytest.mark.parametrize(
    "name",
    ['it\'s "a" #(touch x) $HOME ;', "日本 é 🎉 \\ `touch x`", "-dash #{pane_id} =x:.0", "x" * 120],
)
def test_a_workspace_anywhere_works_for_the_whole_life_of_a_session(bare: Site, name: str) -> None:
    bare.root = os.path.join(bare.directory, name)
    bare.env["MAS_WORKSPACE_ROOT"] = bare.root
    bare.mas("init", bare.root, "--provider", "shell", "--name", "somewhere")
    session = start_receivers(bare)
    panes = bare.tmux("list-panes", "-s", "-t", f"={tmux_name(session)}:", "-F", "#{session_path}|#{pane_current_path}")
    assert panes == f"{bare.session(session)}|{bare.session(session, 'unit', '00')}"
    bare.mas("send", "--session", session, "00", "hello")
    assert received(bare, session, "00", 1) == b"hello"
    for args, status in (
        (("stop", session), "stopped"), (("restore", session), "active"), (("stop", session), "stopped"),
        (("archive", session), None), (("unarchive", session), "stopped"), (("delete", session, "--yes"), None),
        (("undelete", session), "stopped"),
    ):  # fmt: skip
        bare.mas(*args)
        if status:
            assert bare.four_places(session) == {status}
        else:
            assert not os.path.exists(bare.session(session))
    assert received(bare, session, "00", 1) == b"hello"
    assert bare.mas("repair", "--dry-run").stdout == ""
    assert_nothing_executed(bare)


def test_templates_with_nasty_names_are_copied_exactly(site: Site) -> None:
    for name in ("#(touch y)", "-rf", "a;", "a\nb", "日本", " ", "'"):
        write(name, site.path("unit", "00", name))
    os.symlink("/etc/passwd", site.path("unit", "00", "link"))
    session = site.start("--team", "solo", "--command", command("unruly"))
    wanted = tree(site.path("unit"))
    assert {path: tree(site.session(session, "unit")).get(path) for path in wanted} == wanted
    assert not os.path.exists(site.session(session, "unit", "00", "y"))
