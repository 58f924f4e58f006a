"""One grammar: sessions and agents are given the same way in every command."""

from __future__ import annotations

import pytest

from tests.cli.test_streams import terminal
from tests.e2e.standin import ASLEEP, start_receivers
from tests.site import Site, until

SPELLINGS = (["web:21"], ["web", "21"], ["21", "web"], ["--session", "web", "21"], ["--session", "web:", "21"])


def pair(site: Site, name: str) -> str:
    session = start_receivers(site, "pair")
    site.mas("rename", session, name)
    return session


def test_a_session_and_an_agent_are_given_alike_everywhere(site: Site) -> None:
    session, _ = pair(site, "web"), pair(site, "shop")
    for spelling in SPELLINGS:
        for command in ("output", "logs", "inbox", "env", "token", "network"):
            site.mas(command, *spelling)
        site.mas("restart-agent", "--force", *spelling)
    for spelling in (["web"], ["web:"], ["--session", "web"], [session.upper()]):
        for command in ("show", "logs", "inbox", "env", "stats", "approvals", "network", "stop", "restore"):
            site.mas(command, *spelling)
    refused = site.mas("stop", "web:21", code=2).stderr
    assert "whole session" in refused


@pytest.mark.parametrize("spelling", [["web:21"], ["--session", "web", "21"], ["21", "--session", "web:"]])
def test_a_message_reaches_the_agent_that_the_one_argument_names(site: Site, spelling: list[str]) -> None:
    session, other = pair(site, "web"), pair(site, "shop")
    assert site.json("send", *spelling, "hello")["sessionId"] == session
    site.mas("wait", *spelling)
    site.mas("wait", "web:")
    assert site.json("inbox", other)["total"] == 0
    assert site.json("send", "web:development", "hello")["agents"] == ["21", "23"]


@pytest.mark.parametrize("target", [":21", ":", ""])
def test_a_session_that_a_script_left_empty_is_never_another_one(site: Site, target: str) -> None:
    session = pair(site, "web")
    site.mas("send", target, "hello", code=2)
    for command in ("output", "attach", "restart-agent", "stop", "show"):
        site.mas(command, target, code=2)
    assert site.json("inbox", session)["total"] == 0
    assert site.statuses() == {session: "active"}


def test_a_sender_is_an_agent_of_the_session_or_refused(site: Site) -> None:
    session = pair(site, "web")
    assert "it has: 21 23" in site.mas("send", "--as", "99", "web:21", "hello", code=3).stderr
    assert "it has: 21 23" in site.mas("send", "--as", "99", "web:person", "hello", code=3).stderr
    site.mas("send", "--from", "bogus", "web:21", "hello", code=2)
    site.mas("ask", "--as", "99", "web:21", "hello", code=3)
    assert site.json("inbox", session)["total"] == 0
    for word in ("--as", "--from"):
        site.mas("send", word, "23", "web:21", "hello")
    assert {message["from"] for message in site.json("inbox", session)["messages"]} == {"23"}
    assert "agents: 21 23" in site.mas("send", "web:77", "hello", code=3).stderr
    site.mas("report", "web:21", "Reading: the plan")
    assert "Reading: the plan" in site.mas("show", "web").stdout


def test_two_different_agents_in_one_command_are_refused(site: Site) -> None:
    pair(site, "web")
    for command in ("token", "env", "mcp"):
        assert "not 21 and 23" in site.mas(command, "web:21", "--as", "23", code=2).stderr
        site.mas(command, "web:21", "--as", "21", input="")
    assert "not 21 and 23" in site.mas("report", "--as", "23", "web:21", "Reading", code=2).stderr


def test_a_session_where_a_target_belongs_is_explained(site: Site) -> None:
    pair(site, "web"), pair(site, "shop")
    said = site.mas("send", "web", "hello", code=2).stderr
    assert "No session given, and 2 sessions are active\nhint:  mas send web:21 …" in said
    assert "mas list --status active" in site.mas("send", "21", "hello", code=2).stderr


def test_several_agents_are_restarted_and_an_unknown_one_stops_none_of_them(site: Site) -> None:
    pair(site, "web")
    done = site.mas("restart-agent", "--force", "web:21", "web:99", "web:23", code=1)
    assert "Restarted agent 21" in done.stderr
    assert "Restarted agent 23" in done.stderr
    assert "99" in done.stderr
    assert len(site.json("restart-agent", "--force", "web", "21", "23")["agents"]) == 2


def test_several_sessions_come_back_at_once(site: Site) -> None:
    made = [site.start(*ASLEEP, "--name", name) for name in ("one", "two", "three")]
    site.mas("stop", "--all")
    for there, back, which in (("archive", "unarchive", "archived"), ("delete", "undelete", "deleted")):
        yes = ["--yes"] if there == "delete" else []
        site.mas(there, *yes, "one", "two", "three")
        assert site.mas(back, "one", "two").stdout.split() == made[:2]
        assert site.mas(back, "--all").stdout.split() == made[2:]
        assert f"No session has the status {which}" in site.mas(back, "--all").stderr
    assert set(site.statuses()) == set(made)


def test_a_dry_run_says_what_would_be_done_and_does_nothing(site: Site) -> None:
    active, stopped = site.start(*ASLEEP, "--name", "web"), site.start(*ASLEEP, "--name", "shop")
    site.mas("stop", "shop")
    for command, session in (("stop", "web"), ("archive", "shop"), ("delete", "shop"), ("restore", "shop")):
        done = site.mas(command, "--dry-run", session)
        assert f"Would {command} mas-" in done.stderr
        assert done.stdout.strip() == {"web": active, "shop": stopped}[session]
        assert site.json(command, "--dry-run", session)["name"] == session
    assert site.json("stop", "--all", "--dry-run")["sessions"][0]["sessionId"] == active
    assert site.statuses() == {active: "active", stopped: "stopped"}


def test_stop_asks_on_a_terminal_where_work_would_be_lost_and_names_it(site: Site) -> None:
    session = site.start("--team", "solo", "--provider", "demo", "--name", "web")
    site.mas("wait", "web:")
    site.mas("send", "web:00", "/ask go on")
    until(lambda: site.json("show", "web")["agents"][0]["state"] == "blocked", "a question of the agent")
    site.mas("send", "--wait", "0", "web:00", "later")
    with terminal(site, "stop", "web") as shown:
        shown.until("1 agent is working, 1 message is waiting. [y/N]")
        shown.type("n\n")
        assert "Nothing was stopped" in shown.end()
        assert shown.code == 1
    assert site.statuses() == {session: "active"}
    with terminal(site, "restart-agent", "--force", "web:00") as shown:
        shown.until("1 agent is working. [y/N]")
        shown.type("n\n")
        shown.end()
    with terminal(site, "stop", "web", "--yes") as shown:
        shown.end()
        assert shown.code == 0
    assert site.statuses() == {session: "stopped"}


def test_stop_does_not_ask_if_nothing_is_lost_and_always_asks_for_all(site: Site) -> None:
    sessions = [site.start("--team", "solo", "--provider", "demo") for _ in range(2)]
    for session in sessions:
        site.mas("wait", f"{session}:")
    with terminal(site, "stop", sessions[0]) as shown:
        shown.end()
        assert shown.code == 0
    with terminal(site, "stop", "--all") as shown:
        shown.until("[y/N]")
        shown.type("y\n")
        shown.end()
    assert set(site.statuses().values()) == {"stopped"}


def test_what_other_programs_call_it_is_understood(site: Site) -> None:
    session = site.start(*ASLEEP, "--name", "web")
    for word in ("ls", "ps"):
        assert site.json(word) == site.json("list")
    assert site.mas("rm", "--yes", "web").stdout.strip() == session
