"""mas report: Say what you are doing, as the agent you are: shown with you, and told to whoever listens."""

from __future__ import annotations

import argparse

from mas.cli.command import OPTIONAL_ID_HELP, Arguments, opened, session_of
from mas.cli.render import Render
from mas.model.errors import BadInput
from mas.model.report import REPORTED
from mas.settings import inside

EXAMPLES = """
mas report "Reading the specification"
mas report --state blocked "Which of the two designs?"
mas report --session 550e8400 --as 21 "Waiting for the review"
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--session", metavar="ID", help=OPTIONAL_ID_HELP)
    parser.add_argument("--as", dest="sender", metavar="AGENT", help="who says it (default: the agent you are)")
    parser.add_argument(
        "--state", choices=[str(state) for state in REPORTED], metavar="STATE", help=f"one of {', '.join(REPORTED)}"
    )
    parser.add_argument("text", metavar="TEXT", help="a line or a few")


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    agent = args.sender or inside().agent
    if agent is None:
        raise BadInput("Which agent says this? You are not one", "mas report --session ID --as AGENT TEXT")
    told = mas.report(session_of(mas, args.session), agent, args.text, args.state)
    out.result(told, lambda: None)
    return 0
