"""mas archive: Pack stopped sessions, each into one compressed file that is read back before the original goes."""

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
        out.talk(f"Archived {session.tmux_session}; back with: mas unarchive {session.session_id[:8]}")
        out.line(session.session_id)

    progress = out.progress("packing")
    return each_session(args, out, (OF_STATUS,), lambda mas, session_id: mas.archive(session_id, progress), say)
