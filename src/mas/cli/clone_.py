"""mas clone: Copy a session's files and configuration into a new, stopped session."""

from __future__ import annotations

import argparse

from mas.cli.command import add_no_server, opened, summon_server
from mas.cli.render import Render
from mas.cli.target import Arguments, add_session, given_session, session_of

SUMMARY = "copy a session into a new one"
EXAMPLES = """
mas clone web --name second-try
mas clone web --start
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_session(parser)
    parser.add_argument("--name", help="a name for the new session (default: the old name with a number)")
    parser.add_argument("--start", action="store_true", help="start the new session at once")
    add_no_server(parser)


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    source = session_of(mas, given_session(args))
    session = mas.clone(source, args.name, args.start, out.progress("copying"))
    for warning in session.warnings:
        out.warn(warning)
    next_step = "" if args.start else f"; start it: mas restore {session.session_id[:8]}"
    out.talk(f"Cloned {source[:8]} into {session.tmux_session}{next_step}")
    out.result(session, lambda: out.line(session.session_id))
    if args.start:
        summon_server(args, out)
    return 0
