"""mas restart-agent: Start an agent's program again in its own pane, and resume its conversation if it can."""

from __future__ import annotations

import argparse

from mas.cli.command import add_yes, each_agent, opened, work_of
from mas.cli.render import Render
from mas.cli.target import Arguments, add_agents, agents_of
from mas.model.agents import RestartedAgent
from mas.model.errors import BadInput
from mas.settings import inside

SUMMARY = "start an agent again after it exited"
OF_STATUS = "active"
EXAMPLES = """
mas restart-agent --force 00
mas restart-agent web:21 web:22 --force
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_agents(parser, "one or more agents (two digits each)")
    parser.add_argument("--force", action="store_true", help="end its program first if that is still running")
    add_yes(parser)


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    agents = agents_of(mas, args)
    here = inside()
    if (here.session, here.agent) in agents:
        raise BadInput(f"Agent {here.agent} cannot restart itself: it would be ended before it could start again")
    if args.force and not args.yes and out.can_ask and (work := work_of(mas, agents)):
        named = ", ".join(f"{session_id[:8]}:{agent}" for session_id, agent in agents)
        if not out.ask(f"End and restart {named}? {work}."):
            out.talk("Nothing was restarted")
            return 1

    def say(found: RestartedAgent) -> None:
        for warning in found.warnings:
            out.talk(warning)
        out.talk(f"Restarted agent {found.agent.id} in {found.agent.pane}")

    return each_agent(out, agents, lambda session_id, agent: mas.restart_agent(session_id, agent, args.force), say)
