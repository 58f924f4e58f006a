"""mas approve: Approve what an agent asks for, and wait until the agent has received the answer."""

from __future__ import annotations

import argparse

from mas.cli.command import each_agent, opened
from mas.cli.render import Render
from mas.cli.target import Arguments, add_agents, agents_of
from mas.model.approvals import AgentAnswer

SUMMARY = "approve what an agent asks for"
OF_STATUS = "active"
EXAMPLES = """
mas approve 00
mas approve web:21 web:00
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_agents(parser, "one or more waiting agents (two digits each)")


def run(args: Arguments, out: Render) -> int:
    return answered(args, out, allow=True)


def answered(args: Arguments, out: Render, allow: bool) -> int:
    mas = opened(args)

    def say(found: AgentAnswer) -> None:
        asked = f": {found.text}" if found.text else ""
        out.talk(f"{'Approved' if allow else 'Denied'} {found.agent}{asked} (now {found.state})")

    return each_agent(out, agents_of(mas, args), lambda session_id, agent: mas.answer(session_id, agent, allow), say)
