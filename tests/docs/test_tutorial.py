"""The tutorial is true: every command is run in one shell, and prints what is written there."""

from __future__ import annotations

import sys
from functools import partial

import httpx

from tests.docs.console import Reader, Step, reading, steps_of
from tests.page_key import PageKey
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
    """The address shows the page, which signs in the person who opens it."""
    where, _, code = address.partition("/login#code=")
    with httpx.Client(base_url=where, trust_env=False, timeout=60) as browser:
        assert browser.get("/login").status_code == 200
        bearer = {"Authorization": f"Bearer {PageKey(browser, code).sign_in()}"}
        assert browser.get("/sessions", headers=bearer).json()["total"] == 1
