"""mas stop: End every process of a session, also detached ones; keep its directory and all it holds."""

from __future__ import annotations

import argparse

from mas.cli.command import OPTIONAL_ID_HELP, Arguments, add_sessions, each_session, opened, session_of
from mas.cli.render import Render
from mas.model.views import SessionDetail

EXAMPLES = """
mas stop
mas stop 550e8400 9b1deb4d
mas stop --all
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_sessions(parser, "active", OPTIONAL_ID_HELP)


def run(args: Arguments, out: Render) -> int:
    if not args.sessions and not args.all:
        args.sessions = [session_of(opened(args), None)]

    def say(session: SessionDetail) -> None:
        out.talk(f"Stopped {session.tmux_session}; back with: mas restore {session.session_id[:8]}")
        out.line(session.session_id)

    return each_session(args, out, ("active",), lambda mas, session_id: mas.stop(session_id), say)
