"""mas unarchive: Bring an archived session back as a stopped one."""

from __future__ import annotations

import argparse

from mas.cli.command import ID_HELP, Arguments, opened
from mas.cli.render import Render

EXAMPLES = """
mas unarchive 550e8400
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="ID", help=ID_HELP)


def run(args: Arguments, out: Render) -> int:
    session = opened(args).unarchive(args.session, out.progress("unpacking"))
    for warning in session.warnings:
        out.warn(warning)
    out.talk(f"Brought back {session.tmux_session}; start it: mas restore {session.session_id[:8]}")
    out.result(session, lambda: out.line(session.session_id))
    return 0
