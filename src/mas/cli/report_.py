"""mas report: Report what you are doing, as an agent: `mas show` and the page show it, and it is sent as an event."""

from __future__ import annotations

import argparse

from mas.cli.command import opened
from mas.cli.render import Render
from mas.cli.target import Arguments, add_as, add_session_option, session_and_target, speaker
from mas.model.errors import BadInput
from mas.model.self_report import REPORTED

SUMMARY = "say, as an agent, what you are doing"
FOR_AGENTS = "server"
EXAMPLES = """
mas report "Reading the specification"
mas report --state blocked "Which of the two designs?"
mas report web:21 "Waiting for the review"
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_session_option(parser)
    add_as(parser, "as which agent (default: the agent you are)")
    parser.add_argument(
        "--state", choices=[str(state) for state in REPORTED], metavar="STATE", help=f"one of {', '.join(REPORTED)}"
    )
    parser.add_argument("target", nargs="?", metavar="SESSION:AGENT", help="as which agent, in one word")
    parser.add_argument("text", metavar="TEXT", help="a line or a few")


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    session_id, agent = session_and_target(mas, args)
    agent = speaker(args, session_id, agent)
    if agent is None:
        raise BadInput("Which agent says this? You are not one", f"mas report {session_id[:8]}:00 TEXT")
    told = mas.report(session_id, agent, args.text, args.state)
    out.result(told, lambda: None)
    return 0
