"""mas report: Report, as an agent, what you are doing: mas show and the web page show it, and an event is sent."""

from __future__ import annotations

import argparse

from mas.cli.command import opened
from mas.cli.render import Render
from mas.cli.target import Arguments, add_as, add_session_option, session_and_target, speaker
from mas.model.errors import BadInput
from mas.model.self_report import REPORTED

SUMMARY = "report, as an agent, what you are doing"
FOR_AGENTS = "server"
EXAMPLES = """
mas report "Reading the specification"
mas report --state blocked "Which of the two designs?"
mas report web:21 "Waiting for the review"
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_session_option(parser)
    add_as(parser, "report as this agent (default: the agent you run as)")
    parser.add_argument(
        "--state", choices=[str(state) for state in REPORTED], metavar="STATE", help=f"one of {', '.join(REPORTED)}"
    )
    parser.add_argument("target", nargs="?", metavar="SESSION:AGENT", help="the session and the agent to report as")
    parser.add_argument("text", metavar="TEXT", help="what you are doing, in one or a few lines")


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    session_id, agent = session_and_target(mas, args)
    agent = speaker(args, session_id, agent)
    if agent is None:
        raise BadInput("Only agents report, and you are not running as one", f"mas report {session_id[:8]}:00 TEXT")
    told = mas.report(session_id, agent, args.text, args.state)
    out.result(told, lambda: None)
    return 0
