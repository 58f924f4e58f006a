"""mas undelete: Bring deleted sessions back from the trash, stopped."""

from __future__ import annotations

import argparse

from mas.cli.command import add_sessions, bring_back
from mas.cli.render import Render
from mas.cli.target import Arguments

SUMMARY = "bring a deleted session back"
OF_STATUS = "deleted"
EXAMPLES = """
mas list --status deleted
mas undelete web
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_sessions(parser, OF_STATUS)


def run(args: Arguments, out: Render) -> int:
    return bring_back(args, out, OF_STATUS, lambda mas, session_id: mas.undelete(session_id))
