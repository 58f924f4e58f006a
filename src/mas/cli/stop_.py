"""mas stop: End every process of a session, including detached ones, and keep its directory."""

from __future__ import annotations

import argparse

from mas.cli.command import add_sessions, add_yes, at_stake, chosen, do_each, need_sessions, opened, try_each
from mas.cli.render import Render
from mas.cli.target import OPTIONAL_SESSION_HELP, Arguments, session_of
from mas.model.views import SessionDetail

SUMMARY = "end a session's programs, keep its directory"
OF_STATUS = "active"
EXAMPLES = """
mas stop
mas stop web 550e8400
mas stop --all --yes
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_sessions(parser, OF_STATUS, OPTIONAL_SESSION_HELP)
    add_yes(parser)


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    if not (args.sessions or args.named or args.all):
        args.sessions = [session_of(mas, None)]
    need_sessions(args)
    ids = chosen(mas, args, (OF_STATUS,), out)
    if args.dry_run:
        return try_each(mas, args, out, ids)
    # A script has no one to answer, so it is not asked.
    if ids and not args.yes and out.can_ask:
        what, work = at_stake(mas, ids)
        if (work or args.all) and not out.ask(f"Stop {what}?{f' {work}.' if work else ''}"):
            out.talk("Nothing was stopped")
            return 1

    def say(session: SessionDetail) -> None:
        out.talk(f"Stopped {session.tmux_session}; to bring it back: mas restore {session.session_id[:8]}")
        out.line(session.session_id)

    return do_each(mas, args, out, ids, lambda mas, session_id: mas.stop(session_id), say)
