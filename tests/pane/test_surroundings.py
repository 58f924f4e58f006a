"""What an agent finds when it starts: its terminal, its environment, its directory, and nothing of ours."""

from __future__ import annotations

import json
import os
import resource
import sys
from typing import Any

from mas.store.agent.launch_plan import launch_path
from tests.pane.pane import TESTING, Pane, pane, stand_in
from tests.site import Site

# Each of these would cost every start of every agent some milliseconds.
SLOW = {
    "argparse", "asyncio", "collections", "contextlib", "copy", "dataclasses", "enum", "functools", "inspect", "json",
    "logging", "pathlib", "random", "re", "shlex", "shutil", "signal", "socket", "subprocess", "tempfile", "threading",
    "traceback", "typing", "uuid",
}  # fmt: skip


def report(site: Site, **how: Any) -> dict[str, Any]:
    """What an agent says it found itself in."""
    path = os.path.join(site.directory, "report.json")
    with pane(site, *stand_in("report"), path, **how) as one:
        assert one.wait() == 0, one.output
    with open(path, encoding="utf-8") as file:
        found: dict[str, Any] = json.load(file)
    return found


def test_an_agent_has_its_terminal_and_no_other_file(bare: Site) -> None:
    # Seven more that the process that started the launcher left open.
    leaked = "exec 3</dev/null 4</dev/null 5</dev/null 6</dev/null 7</dev/null 8</dev/null 9</dev/null"
    found = report(bare, before=leaked)
    assert sorted(found["descriptors"]) == ["0", "1", "2"]
    assert len(set(found["descriptors"].values())) == 1
    assert found["descriptors"]["0"].startswith("/dev/pts/")
    assert found["blocking"] == [True, True, True]


def test_an_agent_leads_its_own_session_on_its_own_terminal(bare: Site) -> None:
    found = report(bare)
    assert found["leader"] is True
    assert len(set(found["terminals"])) == 1


def test_an_agent_has_what_its_launch_gives_and_what_its_terminal_is_and_nothing_else(bare: Site) -> None:
    names = ("TMUX", "TMUX_PANE", "MAS_DATA_DIR", "MAS_SESSION_MODE", "SSH_AUTH_SOCK", "SECRET")
    pane_has = dict.fromkeys(names, "x") | {"TERM": "tmux-256color", "COLORTERM": "truecolor"}
    found = report(bare, env=pane_has, agent_env={"GIVEN": "2", "EMPTY": ""})
    environment = found["environment"]
    assert [name for name in names if name in environment] == []
    assert (environment["GIVEN"], environment["EMPTY"]) == ("2", "")
    assert (environment["TERM"], environment["COLORTERM"]) == ("tmux-256color", "truecolor")
    given = {"PATH", "GIVEN", "EMPTY", "TERM", "COLORTERM", *TESTING}
    # A shell or an interpreter may set some by itself.
    assert set(environment) - given <= {"PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE"}


def test_what_a_launch_gives_wins_over_what_tmux_has(bare: Site) -> None:
    found = report(bare, env={"WHO": "tmux"}, agent_env={"WHO": "launch\nwith = two lines"})
    assert found["environment"]["WHO"] == "launch\nwith = two lines"


def test_an_agent_works_in_its_unit(bare: Site) -> None:
    assert report(bare)["cwd"] == os.path.join(bare.directory, "session", "unit", "00")


def test_arguments_arrive_as_they_were_given(bare: Site) -> None:
    path = os.path.join(bare.directory, "report.json")
    words = ["", " ", "two\nlines", "=x", "$HOME", "'", '"', "é", "-", ""]
    with pane(bare, *stand_in("report"), path, *words) as one:
        assert one.wait() == 0
    with open(path, encoding="utf-8") as file:
        assert json.load(file)["argv"][2:] == words


def test_an_agent_has_the_limit_on_open_files_that_it_was_given(bare: Site) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert report(bare, plan={"nofile": 123})["files"] == [123, hard]
    assert report(bare, plan={"nofile": 999999999})["files"] == [hard if hard > 0 else 999999999, hard]


def test_an_agent_has_the_signals_as_any_program_does(bare: Site) -> None:
    # Read from the kernel, as a Python program changes some at its own start.
    with pane(bare, "sh", "-c", "grep -E '^Sig(Ign|Blk)' /proc/self/status") as one:
        assert one.wait() == 0
        shown = dict(line.split(":\t") for line in one.log().decode().split("\r\n") if ":" in line)
    # Beyond the first 31 are those the C library keeps to itself; no program can set them back.
    assert {name: int(value, 16) & 0x7FFFFFFF for name, value in shown.items()} == {"SigBlk": 0, "SigIgn": 0}


def test_a_unit_that_is_copied_late_is_there_when_the_agent_starts(bare: Site) -> None:
    template = os.path.join(bare.directory, "template")
    os.makedirs(os.path.join(template, "inner"))
    with open(os.path.join(template, "inner", "file"), "w", encoding="ascii") as file:
        file.write("content")
    made = Pane(bare, ["sh", "-c", "cat inner/file; pwd"], {"PATH": bare.env["PATH"]}, {"lazy": template})
    os.rmdir(made.path())
    made.start()
    try:
        assert made.wait() == 0
        assert made.output.startswith(f"content{made.path()}".encode())
        assert os.listdir(os.path.join(made.session, ".mas")) == ["launch"]
    finally:
        made.close()


def test_a_unit_that_is_there_is_not_copied_over(bare: Site) -> None:
    template = os.path.join(bare.directory, "template")
    os.makedirs(template)
    made = Pane(bare, ["ls"], {"PATH": bare.env["PATH"]}, {"lazy": template})
    with open(made.path("mine"), "w", encoding="ascii"):
        pass
    made.start()
    try:
        assert made.wait() == 0
        assert made.output.startswith(b"mine\r\n")
    finally:
        made.close()


def test_the_launcher_imports_little_and_only_of_the_standard_library(bare: Site) -> None:
    with pane(bare, "true", flags=["-X", "importtime"]) as one:
        assert one.wait() == 0
        lines = [line for line in one.output.decode(errors="replace").splitlines() if line.startswith("import time:")]
    modules = {line.rsplit("|", 1)[1].strip() for line in lines[1:]}
    ours = {name for name in modules if name.split(".")[0] == "mas"}
    assert ours >= {"mas.pane.launcher", "mas.pane.logs", "mas.pane.processes", "mas.store.agent.launch_plan"}
    assert {name.split(".")[0] for name in modules - ours} <= sys.stdlib_module_names | {"zipimport"}
    assert modules & SLOW == set()


def test_a_launcher_runs_what_the_version_before_wrote_down(bare: Site) -> None:
    made = Pane(bare, ("true",), {}, {})
    path = bare.env["PATH"]
    with open(launch_path(made.session, made.agent), "w", encoding="utf-8") as file:
        file.write(f"=sh\0=-c\0=echo $A; exit 3\0\0PATH={path}\0A=as before\0\0nofile=1024\0sources=osc7501,title")
    made.start()
    try:
        assert made.wait() == 3
        assert b"as before" in made.output
        assert made.event("start")["sources"] == ["osc7501", "title"]
    finally:
        made.close()


def test_a_launcher_that_cannot_read_its_plan_says_so_and_what_helps(bare: Site) -> None:
    made = Pane(bare, ("true",), {}, {})
    with open(launch_path(made.session, made.agent), "w", encoding="utf-8") as file:
        file.write("3\n{}")
    made.start()
    try:
        assert made.wait() == 127
        assert made.event("exit")["reason"].endswith("start it again: mas restart-agent session 00")
        assert b"did not start: its launch file is damaged, or of a newer MAS" in made.output
    finally:
        made.close()
