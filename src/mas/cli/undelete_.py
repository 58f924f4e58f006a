"""mas undelete: Bring a deleted session back from the trash, stopped."""

from __future__ import annotations

import argparse

from mas.cli.command import ID_HELP, Arguments, opened
from mas.cli.render import Render

EXAMPLES = """
mas list --status deleted
mas undelete 550e8400
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="ID", help=ID_HELP)


def run(args: Arguments, out: Render) -> int:
    session = opened(args).undelete(args.session)
    for warning in session.warnings:
        out.warn(warning)
    out.talk(f"Brought back {session.tmux_session}; start it: mas restore {session.session_id[:8]}")
    out.result(session, lambda: out.line(session.session_id))
    return 0
