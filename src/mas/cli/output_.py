"""mas output: Show what an agent's terminal shows; of a stopped session, what its log kept."""

from __future__ import annotations

import argparse

from mas.cli.command import Arguments, add_session_and_agent, opened, session_and_agent
from mas.cli.render import Render
from mas.model.errors import BadInput

EXAMPLES = """
mas output 00
mas output 550e8400 21 --lines 200
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_session_and_agent(parser, "an agent (two digits)")
    parser.add_argument("-n", "--lines", type=int, default=50, metavar="N", help="how many lines (default: 50)")


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    session_id, agent = session_and_agent(mas, args)
    if agent is None:
        raise BadInput("Which agent?", f"mas show {session_id[:8]}; mas output {session_id[:8]} 00")
    if args.lines < 1:
        raise BadInput("--lines takes a number, 1 or more")
    found = mas.output(session_id, agent, args.lines)
    out.result(found, lambda: out.line(found.text))
    return 0
