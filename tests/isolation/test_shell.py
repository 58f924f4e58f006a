"""A shell behind the walls is one to work with."""

from __future__ import annotations

import os

import pytest

from tests.site import Site, until


def test_a_login_shell_finds_mas_and_writes_to_people(site: Site) -> None:
    done = site.mas("start", "--team", "solo", "--provider", "shell", env={"MAS_ISOLATION": "A"}, code=None)
    if done.returncode == 7:
        pytest.skip(f"this machine has no tier A: {done.stderr.strip().splitlines()[0]}")
    session = done.stdout.strip()
    site.mas("serve", "--detach", "--port", "0")
    try:
        # Most machines' own profile sets PATH again for it.
        site.mas("send", "--session", session, "00", "mas send person hello > sent 2>&1; echo $? > code")
        code = site.session(session, "unit", "00", "code")
        until(lambda: os.path.exists(code) and os.path.getsize(code), "the end of it")
        with open(site.session(session, "unit", "00", "sent"), encoding="utf-8") as file:
            said = file.read()
        messages = site.json("inbox", session)["messages"]
        assert [(one["from"], one["message"]) for one in messages[1:]] == [("00", "hello")], said
    finally:
        site.mas("serve", "--stop")
