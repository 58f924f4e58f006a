"""mas restart-agent: Run an agent that ended again in its own pane, going on with its conversation where it can."""

from __future__ import annotations

import argparse

from mas.cli.command import Arguments, add_session_and_agent, opened, session_and_agent
from mas.cli.render import Render
from mas.model.errors import BadInput
from mas.settings import inside

EXAMPLES = """
mas restart-agent --force 00
mas restart-agent 550e8400 21 --force
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_session_and_agent(parser, "the agent (two digits)")
    parser.add_argument("--force", action="store_true", help="end it first if it still runs")


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    session_id, agent = session_and_agent(mas, args)
    if agent is None:
        raise BadInput("Which agent?", f"mas show {session_id[:8]}; mas restart-agent {session_id[:8]} 00")
    here = inside()
    if (here.session, here.agent) == (session_id, agent):
        raise BadInput(f"This is agent {agent}: it would be ended before it could be started again")
    found = mas.restart_agent(session_id, agent, args.force)
    for warning in found.warnings:
        out.talk(warning)
    out.talk(f"Restarted agent {agent} in {found.agent.pane}")
    if out.as_json:
        out.result(found, lambda: None)
    return 0
