"""The demo team of thirteen: a task goes down through it, and the reports come back up."""

from __future__ import annotations

import os

from tests.served import Served
from tests.site import Site, until

OTHERS = ("10", "11", "12", "13", "20", "21", "22", "23", "30", "31", "32", "33")
FAST = '{"env": {"MAS_DEMO_SPEED": "20"}}'


def read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def test_a_task_to_the_meta_manager_comes_back_as_a_report_of_all_twelve_others(served: Served) -> None:
    site = served.site
    with open(site.path("run.json"), "w", encoding="utf-8") as file:
        file.write(FAST)
    session = site.start("--config", site.path("run.json"), "--provider", "demo")
    text = site.mas("ask", "--reply", "00", "task: Plan the «release»\nand keep it short").stdout.rstrip("\n") + "\n"
    assert text == read(site.session(session, "unit", "00", "report.md"))
    assert text.startswith("# Report on: Plan the «release»\n")
    assert [agent for agent in OTHERS if f"- {agent}: done: Plan the «release»" not in text] == []
    assert "not reached" not in text
    # Every agent got its one task, and no more than that and the reports of those it leads.
    for agent in OTHERS:
        inbox = read(site.session(session, "unit", agent, "inbox.md"))
        assert inbox.count("task: [") == 1, agent
        assert inbox.count("report: [") == (3 if agent.endswith("0") else 0), agent
    assert read(site.session(session, "unit", "00", "inbox.md")).count("report: [") == 3
    assert "kept in report.md" in site.mas("output", "00").stdout


def test_a_session_that_is_restored_remembers_what_it_was_sent(site: Site) -> None:
    session = site.start("--team", "solo", "--provider", "demo")
    until(lambda: "00>" in site.mas("output", "00").stdout, "the prompt")
    site.mas("send", "00", "hello")
    until(lambda: os.path.exists(site.session(session, "unit", "00", "inbox.md")), "the inbox")
    site.mas("stop", session)
    assert site.json("restore", session)["warnings"] == []
    until(lambda: "(demo) resumed" in site.mas("output", "00").stdout, "the resumed agent")
