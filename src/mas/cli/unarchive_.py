"""mas unarchive: Bring archived sessions back as stopped ones."""

from __future__ import annotations

import argparse

from mas.cli.command import add_sessions, each_session, gone
from mas.cli.render import Render
from mas.cli.target import Arguments
from mas.model.views import SessionDetail

SUMMARY = "bring an archived session back"
OF_STATUS = "archived"
EXAMPLES = """
mas unarchive web
mas unarchive --all
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_sessions(parser, OF_STATUS)


def run(args: Arguments, out: Render) -> int:
    def say(session: SessionDetail) -> None:
        for warning in session.warnings:
            out.warn(warning)
        out.talk(f"Brought back {session.tmux_session}; start it: mas restore {session.session_id[:8]}")
        out.line(session.session_id)

    progress = out.progress("unpacking")

    return each_session(
        args, out, (OF_STATUS,), lambda mas, session_id: mas.unarchive(session_id, progress), say, gone(OF_STATUS)
    )
