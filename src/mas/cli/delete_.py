"""mas delete: Stop sessions and move them to the trash, from which undelete brings them back."""

from __future__ import annotations

import argparse

from mas.cli.command import Arguments, add_sessions, each_session, need_sessions, opened
from mas.cli.render import Render
from mas.model.errors import BadInput
from mas.model.views import SessionInfo

EXAMPLES = """
mas delete 550e8400
mas delete --all --yes
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_sessions(parser, "stopped and damaged")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def run(args: Arguments, out: Render) -> int:
    need_sessions(args)
    if not args.yes:
        what = "all stopped and damaged sessions" if args.all else ", ".join(_named(args))
        if not out.ask(f"Delete {what}? They go to the trash."):
            raise BadInput("Nothing was deleted", f"mas delete {' '.join(args.sessions) or '--all'} --yes")

    def say(session: SessionInfo) -> None:
        out.talk(f"Deleted {session.tmux_session}; back with: mas undelete {session.session_id[:8]}")
        out.line(session.session_id)

    return each_session(args, out, ("stopped", "error"), lambda mas, session_id: mas.delete(session_id), say)


def _named(args: Arguments) -> list[str]:
    mas = opened(args)
    # Not `show`: a damaged session cannot be shown, yet somebody may want to be rid of it.
    listed = {info.session_id: info for info in mas.list().sessions}
    found = [listed[mas.resolve(reference)] for reference in args.sessions]
    return [
        f"{session.tmux_session} ({session.status}{', ' + session.name if session.name else ''})" for session in found
    ]
