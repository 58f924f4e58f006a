"""mas logs: Show the log of a session (what MAS did) or of an agent (what it said, or printed).

Of an agent whose program records its conversation (mas transcript), that is shown; with --raw what it printed, without
escape sequences, as of all other programs.
"""

from __future__ import annotations

import argparse
from contextlib import suppress

from mas.cli.command import opened
from mas.cli.listing import number
from mas.cli.render import Render
from mas.cli.target import Arguments, add_session_and_agent, session_and_agent
from mas.cli.transcript_ import follow
from mas.model.errors import NotFound
from mas.model.ids import SessionId
from mas.model.transcript_text import plain_turns
from mas.service.mas import Mas

SUMMARY = "show a session's or an agent's log"
EXAMPLES = """
mas logs
mas logs web:21 -n 200
mas logs 21 --follow
mas logs 21 --raw
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_session_and_agent(parser, "without an agent (two digits): the session's own log")
    parser.add_argument("-n", "--lines", type=number, default=50, metavar="N", help="how many lines (default: 50)")
    parser.add_argument("-f", "--follow", action="store_true", help="keep printing what is added")
    parser.add_argument(
        "--raw", action="store_true", help="what the agent printed, even if its conversation is recorded"
    )


def _follow_conversation(mas: Mas, session_id: SessionId, agent: str, out: Render) -> None:
    """Does not return, unless there is no conversation."""
    with suppress(NotFound):
        follow(mas, session_id, agent, 1, lambda turn: f"{plain_turns((turn,))}\n", out)


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    session_id, agent = session_and_agent(mas, args)
    if args.follow:
        if agent is not None and not args.raw:
            _follow_conversation(mas, session_id, agent, out)
        mas.follow_logs(session_id, agent, args.lines)
    text = mas.logs(session_id, agent, args.lines, args.raw)
    out.result({"agent": agent, "text": text}, lambda: out.text(text))
    return 0
