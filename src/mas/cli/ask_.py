"""mas ask: Send a message and wait for the answer: what is written back, or what the agent shows once idle."""

from __future__ import annotations

import argparse

from mas.cli.command import OPTIONAL_ID_HELP, Arguments, opened, session_of
from mas.cli.render import Render
from mas.cli.send_ import add_message, message_text
from mas.cli.wait_ import add_timeout, check
from mas.model.ids import is_agent_id
from mas.model.reports import Asked
from mas.settings import inside

EXAMPLES = """
mas ask 20 "Are the tests green?"
mas ask --session 550e8400 20 --file question.md --timeout 600
"""
_SHOWN = 50


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--session", metavar="ID", help=OPTIONAL_ID_HELP)
    parser.add_argument("--reply", action="store_true", help="only what is written back counts as an answer")
    add_timeout(parser)
    add_message(parser)


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    session_id = session_of(mas, args.session)
    text = message_text(args, out)
    me = inside().agent
    sent = mas.send(session_id, args.target, text, me)
    out.talk(f"Sent {sent.bytes} bytes to {', '.join(sent.agents)} ({sent.id}); waiting for the answer")
    until = "replied" if args.reply else "answered"
    waited = mas.wait(session_id, args.target, until, args.timeout, me, sent.id)
    check(waited, args.timeout)
    output = None
    if waited.reply is None and is_agent_id(args.target):
        output = mas.output(session_id, args.target, _SHOWN).text
    asked = Asked(sent, waited, output)
    out.result(asked, lambda: out.line(waited.reply.message if waited.reply else output or ""))
    return 0
