"""One real agent program in a session of its own, and all that a test does with it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from mas.providers.format import Provider
from mas.providers.provider import Providers
from mas.store.agent.answers import waiting
from tests.real.mock import DONE, RUN, USE, Mock
from tests.served import Served
from tests.site import REPOSITORY, Site, until

_BUILTIN = os.path.join(REPOSITORY, "src", "mas", "providers", "builtin")
_HEADER = re.compile(r"\[MAS [^\n]*\]\n")
# Programs trim the end of a message, and nothing else.
MESSAGE = """Read this, and answer:
  an indented line with 'quotes', "more" and `ticks`

\ta tab, $HOME, 100% of C:\\path, <tag> & #hash
é 日本 🙂 and the last line"""
_ROLE = "Meta manager"
_CHAIN = """
routing = { 00 = ["10"], 10 = ["11"], 11 = ["10"] }
units = [{ name = "chain", agents = [{ id = "00" }, { id = "10" }, { id = "11" }] }]
"""


class Kind(NamedTuple):
    """What differs from program to program in a test."""

    name: str
    environ: tuple[tuple[str, str], ...]
    asks: str
    """What its state says of a permission it waits for: a regular expression."""
    tab: str = "\t"
    """What it makes of a tab in a message."""


class Agent:
    """The only agent of a session, of one kind."""

    def __init__(self, site: Site, model: Mock, kind: Kind) -> None:
        self.site = site
        self.model = model
        self.kind = kind
        self.session = ""
        site.env.update(kind.environ)

    def own_provider(self, *changes: tuple[str, str, str]) -> None:
        """Give the workspace the built-in provider as its own, changed: file, what stands there, what shall."""
        os.makedirs(self.site.path("providers", "templates"))
        templates = os.listdir(os.path.join(_BUILTIN, "templates"))
        texts = {name: _read(name) for name in (f"{self.kind.name}.toml", *(f"templates/{name}" for name in templates))}
        for name, old, new in changes:
            assert old in texts[name]
            texts[name] = texts[name].replace(old, new)
        for name, text in texts.items():
            with open(self.site.path("providers", name), "w", encoding="utf-8") as file:
                file.write(text)

    def start(self) -> None:
        self.session = self.site.start("--team", "solo", "--provider", self.kind.name)

    @property
    def provider(self) -> Provider:
        return Providers(self.site.path("providers"), self.site.env).get(self.kind.name)

    def shown(self) -> dict[str, Any]:
        (agent,) = self.site.json("show", self.session)["agents"]
        assert isinstance(agent, dict)
        return agent

    def state(self) -> str:
        return str(self.shown()["state"])

    def until(self, fact: Callable[[], object], what: str) -> None:
        """Wait for a fact; fail with what the program shows."""
        try:
            until(fact, what)
        except AssertionError as error:
            raise AssertionError(
                f"{error}\n{self.shown()}\nat the model: {self.model.said()}\n{self.screen()}"
            ) from None

    def becomes(self, state: str) -> None:
        self.until(lambda: self.state() == state, state)

    def screen(self) -> str:
        return self.site.mas("output", self.session, "00", "--screen").stdout

    def events(self) -> list[dict[str, Any]]:
        with open(self.site.session(self.session, "logs", "agent-00.events.jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def send(self, text: str, as_: str | None = None) -> None:
        """Send a message, and wait until the model has it, exactly, or as it is typed."""
        before = len(self.events())
        sent = self.site.json("send", "--session", self.session, "--wait", "30", "00", "-", input=text)
        assert [delivery["state"] for delivery in sent["deliveries"]] == ["acknowledged"], sent
        wanted = (as_ or text).replace("\t", self.kind.tab)
        self.until(lambda: wanted in self.received(), f"{wanted!r} at the model")
        self.until(lambda: self._acknowledged(self.events()[before:], as_ or text), "its acknowledgement")

    def received(self) -> list[str]:
        """The messages that the model was sent, without the line that MAS may put in front."""
        return [_HEADER.sub("", text, count=1) for text in self.model.said()]

    def _acknowledged(self, events: list[dict[str, Any]], text: str) -> bool:
        """Whether the events show that the message was taken, in the way that the provider's file names."""
        how, _, name = self.provider.input.ack.partition(":")
        if how == "osc":
            return any((event.get("source"), event.get("state")) == ("osc7501", name) for event in events)
        first = text.split("\n")[0]
        return any(event.get("name") == name and first in event.get("prompt", "") for event in events)

    def asks_for(self, command: str) -> None:
        """Have the model ask for a command, and the program for a permission."""
        self.send(f"{RUN} {command}")
        self.becomes("blocked")
        words = self.shown()["stateText"]
        assert re.fullmatch(self.kind.asks.replace("COMMAND", re.escape(command)), words), words

    def approve(self) -> None:
        self.site.mas("approve", self.session, "00")

    def waiting(self) -> dict[str, str]:
        """The hooks of its program that wait for an answer."""
        return waiting(self.site.session(self.session), "00")

    def press(self, key: str) -> None:
        """Press a key, as a person at its terminal does."""
        self.site.tmux("send-keys", "-t", str(self.shown()["pane"]), key)

    def deny(self) -> None:
        self.site.mas("deny", self.session, "00")

    def file(self, name: str) -> str:
        return self.site.session(self.session, "unit", "00", name)

    def dialogs(self) -> list[tuple[str, str]]:
        """What the provider's file knows of the screen as it is."""
        screen = self.screen()
        return [(one.state, one.kind) for one in self.provider.status.startup_dialogs if re.search(one.match, screen)]

    def begins_with(self, kind: str) -> None:
        """Wait until MAS reports that the program waits for a person; nothing is typed to it."""
        self.becomes("blocked")
        shown = self.shown()
        assert (shown["stateText"].split(":")[0], shown["stateSource"]) == (kind, "screen"), shown
        assert self.dialogs() == [("blocked", kind)]
        sent = self.site.json("send", "--session", self.session, "00", "Hello")
        assert [delivery["state"] for delivery in sent["deliveries"]] == ["queued"], sent


def works_from_start_to_restore(agent: Agent) -> None:
    """What every real program must do in a session."""
    agent.start()
    agent.becomes("idle")

    agent.send(MESSAGE)
    agent.becomes("idle")
    assert any(_ROLE in exchange.asked.everything for exchange in agent.model.exchanges)
    agent.until(lambda: "MOCK_REPLY" in agent.screen(), "the answer on the screen")
    said = agent.site.json("output", agent.session, "00")
    assert said["source"] == "transcript", said
    assert re.fullmatch("MOCK_REPLY lines=[0-9]+ sha=[0-9a-f]+", said["text"]), said

    agent.asks_for("echo real > proof.txt")
    agent.approve()
    agent.until(lambda: os.path.exists(agent.file("proof.txt")), "what the tool was to write")
    agent.becomes("idle")
    agent.until(lambda: DONE in agent.screen(), "the end of the turn on the screen")

    agent.site.mas("stop", agent.session)
    assert agent.site.processes() == []
    before = len(agent.model.exchanges)
    assert "Started fresh" not in agent.site.mas("restore", agent.session).stderr
    agent.becomes("idle")
    agent.send("And after that?")
    agent.becomes("idle")
    sent = {text for exchange in agent.model.exchanges[before:] for text in exchange.asked.user}
    resumed = [_HEADER.sub("", text, count=1) for text in sent]
    assert MESSAGE.replace("\t", agent.kind.tab) in resumed
    assert f"{RUN} echo real > proof.txt" in resumed

    agent.asks_for("echo no > denied.txt")
    agent.deny()
    agent.becomes("idle")
    agent.send("What now?")
    agent.becomes("idle")
    assert not os.path.exists(agent.file("denied.txt"))
    turns = agent.site.json("transcript", agent.session, "00")["turns"]
    asked = [MESSAGE.replace("\t", agent.kind.tab), f"{RUN} echo real > proof.txt", "And after that?"]
    asked += [f"{RUN} echo no > denied.txt", "What now?"]
    assert [_HEADER.sub("", turn["prompt"], count=1) for turn in turns] == asked
    assert [turn["parts"][1]["failed"] for turn in turns if RUN in turn["prompt"]] == [False, True]
    assert all(turn["finished"] and turn["model"] and turn["tokens"]["output"] for turn in turns)


def names_files_without_reading_them(agent: Agent, text: str, as_: str) -> None:
    """A message that names the file `note.txt` as a person would who wants it read: it comes as text, and no more."""
    agent.start()
    agent.becomes("idle")
    with open(agent.file("note.txt"), "w", encoding="utf-8") as file:
        file.write("words of the file\n")
    agent.send(text, as_)
    agent.becomes("idle")
    # To many, Enter behind a backslash is a new line.
    agent.send("C:\\path\\")
    agent.becomes("idle")
    assert not any("words of the file" in exchange.asked.everything for exchange in agent.model.exchanges)


def hands_on_by_tools(agent: Agent) -> None:
    """A message that goes from 00 to 10 to 11, each step by MAS's tool; the server comes later than the agents."""
    site = agent.site
    os.makedirs(site.path("templates", "teams"))
    with open(site.path("templates", "teams", "chain.toml"), "w", encoding="utf-8") as file:
        file.write(_CHAIN)
    session = site.start("--team", "chain", "--provider", agent.kind.name)

    def are_idle() -> bool:
        return {one["state"] for one in site.json("show", session)["agents"]} == {"idle"}

    until(are_idle, "three idle agents")
    served = Served(site)
    try:
        site.mas("send", "--session", session, "00", _tool_line("10", _tool_line("11", "the end")))
        until(lambda: "the end" in agent.received(), "the message of 11 at the model")
        until(are_idle, "the end of all turns")
    finally:
        served.close()
    found = site.json("inbox", "--session", session, "11")["messages"]
    assert [(one["from"], one["message"]) for one in found] == [("10", "the end")]


def _tool_line(target: str, message: str) -> str:
    return f"{USE} send_message {json.dumps({'target': target, 'message': message})}"


def _read(name: str) -> str:
    with open(os.path.join(_BUILTIN, name), encoding="utf-8") as file:
        return file.read()
