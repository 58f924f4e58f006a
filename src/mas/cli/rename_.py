"""mas rename: Give a session another name. Its agents keep running, and nothing else changes."""

from __future__ import annotations

import argparse

from mas.cli.command import opened
from mas.cli.render import Render
from mas.cli.target import SESSION_HELP, Arguments, whole

SUMMARY = "give a session another name"
EXAMPLES = """
mas rename 550e8400 web
mas rename web shop
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help=SESSION_HELP)
    parser.add_argument("name", metavar="NEW-NAME", help="the new name; only a deleted session may have the same")


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    session = mas.rename(mas.resolve(whole(args.session)), args.name)
    out.talk(f"Renamed {session.tmux_session} to {session.name}")
    out.result(session, lambda: out.line(session.session_id))
    return 0
