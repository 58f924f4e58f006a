"""mas restore: Start stopped sessions again, in the same directory with the same team."""

from __future__ import annotations

import argparse

from mas.cli.command import Arguments, add_no_server, add_sessions, each_session, opened, summon_server
from mas.cli.render import Render, count
from mas.model.errors import BadInput
from mas.model.ids import SessionId
from mas.model.views import SessionDetail
from mas.service.mas import Mas

SUMMARY = "start stopped sessions again"
OF_STATUS = "stopped"
EXAMPLES = """
mas restore web
mas restore --all
mas restore --all --stopped
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_sessions(parser, "lost (tmux ended, but they were not stopped)")
    parser.add_argument("--stopped", action="store_true", help="with --all: also sessions that were stopped on purpose")
    add_no_server(parser)


def run(args: Arguments, out: Render) -> int:
    if args.stopped and not args.all:
        raise BadInput("--stopped works only with --all", "mas restore --all --stopped")

    def say(session: SessionDetail) -> None:
        for warning in session.warnings:
            out.talk(warning)
        out.talk(f"Restored {session.tmux_session}: {count(len(session.agents), 'agent')}")
        out.line(session.session_id)

    def restore(mas: Mas, session_id: SessionId) -> SessionDetail:
        restored.append(session_id)
        return mas.restore(session_id)

    restored: list[SessionId] = []
    code = each_session(args, out, ("stopped",) if args.stopped else ("lost",), restore, say)
    if args.all and not args.stopped:
        _name_stopped(args, out)
    if restored:
        summon_server(args, out)
    return code


def _name_stopped(args: Arguments, out: Render) -> None:
    """Say how to restore the sessions that were stopped on purpose; they were not touched."""
    left = [session for session in opened(args).list("stopped").sessions if not session.lost]
    if left:
        were = "was" if len(left) == 1 else "were"
        out.talk(f"{count(len(left), 'session')} {were} stopped on purpose; those too: mas restore --all --stopped")
