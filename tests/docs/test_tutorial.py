"""The tutorial is true: every command is run in one shell, and prints what is written there."""

from __future__ import annotations

import sys
from functools import partial

import httpx

from tests.docs.console import Reader, Step, reading, steps_of
from tests.site import Site, until
from tests.terminal import Terminal

# Looking may be repeated: agents answer in their own time, and the server comes in its own.
_LOOKS = ("mas list", "mas show", "mas output", "mas inbox", "mas approvals", "mas url")


def test_the_tutorial_prints_what_it_shows(bare: Site) -> None:
    del bare.env["MAS_WORKSPACE_ROOT"]
    bare.env |= {"MAS_SERVER": "auto", "MAS_DEMO_SPEED": "10"}
    with reading(bare) as reader:
        for step in steps_of("docs", "tutorial.md"):
            if step.command == "mas attach":
                _attach(bare, reader, step)
            elif step.command.startswith(_LOOKS):
                until(partial(reader.sees, step), step.command)
            else:
                assert reader.sees(step), (step.command, reader.last)
            if step.command == "mas url":
                _open(reader.last.split()[-1])


def _attach(site: Site, reader: Reader, step: Step) -> None:
    """Look at the team in tmux as a person would, and leave it."""
    workspace = reader.types("pwd").strip().replace("/home/you", site.home)
    with Terminal([sys.executable, "-m", "mas", "attach"], site.env, workspace) as terminal:
        terminal.until("00>")
        # One key after the other: what comes at once tmux takes for pasted text.
        terminal.type("\x02")
        until(lambda: "1" in site.tmux("list-clients", "-F", "#{client_prefix}").split(), "the first key")
        terminal.type("d")
        assert reader.mine(step.shown.strip()) in terminal.end()


def _open(address: str) -> None:
    """The address signs in the person who opens it, and shows the page."""
    with httpx.Client(trust_env=False, follow_redirects=True, timeout=60) as browser:
        page = browser.get(address)
        assert (page.status_code, page.url.path) == (200, "/")
        assert browser.get(page.url.join("/sessions")).json()["total"] == 1
