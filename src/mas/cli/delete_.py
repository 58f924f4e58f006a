"""mas delete: Stop sessions and move them to the trash; mas undelete brings them back."""

from __future__ import annotations

import argparse
import shlex

from mas.cli.command import add_sessions, add_yes, at_stake, chosen, do_each, need_sessions, opened, try_each
from mas.cli.render import Render
from mas.cli.target import Arguments
from mas.model.errors import BadInput
from mas.model.ids import SessionId
from mas.model.views import SessionInfo
from mas.service.mas import Mas

SUMMARY = "move sessions to the trash"
EXAMPLES = """
mas delete web
mas delete --all --yes
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_sessions(parser, "stopped or damaged (status error)")
    add_yes(parser)


def run(args: Arguments, out: Render) -> int:
    need_sessions(args)
    mas = opened(args)
    ids = chosen(mas, args, ("stopped", "error"), out)
    if args.dry_run:
        return try_each(mas, args, out, ids)
    if ids and not args.yes:
        if not out.can_ask:
            raise BadInput("Confirmation is needed, and there is no terminal", f"mas delete {_again(args)} --yes")
        if not out.ask(_question(ids, mas)):
            out.talk("Nothing was deleted")
            return 1

    def say(session: SessionInfo) -> None:
        out.talk(f"Deleted {session.tmux_session}; to bring it back: mas undelete {session.session_id[:8]}")
        out.line(session.session_id)

    return do_each(mas, args, out, ids, lambda mas, session_id: mas.delete(session_id), say)


def _question(ids: list[SessionId], mas: Mas) -> str:
    what, work = at_stake(mas, ids)
    return f"Delete {what}? {f'{work}. ' if work else ''}{'They go' if len(ids) > 1 else 'It goes'} to the trash."


def _again(args: Arguments) -> str:
    return "--all" if args.all else " ".join(map(shlex.quote, args.sessions))
