"""mas archive: Pack each stopped session into one compressed file, verify the file, then remove the original."""

from __future__ import annotations

import argparse

from mas.cli.command import add_sessions, each_session
from mas.cli.render import Render
from mas.cli.target import Arguments
from mas.model.views import SessionInfo

SUMMARY = "pack stopped sessions into verified files"
OF_STATUS = "stopped"
EXAMPLES = """
mas archive web
mas archive --all
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_sessions(parser, OF_STATUS)


def run(args: Arguments, out: Render) -> int:
    def say(session: SessionInfo) -> None:
        for warning in session.warnings:
            out.warn(warning)
        out.talk(f"Archived {session.tmux_session}; to bring it back: mas unarchive {session.session_id[:8]}")
        out.line(session.session_id)

    progress = out.progress("packing")
    return each_session(args, out, (OF_STATUS,), lambda mas, session_id: mas.archive(session_id, progress), say)
