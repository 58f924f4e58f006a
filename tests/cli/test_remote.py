"""The command line through a server: the same commands, the same answers, wherever the workspace is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from tests.served import Served
from tests.site import Site, until

CAT = ("--team", "pair", "--command", "cat")


def asked(served: Served, *args: str, **options: Any) -> Any:
    return json.loads(served.mas(*args, "--json", **options).stdout)


def test_a_session_is_run_from_elsewhere(served: Served) -> None:
    session = served.mas("start", *CAT, "--name", "Größe").stdout.strip()
    assert session[:8] in served.mas("list").stdout
    assert "Größe" in served.mas("show").stdout
    assert "to 21, 23" in served.mas("send", "--force", "all", "grüß\ndich").stderr
    until(lambda: "dich" in served.mas("output", "23").stdout, "the agent shows it")
    assert "typed" in served.mas("inbox", "21").stdout
    assert "send from=person" in served.mas("logs", session[:8]).stdout
    assert f"export MAS_SESSION_ID={session}" in served.mas("env", f"mas-{session[:8]}").stdout
    assert served.mas("stop", session[:8]).stdout.strip() == session
    copy = served.mas("clone", session).stdout.strip()
    assert served.mas("archive", copy).stdout.strip() == copy
    assert f"mas unarchive {copy[:8]}" in served.mas("show", copy, code=4).stderr
    served.mas("unarchive", copy[:8])
    served.mas("delete", copy, "--yes")
    served.mas("undelete", copy[:8])
    served.mas("delete", copy, "--yes")
    assert copy[:8] in served.mas("prune", "--keep", "0", "--status", "deleted", "--yes").stdout
    assert asked(served, "list", "--status", "deleted")["total"] == 0
    assert served.mas("restore", "--all", "--stopped").stdout.strip() == session
    assert served.mas("stop", "--all").stdout.strip() == session
    assert served.mas("doctor", code=None).stdout.startswith("ok")
    assert served.mas("repair").stderr == served.site.mas("repair").stderr
    assert served.site.statuses() == {session: "stopped"}


def test_the_json_is_the_same_from_both_sides(served: Served) -> None:
    session = asked(served, "start", *CAT)["sessionId"]
    served.mas("send", "--force", "21", "hello")
    until(lambda: "hello" in served.mas("logs", "21").stdout, "the agent has it")
    for args in (
        ["list"],
        ["list", "--status", "active", "--limit", "1"],
        ["show", session],
        ["env", "--agent", "21"],
        ["inbox"],
        ["inbox", "21"],
        ["output", "21"],
        ["logs", "21"],
        ["prune", "--keep", "0", "--dry-run"],
        ["repair", "--dry-run"],
        ["migrate", "--dry-run"],
    ):
        assert asked(served, *args) == served.site.json(*args), args
    assert asked(served, "stop", session).keys() == served.site.json("stop", session).keys()


def test_a_server_is_named_by_flags_or_environment_before_or_after_the_command(served: Served) -> None:
    session = served.site.start(*CAT)
    flags = ["--url", served.url, "--token", served.token]
    bare = {"MAS_URL": "", "MAS_TOKEN": ""}
    for args in ([*flags, "list"], ["list", *flags], ["--url", served.url, "list", "--token", served.token]):
        assert session[:8] in served.mas(*args, env=bare).stdout
    assert session[:8] in served.mas("list", "--url", f"unix:{served.socket}", env=bare).stdout
    assert session[:8] in served.mas("--token", served.token, "list", env={"MAS_TOKEN": "wrong"}).stdout
    assert session[:8] in served.mas("--url", served.url, "list", env={"MAS_URL": "http://127.0.0.1:1"}).stdout
    # A workspace named is one on this machine, whatever the environment says.
    assert session[:8] in served.mas("--workspace", served.site.root, "list", env={"MAS_URL": "nonsense"}).stdout


def test_a_wrong_token_is_refused_with_a_way_to_the_right_one(served: Served) -> None:
    done = served.mas("list", env={"MAS_TOKEN": "wrong"}, code=8)
    assert done.stdout == ""
    assert done.stderr == (
        f"error: The server at {served.url} rejected this token\n"
        "hint:  on its machine: mas token; then here: --token, or MAS_TOKEN\n"
    )
    assert "requires a token" in served.mas("list", env={"MAS_TOKEN": ""}, code=8).stderr
    told = json.loads(served.mas("list", "--json", env={"MAS_TOKEN": "wrong"}, code=8).stderr)
    assert told["code"] == "unauthorized"


def test_a_missing_server_is_reported(served: Served) -> None:
    served.stop()
    for url in (served.url, f"unix:{served.socket}"):
        done = served.mas("list", env={"MAS_URL": url}, code=7)
        assert done.stderr.startswith(f"error: No answer from {url}")
        assert done.stderr.endswith("hint:  mas serve --detach\n")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--url", "example.org", "list"], "Not the address of a server"),
        (["--token", "x", "list"], "needs a server"),
        (["--url", "http://127.0.0.1:1", "--workspace", ".", "list"], "not both"),
        (["list", "--url"], "expected one argument"),
        (["init", "--url", "http://127.0.0.1:1"], "mas init works only on the workspace"),
        (["--url", "http://127.0.0.1:1", "up"], "mas up works only on the workspace"),
        (["serve", "--token", "x"], "mas serve works only on the workspace"),
        (["token", "--url", "http://127.0.0.1:1"], "mas token works only on the workspace"),
        (["url", "--url", "http://127.0.0.1:1"], "mas url works only on the workspace"),
        (["start", "--attach", "--url", "http://127.0.0.1:1"], "opens in tmux only on its own machine"),
    ],
)
def test_what_cannot_be_meant_is_refused(site: Site, args: list[str], words: str) -> None:
    done = site.mas(*args, code=2)
    assert words in done.stderr
    assert "hint:" in done.stderr


def test_commands_for_this_machine_do_not_mind_a_server_in_the_environment(site: Site) -> None:
    there = {"MAS_URL": "http://127.0.0.1:1", "MAS_TOKEN": "x"}
    site.mas("init", env=there)
    session = site.start("--team", "solo", "--command", "cat")
    assert site.mas("token", "--agent", "00", "--session", session, env=there).stdout.startswith("mas-agent.")
    for args in (["version"], ["completion", "bash"]):
        site.mas(*args, env=there)


def test_an_option_that_would_do_nothing_is_refused(site: Site) -> None:
    for args in (["version", "--url", "http://127.0.0.1:1"], ["--token", "x", "version"]):
        assert "mas version" in site.mas(*args, code=2).stderr


def test_attach_says_where_it_works(served: Served) -> None:
    session = served.mas("start", *CAT).stdout.strip()
    done = served.mas("attach", session[:8], "21", code=2)
    assert f"on the server's machine: mas attach {session[:8]} 21" in done.stderr


def test_the_old_mode_asked_for_by_this_programs_environment_gets_the_warning(served: Served) -> None:
    done = served.mas("start", "--team", "solo", env={"MAS_SESSION_MODE": "legacy"})
    assert done.stderr.startswith("Legacy session mode has been deprecated.\n")


def test_ids_and_agents_behind_a_server_are_completed(served: Served) -> None:
    session = served.mas("start", *CAT).stdout.strip()

    def offered(*words: str, **options: Any) -> list[str]:
        lines = served.mas("complete", "--", *words, **options).stdout.splitlines()
        return [line.partition("\t")[0] for line in lines]

    assert offered("stop", "") == [session]
    assert offered("logs", session, "") == ["21", "23"]
    flags = ["--url", served.url, "--token", served.token]
    assert offered(*flags, "stop", "", env={"MAS_URL": "", "MAS_TOKEN": ""}) == [session]
    assert offered("stop", "", env={"MAS_TOKEN": "wrong"}) == []
    assert offered("stop", "--u") == ["--url"]
    assert offered("stop", "--url", "") == []


def test_a_growing_log_is_followed_byte_for_byte(served: Served) -> None:
    program = "sh -c 'stty -echo; i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo line-$i; done; exec cat'"
    session = served.mas("start", "--team", "solo", "--command", program).stdout.strip()
    log = served.site.session(session, "logs", "agent-00.log")
    until(lambda: "line-300" in served.mas("logs", "00").stdout, "the agent has spoken")
    shown = os.path.join(served.site.directory, "shown")
    env = served.site.env | {"MAS_URL": served.url, "MAS_TOKEN": served.token, "MAS_WORKSPACE_ROOT": ""}
    argv = [sys.executable, "-m", "mas", "logs", session, "00", "--follow", "-n", "2"]
    with open(shown, "wb") as file:
        following = subprocess.Popen(
            argv, stdout=file, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=env, cwd=served.site.home
        )
    try:
        until(lambda: os.path.getsize(shown), "the last lines are shown")
        served.mas("send", "--force", "00", "später")

        def everything() -> bool:
            with open(shown, "rb") as now, open(log, "rb") as whole:
                found = now.read()
                return "später".encode() in found and whole.read().endswith(b"line-298\r\n" + found)

        until(everything, "what was added is shown")
        with open(shown, "rb") as now:
            assert now.read().startswith(b"line-299\r\nline-300\r\n")
    finally:
        following.send_signal(signal.SIGINT)
        talk = following.communicate(timeout=60)[1]
    assert (following.returncode, talk) == (130, b"interrupted\n")
    assert "No agent '99'" in served.mas("logs", session, "99", "--follow", code=3).stderr
