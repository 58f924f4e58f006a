"""mas restore: Bring stopped sessions back in the same directory with the same team."""

from __future__ import annotations

import argparse

from mas.cli.command import Arguments, add_no_server, add_sessions, each_session, summon_server
from mas.cli.render import Render, count
from mas.model.ids import SessionId
from mas.model.views import SessionDetail
from mas.service.mas import Mas

EXAMPLES = """
mas restore 550e8400
mas restore --all
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_sessions(parser, "stopped")
    add_no_server(parser)


def run(args: Arguments, out: Render) -> int:
    def say(session: SessionDetail) -> None:
        for warning in session.warnings:
            out.talk(warning)
        out.talk(f"Restored {session.tmux_session}: {count(len(session.agents), 'agent')}")
        out.line(session.session_id)

    def restore(mas: Mas, session_id: SessionId) -> SessionDetail:
        restored.append(session_id)
        return mas.restore(session_id)

    restored: list[SessionId] = []
    code = each_session(args, out, ("stopped",), restore, say)
    if restored:
        summon_server(args, out)
    return code
