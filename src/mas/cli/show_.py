"""mas show: Show one session: where it is, how it is, and its agents as they are now."""

from __future__ import annotations

import argparse

from mas.cli.command import OPTIONAL_ID_HELP, Arguments, opened, session_of
from mas.cli.render import Render, count, when
from mas.model.views import AgentView, SessionDetail

EXAMPLES = """
mas show
mas show 550e8400
mas show mas-550e8400 --json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", nargs="?", metavar="ID", help=OPTIONAL_ID_HELP)


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    session = mas.show(session_of(mas, args.session))
    for warning in session.warnings:
        out.warn(warning)
    out.result(session, lambda: _text(session, out))
    return 0


def _words(agent: AgentView) -> str:
    if not agent.restarts or "restarted" in agent.state_text:
        return agent.state_text
    again = f"restarted {count(agent.restarts, 'time')}"
    return f"{agent.state_text}, {again}" if agent.state_text else again


def _text(session: SessionDetail, out: Render) -> None:
    facts = {
        "session": session.session_id,
        "name": session.name,
        "status": session.status,
        "created": when(session.created_at) + " UTC",
        "started": when(session.started_at) + " UTC",
        "directory": session.working_dir,
        "tmux": f"{session.tmux_session} on {session.tmux_socket}" if session.tmux_socket else session.tmux_session,
        "origin": session.origin,
    }
    for key, value in facts.items():
        if value:
            out.line(f"{key:<10} {value}")
    out.line()
    out.table(
        ("AGENT", "UNIT", "ROLE", "PROVIDER", "STATE", "PANE", ""),
        [
            (
                agent.id,
                agent.unit,
                agent.role,
                agent.provider,
                agent.state,
                agent.pane or "-",
                _words(agent),
            )
            for agent in session.agents
        ],
    )
