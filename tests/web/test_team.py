"""A team at work: terminals, messages, approvals, recordings."""

from __future__ import annotations

import os
import re

import pytest
from playwright.sync_api import expect

from tests.site import until
from tests.web.room import Room


def test_what_is_typed_is_echoed(looking: Room) -> None:
    looking.open("21")
    looking.type("hello from the page")
    expect(looking.terminal()).to_contain_text("21> hello from the page")
    looking.page.keyboard.press("Enter")
    expect(looking.terminal()).to_contain_text("(demo) got 1 line, 19 bytes")
    looking.page.keyboard.press("Control+]")
    looking.page.keyboard.press("Escape")
    expect(looking.tile("21").locator(".xterm-rows")).to_contain_text("(demo) got 1 line, 19 bytes")


def test_agents_are_chosen_by_keys(looking: Room) -> None:
    keys = looking.page.keyboard
    for _ in range(3):
        keys.press("j")
    keys.press("Enter")
    expect(looking.page.get_by_role("heading", name="21 ")).to_be_visible()
    keys.press("Control+]")
    keys.press("j")
    expect(looking.page.get_by_role("heading", name="22 ")).to_be_visible()
    keys.press("Control+]")
    keys.press("Control+k")
    keys.type("shop messages")
    keys.press("Enter")
    expect(looking.page.get_by_role("region", name="Timeline")).to_be_visible()


def test_a_broadcast_is_acknowledged_by_all(looking: Room) -> None:
    looking.page.keyboard.press("m")
    looking.type("Stand-up in five minutes\nbring numbers")
    looking.page.keyboard.press("Control+Enter")
    looking.notice("Sent to")
    looking.page.get_by_role("link", name="Messages", exact=True).click()
    message = looking.page.locator(".message", has_text="bring numbers").first
    expect(message).to_contain_text("you → all")
    expect(message.locator(".is-acknowledged")).to_contain_text("acknowledged 5")
    # Further ones move along the tree; who wants no motion sees where they arrive.
    looking.page.emulate_media(reduced_motion="reduce")
    looking.page.keyboard.press("m")
    looking.type("Once more")
    looking.page.get_by_role("combobox", name="To", exact=True).select_option("development")
    looking.page.get_by_role("button", name="Send").click()
    dot = looking.page.locator(".organisation .dot").first
    expect(dot).to_have_css("offset-distance", "100%")
    expect(dot).to_have_css("animation-name", "none")
    expect(looking.page.locator(".message", has_text="Once more")).to_contain_text("acknowledged 4")


def test_numbers_are_kept_while_one_looks_elsewhere(looking: Room, team: str) -> None:
    looking.go("sessions", team, "numbers")
    page = looking.page
    for title in ("CPU (cores)", "Memory", "Disk", "Messages per minute"):
        expect(page.locator("figure", has_text=title).locator("canvas")).to_be_visible()
    expect(page.locator("figure", has_text="Agents by state")).to_contain_text("idle 5")
    expect(page.locator("table.sessions tbody tr")).to_have_count(5)
    memory = page.locator("figure", has_text="Memory").locator("figcaption")
    since = memory.inner_text()
    looking.go("server")
    for title in ("CPU of the machine", "Memory of the machine", "Disk of the machine", "Messages per minute"):
        expect(page.locator("figure", has_text=title).locator("canvas")).to_be_visible()
    expect(page.get_by_text("ok, version")).to_be_visible()
    looking.go("sessions", team, "numbers")
    expect(memory).to_have_text(since)


def test_an_agent_that_asks_is_answered(looking: Room) -> None:
    looking.open("23")
    looking.type("/ask May I run the tests?\n")
    page = looking.page
    expect(page.get_by_role("banner").get_by_role("link", name="Approvals 1")).to_be_visible()
    page.keyboard.press("Control+]")
    looking.go("approvals")
    asking = page.locator(".asking", has_text="23")
    expect(asking).to_contain_text("run the tests")
    expect(asking).to_contain_text("osc7501")
    asking.get_by_role("button", name="Approve").click()
    looking.notice("Approved: 23")
    expect(page.get_by_text("No agent is waiting for an answer.")).to_be_visible()


def test_reading_further_up_is_not_disturbed(looking: Room, team: str) -> None:
    looking.open("22")
    looking.type("/flood 1\nafter the flood\n")
    expect(looking.terminal()).to_contain_text("(demo) got 1 line, 15 bytes")
    page = looking.page
    page.locator(".whole .xterm").hover()
    page.mouse.wheel(0, -3000)
    first = "document.querySelector('.whole .xterm-rows').innerText"
    until(lambda: "(demo) got" not in page.evaluate(first))
    before = page.evaluate(first)
    looking.served.site.mas("send", "--session", team, "22", "something more")
    message = page.locator(".conversation .message", has_text="something more")
    expect(message.locator(".is-acknowledged")).to_be_visible()
    assert page.evaluate(first) == before


def test_a_search_finds_what_was_printed(looking: Room) -> None:
    looking.open("20")
    looking.type("needle in a haystack\n")
    expect(looking.terminal()).to_contain_text("(demo) got")
    looking.page.keyboard.press("Control+Shift+F")
    looking.page.get_by_label("Search in the terminal").fill("needle in")
    expect(looking.page.get_by_text("1 of 1")).to_be_visible()


def test_a_recording_is_replayed(looking: Room, team: str) -> None:
    looking.open("21")
    looking.type("said a while later\n")
    expect(looking.terminal()).to_contain_text("(demo) got 1 line, 18 bytes")
    looking.go("sessions", team, "files", "logs", "agent-21.cast")
    slider = looking.page.get_by_label("Position in the recording")
    expect(looking.terminal()).to_contain_text("said a while later")
    slider.fill("0")
    expect(looking.terminal()).not_to_contain_text("said a while later")
    looking.page.get_by_label("Speed").select_option("64")
    looking.page.get_by_role("button", name="Play").click()
    expect(looking.terminal()).to_contain_text("said a while later")
    # The same by keys.
    slider.focus()
    keys = looking.page.keyboard
    keys.press("Home")
    expect(looking.terminal()).not_to_contain_text("said a while later")
    keys.press("Space")
    expect(looking.terminal()).to_contain_text("said a while later")
    expect(looking.page.get_by_role("button", name="Play")).to_be_visible()
    keys.press("Home")
    keys.press("-")
    expect(looking.page.get_by_label("Speed")).to_have_value("16")
    keys.press("End")
    expect(looking.terminal()).to_contain_text("said a while later")


def test_a_long_recording_comes_in_pieces_and_is_played_meanwhile(looking: Room, team: str) -> None:
    path = looking.served.site.session(team, "logs", "agent-90.cast")
    line = "".join(f'[{number}.5, "o", "{number} {"x" * 900}\\r\\n"]\n' for number in range(3000))
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"version": 2, "width": 80, "height": 24}\n' + line)
    asked: list[str] = []
    looking.page.on("request", lambda request: asked.append(request.url) if "/file?" in request.url else None)
    looking.go("sessions", team, "files", "logs", "agent-90.cast")
    expect(looking.terminal()).to_contain_text("2999 xxx")
    offsets = [re.findall(r"offset=(\d+)", url) for url in asked]
    assert offsets == [["0"], ["1048576"], ["2097152"]]
    looking.page.get_by_label("Position in the recording").fill("1500")
    expect(looking.terminal()).to_contain_text("1499 xxx")
    expect(looking.terminal()).not_to_contain_text("1501 xxx")


def test_keys_are_listed_and_mean_what_has_the_focus(looking: Room) -> None:
    keys, page = looking.page.keyboard, looking.page
    keys.press("?")
    listed = page.get_by_role("dialog", name="Keys")
    expect(listed).to_contain_text("go to a session, an agent or a page")
    keys.press("Escape")
    expect(listed).to_have_count(0)
    # A message is for the agent that is chosen, and stays for it while it is not sent.
    target, chosen = page.locator(".target select"), looking.tile("21").get_by_role("link")
    for _ in range(3):
        keys.press("j")
    for key in ("m", "Control+k"):
        keys.press(key)
        expect(page.get_by_role("dialog")).to_be_visible()
        keys.press("Escape")
        expect(chosen).to_be_focused()
    keys.press("m")
    target.select_option("managers")
    keys.press("Escape")
    expect(chosen).to_be_focused()
    keys.press("m")
    expect(target).to_have_value("21")
    target.select_option("20")
    page.get_by_label("Message", exact=True).fill("half a thought")
    keys.press("Escape")
    looking.open("22")
    page.get_by_label("Message to 22").fill("sent at once")
    keys.press("Control+Enter")
    looking.notice("Sent to 22")
    page.get_by_role("button", name="Message m").click()
    expect(target).to_have_value("20")
    page.get_by_label("Message", exact=True).fill("")
    keys.press("Escape")
    # A button that has the focus is pressed by Enter.
    page.get_by_role("button", name="Search").focus()
    keys.press("Enter")
    expect(page.get_by_label("Search in the terminal")).to_be_focused()
    keys.press("Escape")
    keys.press("Control+]")
    keys.press("Escape")
    # Back at the team, one is where one was.
    expect(looking.tile("22").get_by_role("link")).to_be_focused()


# Asks the dialog to close as Escape does, and presses the key before the browser gets to do anything else.
CLOSE_AND_PRESS = """async ([key, ctrlKey]) => {
  document.querySelector("dialog[open]").requestClose();
  await null;
  const pressed = new KeyboardEvent("keydown", { key, ctrlKey, bubbles: true, cancelable: true });
  document.activeElement.dispatchEvent(pressed);
}"""


@pytest.mark.parametrize(("key", "name"), [("m", "Write a message"), ("Control+k", "Go to"), ("?", "Keys")])
def test_a_key_that_is_pressed_as_a_dialog_closes_opens_the_next(looking: Room, key: str, name: str) -> None:
    keys, dialog = looking.page.keyboard, looking.page.get_by_role("dialog", name=name)
    keys.press(key)
    expect(dialog).to_be_visible()
    looking.page.evaluate(CLOSE_AND_PRESS, [key.removeprefix("Control+"), key.startswith("Control+")])
    # What closes late would have closed it by then.
    for _ in range(5):
        looking.page.wait_for_function("() => new Promise((done) => requestAnimationFrame(() => done(true)))")
    expect(dialog).to_be_visible()
    for _ in range(5):
        keys.press("Escape")
        keys.press(key)
        expect(dialog).to_be_visible()
    keys.press("Escape")
    expect(dialog).to_have_count(0)


def test_files_of_any_name_and_kind_open(looking: Room, team: str) -> None:
    page, unit = looking.page, looking.served.site.session(team, "unit", "22")
    lines = "".join(f"line {number}\n" for number in range(100_000))
    for name, data in {
        "Makefile": b"all: bread\n",
        "oven.d/temperature": b"220\n",
        "loaf.bin": bytes(range(256)) * 20_000,
        "long.txt": lines.encode(),
        "empty": b"",
    }.items():
        os.makedirs(os.path.dirname(os.path.join(unit, name)), exist_ok=True)
        with open(os.path.join(unit, name), "wb") as file:
            file.write(data)
    content = page.get_by_label("Content")
    looking.go("sessions", team, "files", "unit", "22")
    page.get_by_role("link", name="Makefile", exact=True).click()
    expect(content).to_have_text("all: bread")
    # A folder with a dot is a folder.
    page.get_by_role("link", name="oven.d/", exact=True).click()
    page.get_by_role("link", name="temperature", exact=True).click()
    expect(content).to_have_text("220")
    looking.go("sessions", team, "files", "unit", "22", "loaf.bin")
    expect(page.get_by_text("This is not a text file")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    assert os.path.getsize(download.value.path()) == 256 * 20_000
    looking.go("sessions", team, "files", "unit", "22", "long.txt")
    expect(page.get_by_text("Large: this is 0 B to 524 kB of 1.1 MB.")).to_be_visible()
    expect(content).to_contain_text("line 999\n")
    page.get_by_role("button", name="Next").click()
    expect(content).not_to_contain_text("line 999\n")
    page.get_by_role("button", name="Next").click()
    expect(content).to_contain_text("line 99999")
    expect(page.get_by_role("button", name="Next")).to_be_disabled()
    looking.go("sessions", team, "files", "unit", "22", "empty")
    expect(page.get_by_text("This file is empty.")).to_be_visible()
    looking.go("sessions", team, "files", "unit", "22", "absent")
    expect(page.get_by_text("absent no longer exists.")).to_be_visible()


def test_files_are_read(looking: Room, team: str) -> None:
    looking.go("sessions", team, "files")
    for name in ("unit/", "21/", "ROLE.md"):
        looking.page.get_by_role("link", name=name, exact=True).click()
    expect(looking.page.locator(".markdown")).to_be_visible()
    role = looking.served.site.session(team, "unit", "21", "ROLE.md")
    with open(role, "a", encoding="utf-8") as file:
        file.write("A line of its own\n")
    looking.page.get_by_role("button", name="Reload").click()
    looking.page.get_by_role("button", name="Difference from template").click()
    expect(looking.page.locator(".diff .is-new")).to_have_text("+ A line of its own")
    with looking.page.expect_download() as download:
        looking.page.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == "ROLE.md"
