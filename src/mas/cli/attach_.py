"""mas attach: Open a session in tmux. Ctrl-b d leaves tmux and keeps the session running."""

from __future__ import annotations

import argparse

from mas.cli.command import opened
from mas.cli.render import Render
from mas.cli.target import Arguments, add_session_and_agent, session_and_agent

SUMMARY = "open a session in tmux"
OF_STATUS = "active"
EXAMPLES = """
mas attach
mas attach web
mas attach web:21
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_session_and_agent(parser, "with an agent (two digits), its pane is selected")


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    session_id, agent = session_and_agent(mas, args)
    mas.attach(session_id, agent)
    return 0
