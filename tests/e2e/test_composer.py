"""Nothing is typed into what is not an agent's input line, and no Enter is pressed behind anything but the message."""

from __future__ import annotations

import json
import os
import sys
from ast import literal_eval
from typing import Any

import pytest

from tests.e2e.standin import write
from tests.e2e.test_messages import inbox, kill_while_typing
from tests.served import Served
from tests.site import AGENTS, Site, until

FILE = r"""
provider = {{ id = "lined" }}
input = {{ submit_delay = {delay}, ack = "osc:working", ack_timeout = 2 }}

[composer]
prompt = '> ?'
margin = '  '
above  = '^─+'
below  = '─+'
pasted = '\[Pasted text #\d+ \+(?P<newlines>\d+) lines\]'

[[composer.dialogs]]
match  = "files are outside"
report = "blocked:reading"
hint   = "attach and answer it"

[launch]
argv = {argv}

[status]
sources = ["osc7501"]
start_timeout = {patience}
"""


class Lined:
    """A session of one agent that has an input line."""

    def __init__(self, site: Site, *words: str, delay: float = 0.05) -> None:
        self.site = site
        self.words = words
        self.patience = 1 if "silent" in words else 60
        self.provide(delay)
        self.session = site.start("--team", "solo", "--provider", "lined")
        state = "unknown" if "silent" in words else "idle"
        until(lambda: self.shown()["state"] == state, state)

    def provide(self, delay: float) -> None:
        argv = json.dumps([sys.executable, os.path.join(AGENTS, "composer.py"), *self.words])
        text = FILE.format(argv=argv, delay=delay, patience=self.patience)
        write(text, self.site.path("providers", "lined.toml"))

    def shown(self) -> dict[str, Any]:
        (agent,) = self.site.json("show", self.session)["agents"]
        assert isinstance(agent, dict)
        return agent

    def send(self, text: str, *flags: str) -> list[tuple[str, str]]:
        sent = self.site.json("send", "--session", self.session, *flags, "00", "-", input=text)
        return [(one["state"], one["reason"] or "") for one in sent["deliveries"]]

    def states(self) -> list[str]:
        """How far each message came; reading it also delivers what waits."""
        messages = inbox(self.site, self.session)
        return [one["state"] for message in messages for one in message["deliveries"]]

    def at(self, name: str) -> str:
        return self.site.session(self.session, "unit", "00", name)

    def kept(self, name: str) -> list[str]:
        """What the program recorded by this name, without the first line of messages."""
        if not os.path.exists(self.at(name)):
            return []
        with open(self.at(name), encoding="utf-8") as file:
            return [literal_eval(line).partition("]\n")[2] for line in file]

    def ask(self) -> None:
        write("", self.at("dialog"))
        until(lambda: "allow this?" in self.screen(), "the dialog")

    def close(self) -> None:
        os.remove(self.at("dialog"))

    def screen(self) -> str:
        return self.site.mas("output", self.session, "00").stdout

    def asks_until_closed(self) -> None:
        """Its dialog is listed for a person, nothing answers it, and what waits arrives once the dialog is closed."""
        until(lambda: self.shown()["state"] == "blocked", "blocked")
        shown = self.shown()
        assert (shown["stateSource"], shown["stateText"]) == (
            "composer",
            "reading: The following files are outside:; attach and answer it",
        )
        (one,) = self.site.json("approvals")["approvals"]
        assert (one["kind"], one["canAnswer"]) == ("reading", False)
        assert "Do you want to allow this?" in one["screen"]
        self.site.mas("approve", self.session, "00", code=4)
        assert not os.path.exists(self.at("granted"))
        self.close()


def test_a_message_is_typed_into_the_input_line_and_arrives_as_it_was(site: Site) -> None:
    agent = Lined(site)
    assert agent.send("one\n\n  two é", "--wait", "20") == [("acknowledged", "")]
    assert agent.send("x" * 300, "--wait", "20") == [("acknowledged", "")]
    assert agent.kept("took") == ["one\n\n  two é", "x" * 300]


def test_nothing_is_typed_into_a_dialog_that_no_source_reports(site: Site) -> None:
    agent = Lined(site)
    agent.ask()
    ((state, reason),) = agent.send("later")
    assert state == "queued"
    assert "files are outside" in reason
    assert agent.states() == ["queued"]
    assert agent.kept("pasted") == []
    agent.asks_until_closed()
    until(lambda: agent.states() == ["acknowledged"], "the message")
    assert agent.kept("took") == ["later"]
    assert agent.shown()["state"] == "idle"


def test_a_forced_message_is_not_typed_into_a_dialog_either(site: Site) -> None:
    agent = Lined(site)
    agent.ask()
    assert agent.send("now", "--force")[0][0] == "queued"
    assert agent.kept("pasted") == []


def test_no_enter_is_pressed_in_a_dialog_that_came_after_the_text_was_typed(site: Site) -> None:
    agent = Lined(site, "paste", delay=0.2)
    assert agent.send("half way")[0][0] == "queued"
    assert agent.kept("pasted") == ["half way"]
    agent.asks_until_closed()
    until(lambda: agent.states() == ["acknowledged"], "the message")
    assert agent.kept("took") == agent.kept("pasted") == ["half way"]


def test_a_dialog_that_a_message_brought_up_is_left_to_a_person(site: Site) -> None:
    agent = Lined(site, "enter")
    assert agent.send("look at @/etc/x", "--wait", "6")[0][0] == "typed"
    assert agent.send("unrelated")[0][0] == "queued"
    agent.asks_until_closed()
    until(lambda: agent.states() == ["acknowledged"] * 2, "both messages")
    assert agent.kept("took") == ["look at @/etc/x", "unrelated"]
    assert not os.path.exists(agent.at("granted"))


def test_a_text_that_a_person_is_typing_is_not_sent_with_a_message(site: Site) -> None:
    agent = Lined(site)
    pane = str(agent.shown()["pane"])
    site.tmux("send-keys", "-t", pane, "-l", "my own words")
    until(lambda: "my own words" in agent.screen(), "the draft")
    ((state, reason),) = agent.send("later")
    assert (state, "draft: its input line has a text: my own words" in reason) == ("queued", True)
    assert agent.shown()["stateText"].startswith("draft: ")
    site.tmux("send-keys", "-t", pane, "Enter")
    until(lambda: agent.states() == ["acknowledged"], "the message")
    assert agent.kept("took") == ["", "later"]


def test_a_message_that_a_program_was_too_busy_to_take_is_typed_once_more(site: Site) -> None:
    agent = Lined(site, "deaf=1")
    assert agent.send("again", "--wait", "20") == [("acknowledged", "")]
    assert (agent.kept("pasted"), agent.kept("took")) == (["again", "again"], ["again"])


def test_a_message_that_was_lost_twice_is_undelivered_and_keeps_no_other(site: Site) -> None:
    agent = Lined(site, "deaf=2")
    ((state, reason),) = agent.send("lost", "--wait", "30")
    assert state == "undelivered"
    assert "twice" in reason
    assert agent.send("heard", "--wait", "20") == [("acknowledged", "")]
    assert agent.kept("took") == ["heard"]


def test_enter_is_pressed_once_more_only_behind_the_message(site: Site) -> None:
    agent = Lined(site, "stuck")
    assert agent.send("stuck", "--wait", "20") == [("acknowledged", "")]
    assert agent.kept("took") == ["stuck"]


@pytest.mark.parametrize(("word", "state"), [("folds", "acknowledged"), ("miscounts", "queued")])
def test_a_label_in_place_of_a_long_text_must_count_as_the_text_does(site: Site, word: str, state: str) -> None:
    agent = Lined(site, word)
    assert agent.send("1\n2\n3\n4\n5\n6", "--wait", "5")[0][0] == state
    assert agent.kept("took") == (["1\n2\n3\n4\n5\n6"] if state == "acknowledged" else [])


def test_what_a_killed_sender_left_in_the_input_line_is_submitted_once(site: Site) -> None:
    agent = Lined(site, delay=30)
    kill_while_typing(site, agent.session, "00", "half")
    agent.provide(delay=0)
    until(lambda: agent.states() == ["acknowledged"], "the message")
    assert agent.kept("took") == agent.kept("pasted") == ["half"]


def test_a_server_delivers_what_waited_once_the_dialog_is_closed(site: Site, served: Served) -> None:
    agent = Lined(site)
    agent.ask()
    assert agent.send("later")[0][0] == "queued"
    agent.close()
    until(lambda: agent.kept("took") == ["later"], "the message")


def test_an_empty_input_line_shows_that_a_program_that_reports_nothing_is_ready(site: Site) -> None:
    agent = Lined(site, "silent")
    agent.ask()
    assert agent.send("later")[0][0] == "queued"
    assert agent.kept("pasted") == []
    agent.close()
    until(lambda: agent.states() and agent.kept("took") == ["later"], "the message")


def test_a_failed_turn_keeps_no_message_from_a_program_that_is_back_at_its_input_line(site: Site) -> None:
    agent = Lined(site, "fails")
    assert agent.send("fails", "--wait", "20") == [("acknowledged", "")]
    until(lambda: agent.shown()["state"] == "error", "the error")
    agent.ask()
    assert agent.send("again")[0][0] == "queued"
    agent.asks_until_closed()
    until(lambda: agent.states() == ["acknowledged"] * 2, "the message")
    assert agent.kept("took") == ["fails", "again"]
    assert agent.shown()["state"] == "idle"
