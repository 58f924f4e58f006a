"""Aider, the real program, against a model on loopback.

It is not among the pinned programs, which are npm's; it is tried where somebody has installed it beside them.
"""

from __future__ import annotations

import os

import pytest

from tests.real.agent import Agent, Kind
from tests.real.mock import Mock
from tests.site import REPOSITORY, Site

_PLACE = os.path.join(REPOSITORY, ".real", "aider", "bin")
_HOW = "python3 -m venv .real/aider && .real/aider/bin/pip install aider-chat==0.86.2"


@pytest.fixture
def aider(place: Site, model: Mock) -> Agent:
    if not os.access(os.path.join(_PLACE, "aider"), os.X_OK):
        pytest.skip(f"no aider: {_HOW}")
    place.env["PATH"] = f"{_PLACE}:{place.env['PATH']}"
    environ = (("OPENAI_API_KEY", "sk-not-a-key"), ("OPENAI_API_BASE", f"{model.url}/v1"))
    return Agent(place, model, Kind("aider", environ, ""))


def test_aider_starts_without_a_question_and_goes_on_with_its_conversation(aider: Agent) -> None:
    aider.session = aider.site.start("--team", "solo", "--provider", "aider", "--model", "openai/mock")
    aider.becomes("idle")
    asked = aider.site.json("ask", "--session", aider.session, "00", "A first question\nin two lines")
    assert (asked["source"], asked["output"].split()[0]) == ("transcript", "MOCK_REPLY")
    aider.site.mas("stop", aider.session)
    assert "Started fresh" not in aider.site.mas("restore", aider.session).stderr
    aider.becomes("idle")
    aider.site.json("ask", "--session", aider.session, "00", "A second question")
    sent = aider.model.exchanges[-1].asked.everything
    assert "A first question" in sent
    turns = aider.site.json("transcript", aider.session, "00")["turns"]
    prompts = [turn["prompt"].split("\n", 1)[1] for turn in turns]
    assert prompts == ["A first question\nin two lines", "A second question"]
    assert all(turn["answer"].startswith("MOCK_REPLY") and turn["tokens"]["output"] for turn in turns)


def test_no_message_stays_in_aiders_input_line(aider: Agent) -> None:
    aider.session = aider.site.start("--team", "solo", "--provider", "aider", "--model", "openai/mock")
    aider.becomes("idle")
    # The last of them is the beginning of a file's name.
    for text in ("a\ttab", "\n".join(f"line {number}" for number in range(40)), "update role"):
        asked = aider.site.json("ask", "--session", aider.session, "00", "-", input=text)
        assert asked["output"].split()[0] == "MOCK_REPLY"
        assert text in aider.model.exchanges[-1].asked.user[-1]
