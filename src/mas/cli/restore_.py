"""mas restore: Bring stopped sessions back in the same directory with the same team."""

from __future__ import annotations

import argparse

from mas.cli.command import Arguments, add_sessions, each_session
from mas.cli.render import Render, count
from mas.model.views import SessionDetail

EXAMPLES = """
mas restore 550e8400
mas restore --all
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_sessions(parser, "stopped")


def run(args: Arguments, out: Render) -> int:
    def say(session: SessionDetail) -> None:
        for warning in session.warnings:
            out.talk(warning)
        out.talk(f"Restored {session.tmux_session}: {count(len(session.agents), 'agent')}")
        out.line(session.session_id)

    return each_session(args, out, ("stopped",), lambda mas, session_id: mas.restore(session_id), say)
