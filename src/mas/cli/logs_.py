"""mas logs: Show the log of a session (what MAS did) or of an agent (what it printed)."""

from __future__ import annotations

import argparse

from mas.cli.command import opened
from mas.cli.listing import number
from mas.cli.render import Render
from mas.cli.target import Arguments, add_session_and_agent, session_and_agent

SUMMARY = "show a session's or an agent's log"
EXAMPLES = """
mas logs
mas logs web:21 -n 200
mas logs 21 --follow
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_session_and_agent(parser, "without an agent (two digits): the session's own log")
    parser.add_argument("-n", "--lines", type=number, default=50, metavar="N", help="how many lines (default: 50)")
    parser.add_argument("-f", "--follow", action="store_true", help="keep printing what is added")


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    session_id, agent = session_and_agent(mas, args)
    if args.follow:
        mas.follow_logs(session_id, agent, args.lines)
    text = mas.logs(session_id, agent, args.lines)
    out.result({"agent": agent, "text": text}, lambda: out.text(text))
    return 0
