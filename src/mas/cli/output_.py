"""mas output: Show what an agent said last, or its screen.

Of a program that records its conversation (mas transcript), the last answer, unless the agent is blocked or in error;
of all others the screen, or in a stopped session the end of the log.
"""

from __future__ import annotations

import argparse

from mas.cli.command import opened
from mas.cli.listing import number
from mas.cli.render import Render
from mas.cli.target import Arguments, add_session_and_agent, session_and_agent
from mas.model.errors import BadInput
from mas.settings import as_agent

SUMMARY = "show an agent's last answer, or its screen"
FOR_AGENTS = "server"
EXAMPLES = """
mas output 00
mas output 00 --screen
mas output web:21 --lines 200
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_session_and_agent(parser, "add an agent (two digits)")
    parser.add_argument("-n", "--lines", type=number, default=50, metavar="N", help="how many lines (default: 50)")
    parser.add_argument("--screen", action="store_true", help="show the screen in any case")


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    session_id, agent = session_and_agent(mas, args)
    if agent is None:
        raise BadInput("No agent given", f"mas show {session_id[:8]}; mas output {session_id[:8]}:00")
    # A server knows the caller by its token.
    here = None if args.server else as_agent(None, args.workspace)
    reader = here.agent if here and here.session == session_id else None
    found = mas.output(session_id, agent, max(args.lines, 1), reader, args.screen)
    if not args.lines:
        found = found._replace(text="")
    out.result(found, lambda: out.text(found.text))
    return 0
