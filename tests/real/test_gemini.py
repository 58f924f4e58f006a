"""Gemini CLI, the real program, against a model on loopback."""

from __future__ import annotations

import os

import pytest

from tests.real.agent import (
    Agent,
    Kind,
    hands_on_by_tools,
    names_files_without_reading_them,
    works_from_start_to_restore,
)
from tests.real.mock import Mock
from tests.site import Site

_SETTINGS = "templates/gemini-settings.json"


@pytest.fixture
def gemini(place: Site, model: Mock) -> Agent:
    # Its title does not say what it asks for.
    environ = (("GEMINI_API_KEY", "not-a-key"), ("GOOGLE_GEMINI_BASE_URL", model.url))
    return Agent(place, model, Kind("gemini", environ, r"permission: ✋ +Action Required \(00\)"))


def test_gemini_works_from_start_to_restore(gemini: Agent) -> None:
    works_from_start_to_restore(gemini)


def test_that_gemini_wants_a_key_is_known(gemini: Agent) -> None:
    del gemini.site.env["GEMINI_API_KEY"]
    gemini.start()
    gemini.begins_with("auth")


def test_that_gemini_wants_a_way_to_sign_in_is_known(gemini: Agent) -> None:
    del gemini.site.env["GEMINI_API_KEY"]
    gemini.own_provider((_SETTINGS, '"selectedType": "gemini-api-key"', ""))
    gemini.start()
    gemini.begins_with("auth")


def test_that_gemini_wants_to_trust_its_directory_is_known(gemini: Agent) -> None:
    gemini.own_provider((_SETTINGS, '"enabled": false', '"enabled": true'), ("gemini.toml", '"--skip-trust", ', ""))
    gemini.start()
    gemini.begins_with("trust")


def test_gemini_takes_a_file_that_a_message_names_for_text(gemini: Agent) -> None:
    names_files_without_reading_them(
        gemini, "see @note.txt, me@x.org, @note.txt", r"see \@note.txt, me\@x.org, \@note.txt"
    )


def test_a_dialog_that_geminis_title_does_not_tell_of_is_left_to_a_person(gemini: Agent) -> None:
    # So that it sees a file elsewhere, and a message's mention of that is one.
    gemini.site.env["MAS_ISOLATION"] = "off"
    gemini.own_provider(("gemini.toml", "mention  ", "# mention"))
    gemini.start()
    gemini.becomes("idle")
    outside = os.path.join(gemini.site.directory, "outside.txt")
    with open(outside, "w", encoding="utf-8") as file:
        file.write("words of the file\n")
    gemini.site.mas("send", "--session", gemini.session, "--wait", "30", "00", f"look at @{outside} please")
    gemini.becomes("blocked")
    shown = gemini.shown()
    assert (shown["stateText"].split(":")[0], shown["stateSource"]) == ("dialog", "composer"), shown
    sent = gemini.site.json("send", "--session", gemini.session, "00", "Another message")
    assert [delivery["state"] for delivery in sent["deliveries"]] == ["queued"], sent
    (asked,) = gemini.site.json("approvals")["approvals"]
    assert "Do you want to allow this read?" in asked["screen"]
    assert gemini.model.said() == []
    gemini.press("Down")
    gemini.until(lambda: "● 2. No" in gemini.screen(), "the answer of a person")
    gemini.press("Enter")

    def both_arrived() -> bool:
        gemini.site.mas("inbox", gemini.session)
        return "Another message" in gemini.received()

    gemini.until(both_arrived, "the other message")
    assert not any("words of the file" in exchange.asked.everything for exchange in gemini.model.exchanges)


def test_no_message_stays_in_geminis_input_line(gemini: Agent) -> None:
    gemini.start()
    gemini.becomes("idle")
    with open(gemini.file("note.txt"), "w", encoding="utf-8") as file:
        file.write("a note\n")
    gemini.send("so many\n" + "words " * 130 + "🙂")
    # It offers files and agents behind each of these.
    gemini.send("please look at @note", as_=r"please look at \@note")
    gemini.send("see @note\\", as_="see \\@note\\")
    gemini.send("who is @")


def test_gemini_hands_a_message_on_by_the_tools_of_mas(gemini: Agent) -> None:
    hands_on_by_tools(gemini)
