"""mas show: Show one session: its status, its directory, and the state of each agent."""

from __future__ import annotations

import argparse

from mas.cli.command import opened
from mas.cli.file_view import show_view
from mas.cli.listing import status_of
from mas.cli.render import Render, count, when
from mas.cli.target import Arguments, add_session, given_session, session_of
from mas.model.agents import AgentList
from mas.model.isolation import Isolation, Mode, NetworkMode, SessionLimits, shown_gaps, shown_limits, shown_policy
from mas.model.principal import named_by
from mas.model.state import NO_REPORTS
from mas.model.views import AgentView, SessionDetail

SUMMARY = "show one session and its agents"
FOR_AGENTS = "server"
EXAMPLES = """
mas show
mas show web
mas show mas-550e8400 --json
mas show web --view
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_session(parser)
    parser.add_argument("--view", action="store_true", help="show what its agents see of the file system, and why")


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    session_id = session_of(mas, given_session(args))
    if args.view:
        return show_view(args, out, session_id)
    if args.server and named_by(args.server.token or ""):
        # An agent's token is good for the team, not for where and how it is kept.
        agents = mas.agents(session_id)
        out.result(AgentList(agents), lambda: _agents(agents, out))
        return 0
    session = mas.show(session_id)
    for warning in session.warnings:
        out.warn(warning)
    out.result(session, lambda: _text(session, out))
    return 0


def _text(session: SessionDetail, out: Render) -> None:
    facts = {
        "session": session.session_id,
        "name": session.name,
        "status": _status(session),
        "created": when(session.created_at) + " UTC",
        "started": when(session.started_at) + " UTC",
        "directory": session.working_dir,
        "tmux": f"{session.tmux_session} on {session.tmux_socket}" if session.tmux_socket else session.tmux_session,
        "origin": session.origin,
        "isolation": session.isolation and _isolation(session.isolation),
        "policy": session.isolation and shown_policy(session.isolation.policy),
        "limits": _limits(session.limits),
    }
    for key, value in facts.items():
        if value:
            out.line(f"{key:<10} {value}")
    out.line()
    _agents(session.agents, out)


def _status(session: SessionDetail) -> str:
    """`lost since 2026-01-01 10:00:00 UTC: its tmux session was gone`."""
    words = status_of(session)
    if session.stopped_at:
        words += f" since {when(session.stopped_at)} UTC"
    return f"{words}: {session.reason}" if session.reason else words


def _isolation(isolation: Isolation) -> str:
    if isolation.policy.enforce is Mode.OFF:
        return "off"
    words = f"tier {isolation.tier}" + (f" ({isolation.how})" if isolation.how else "")
    if isolation.account:
        words += f" as {isolation.account}"
    if isolation.network != NetworkMode.SHARED:
        words += f", network {isolation.network}"
    return "; ".join((words, *shown_gaps(isolation)))


def _limits(limits: SessionLimits) -> str:
    whole, each = shown_limits(limits.session), shown_limits(limits.agent)
    return "; ".join(filter(None, (whole, each and f"each agent: {each}")))


def _agents(agents: tuple[AgentView, ...], out: Render) -> None:
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
            for agent in agents
        ],
    )


def _words(agent: AgentView) -> str:
    """What MAS knows of its state, else what it reports itself; and how often it was restarted."""
    text = agent.state_text
    if agent.report and text in ("", NO_REPORTS):
        text = agent.report.partition("\n")[0]
    again = f"restarted {count(agent.restarts, 'time')}" if agent.restarts else ""
    return ", ".join(filter(None, (text, again)))
