"""Small things that a person notices: what a command says, in which order, and when it says no."""

from __future__ import annotations

import json
import os
import re
import sys
from shutil import which

import pytest

from tests.site import Site, until
from tests.terminal import Terminal

CAT = ("--team", "solo", "--command", "cat")
DEMO = ("--team", "solo", "--provider", "demo")
OUTSIDE = {"MAS_WORKSPACE_ROOT": ""}


def test_what_may_be_chosen_is_listed_in_plain_words(site: Site) -> None:
    said = site.mas("start", "--isolation", "foo", code=2).stderr
    assert "choose from 'auto', 'require', 'off'" in said


@pytest.mark.parametrize("words", [("wait",), ("ask", "00", "hello")])
def test_the_longest_wait_is_named(site: Site, words: tuple[str, ...]) -> None:
    assert "from 0 to 604800 (7 days)" in site.mas(*words, "--timeout", "1000000", code=2).stderr


def test_the_doctor_works_without_a_workspace(site: Site) -> None:
    done = site.mas("doctor", cwd=site.directory, env=OUTSIDE, code=None)
    assert "absent   workspace                none here; to create one: mas init" in done.stdout
    assert "python" in done.stdout
    assert site.path() not in done.stdout
    elsewhere = site.mas("doctor", "--workspace", site.directory, code=3)
    assert elsewhere.stderr.startswith(f"error: No MAS workspace at {site.directory}\n")


def test_what_is_not_installed_is_absent_and_no_failure(site: Site) -> None:
    lines = {
        line[9:33].strip(): line.split()[0]
        for line in site.mas("doctor", env={"PATH": path_of_tmux(site)}).stdout.splitlines()
    }
    assert lines["provider claude"] == "absent"
    assert lines["provider demo"] == "ok"
    found = {check["name"]: check for check in site.json("doctor", env={"PATH": path_of_tmux(site)})["checks"]}
    assert (found["provider claude"]["ok"], found["provider claude"]["absent"]) == (True, True)
    assert (found["provider demo"]["ok"], found["provider demo"]["absent"]) == (True, False)


def path_of_tmux(site: Site) -> str:
    """A path with tmux and nothing else that MAS looks for."""
    tools = os.path.join(site.directory, "tools")
    os.makedirs(tools, exist_ok=True)
    for name in ("tmux", "sh"):
        if not os.path.lexists(os.path.join(tools, name)):
            os.symlink(which(name) or "", os.path.join(tools, name))
    return tools


def test_the_doctor_fits_80_columns(site: Site) -> None:
    with Terminal(
        [sys.executable, "-m", "mas", "doctor"], {**site.env, "NO_COLOR": "1"}, site.root, columns=80
    ) as shown:
        lines = shown.end().splitlines()
    assert [line for line in lines if len(line) > 80 and " " in line[34:].strip()] == []


def test_teams_are_listed_without_a_workspace(site: Site) -> None:
    names = site.mas("teams", "-q", cwd=site.directory, env=OUTSIDE).stdout.split()
    assert names == ["default", "dev", "pair", "solo"]
    assert "description" in site.mas("teams", "dev", cwd=site.directory, env=OUTSIDE).stdout


def test_attaching_without_a_terminal_is_refused_by_mas_itself(site: Site) -> None:
    session = site.start(*CAT)
    done = site.mas("attach", session, code=2)
    assert done.stderr == "error: mas attach needs a terminal\nhint:  without one: mas output SESSION:AGENT\n"
    assert json.loads(site.mas("attach", session, "--json", code=2).stderr)["code"] == "bad-input"
    assert "--attach needs a terminal" in site.mas("start", "--attach", code=2).stderr
    assert list(site.statuses()) == [session]


def test_a_message_is_spoken_of_in_one_true_sentence(site: Site) -> None:
    site.start(*CAT)
    assert re.fullmatch(r"Sent 1 byte to 00 \(m-[0-9a-f]{16}\)\n", site.mas("send", "--force", "00", "x").stderr)


def test_a_message_that_waits_is_queued_and_not_sent(site: Site) -> None:
    site.start(*DEMO)
    until(lambda: "idle" in site.mas("show").stdout, "a demo agent that is ready")
    site.mas("send", "00", "/ask may I?")
    until(lambda: "blocked" in site.mas("show").stdout, "a question")
    done = site.mas("send", "--wait", "0", "00", "hello there")
    assert re.match(r"Queued 11 bytes for 00 \(m-\w+\): agent 00 is waiting for an answer", done.stderr)
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", ["logs", "output"])
def test_no_lines_are_none(site: Site, command: str) -> None:
    site.start(*CAT)
    assert site.mas(command, "00", "-n", "0").stdout == ""
    assert "not a number" in site.mas(command, "00", "-n", "-1", code=2).stderr


def test_messages_are_whole_in_a_pipe_and_cut_by_the_width_of_a_terminal(site: Site) -> None:
    site.start(*CAT)
    text = "a long message " * 9 + "\nwith a second line"
    site.mas("send", "--force", "00", text)
    assert " ".join(text.split()) in site.mas("inbox").stdout
    for columns in (80, 120):
        with Terminal(
            [sys.executable, "-m", "mas", "inbox"], {**site.env, "NO_COLOR": "1"}, site.root, columns=columns
        ) as shown:
            line = shown.end().splitlines()[-1]
        assert len(line) == columns
        assert line.endswith("…")
    (message,) = site.mas("inbox", "-q").stdout.split()
    assert message.startswith("m-")


def test_talk_comes_after_the_data_it_is_about_in_a_pipe_too(site: Site) -> None:
    sessions = {site.start(*CAT) for _ in range(2)}
    done = site.run(["bash", "-c", f'"{sys.executable}" -m mas stop --all 2>&1'])
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[::2]] == ["Stopped", "Stopped"]
    assert set(lines[1::2]) == sessions


def test_a_start_without_isolation_says_what_that_means(site: Site) -> None:
    done = site.mas("start", "--isolation", "off", *CAT)
    assert "Isolation is off: agents can read and change everything that you can" in done.stderr
    # Who has set it for the whole workspace knows.
    assert "Isolation" not in site.mas("start", *CAT).stderr


def test_approvals_name_the_command_that_answers(site: Site) -> None:
    session = site.start(*DEMO)
    until(lambda: "idle" in site.mas("show").stdout, "a demo agent that is ready")
    site.mas("send", "00", "/ask delete it")
    until(lambda: "permission" in site.mas("approvals").stdout, "a question")
    done = site.mas("approvals")
    assert done.stderr == f"next:  mas approve {session[:8]}:00  ·  mas deny {session[:8]}:00\n"
    assert site.mas("approvals", "-q").stdout == f"{session}:00\n"
    assert site.mas("approvals", "-q", "-n", "0").stdout == ""
    assert "PROVIDER" in site.mas("approvals", "-o", "wide").stdout


def test_sizes_are_printed_as_people_write_them(site: Site) -> None:
    os.makedirs(site.path("templates", "teams"))
    text = 'limits = { memory = "4GiB" }\n\n[[units]]\nname = "one"\n\n[[units.agents]]\nid = "00"\nrole = "One"\n'
    with open(site.path("templates", "teams", "press.toml"), "w", encoding="utf-8") as file:
        file.write(text)
    assert 'memory = "4GiB"' in site.mas("teams", "press").stdout
