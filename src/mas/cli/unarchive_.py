"""mas unarchive: Bring archived sessions back as stopped ones."""

from __future__ import annotations

import argparse

from mas.cli.command import add_sessions, bring_back
from mas.cli.render import Render
from mas.cli.target import Arguments

SUMMARY = "bring an archived session back"
OF_STATUS = "archived"
EXAMPLES = """
mas unarchive web
mas unarchive --all
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_sessions(parser, OF_STATUS)


def run(args: Arguments, out: Render) -> int:
    progress = out.progress("unpacking")
    return bring_back(args, out, OF_STATUS, lambda mas, session_id: mas.unarchive(session_id, progress))
