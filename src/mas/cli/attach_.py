"""mas attach: See a session in tmux (Ctrl-b d leaves it running), with an agent's pane selected."""

from __future__ import annotations

import argparse

from mas.cli.command import Arguments, add_session_and_agent, opened, session_and_agent
from mas.cli.render import Render

EXAMPLES = """
mas attach
mas attach 550e8400
mas attach 550e8400 21
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_session_and_agent(parser, "an agent (two digits) to go to")


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    session_id, agent = session_and_agent(mas, args)
    mas.attach(session_id, agent)
    return 0
