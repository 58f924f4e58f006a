"""mas transcript: Show an agent's conversation: what it was asked, said and did.

It is read from what the agent's program records, so it is complete and exact, unlike a screen. Of Claude Code, Codex,
Gemini CLI and Aider, and of providers whose file names a format.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

from mas.cli.command import opened
from mas.cli.listing import number
from mas.cli.render import Render, count
from mas.cli.target import Arguments, add_session_and_agent, session_and_agent
from mas.model.errors import BadInput
from mas.model.ids import SessionId
from mas.model.transcript import MOST_TURNS, Transcript, Turn
from mas.model.transcript_text import markdown_turns, plain_turns
from mas.model.views import wire
from mas.service.mas import Mas
from mas.settings import inside

SUMMARY = "show an agent's conversation"
FOR_AGENTS = "server"
EXAMPLES = """
mas transcript 00
mas transcript web:21 -n 3 --markdown
mas transcript 21 --follow
mas transcript web:21 --json
"""
_LOOK_AGAIN = 0.5


def arguments(parser: argparse.ArgumentParser) -> None:
    add_session_and_agent(parser, "add an agent (two digits; default: the agent you run as)")
    parser.add_argument("-n", "--turns", type=number, default=20, metavar="N", help="how many turns (default: 20)")
    parser.add_argument("--offset", type=number, default=0, metavar="N", help="skip the N newest")
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    parser.add_argument("-f", "--follow", action="store_true", help="keep printing turns once they are finished")


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    session_id, agent = session_and_agent(mas, args)
    here = inside()
    if agent is None and session_id == here.session:
        agent = here.agent
    if agent is None:
        raise BadInput("No agent given", f"mas show {session_id[:8]}; mas transcript {session_id[:8]}:00")
    if args.follow:
        as_json = out.as_json
        follow(
            mas,
            session_id,
            agent,
            args.turns,
            lambda turn: _line(turn) if as_json else f"{_text((turn,), args)}\n",
            out,
        )
    found = mas.transcript(session_id, agent, min(args.turns, MOST_TURNS), args.offset)
    out.result(found, lambda: _show(found, args, out))
    return 0


def _show(found: Transcript, args: Arguments, out: Render) -> None:
    if found.cut:
        out.talk("Older turns are not shown: there are more than MAS reads")
    if found.turns:
        out.text(_text(found.turns, args))
    else:
        out.talk(f"There is nothing more: {count(found.total, 'turn')} in all" if found.total else "No turns yet")


def _text(turns: tuple[Turn, ...], args: Arguments) -> str:
    return markdown_turns(turns) if args.markdown else plain_turns(turns)


def _line(turn: Turn) -> str:
    return json.dumps(wire(turn))


def follow(mas: Mas, session_id: SessionId, agent: str, turns: int, text: Callable[[Turn], str], out: Render) -> None:
    """Print the last `turns` turns, and then each once it is finished. Does not return."""
    found = mas.transcript(session_id, agent, MOST_TURNS).turns
    known = {turn.id for turn in found[: max(0, len(found) - turns)]}
    while True:
        for turn in found:
            if turn.finished and turn.id not in known:
                known.add(turn.id)
                out.line(text(turn))
        out.flush()
        time.sleep(_LOOK_AGAIN)
        found = mas.transcript(session_id, agent, MOST_TURNS).turns
