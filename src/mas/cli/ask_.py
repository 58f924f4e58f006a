"""mas ask: Send a message and wait for the answer: a reply, or without one what the agent said about it.

What it said is known of programs that record their conversation (mas transcript); of others the screen is shown.
"""

from __future__ import annotations

import argparse

from mas.cli.command import opened
from mas.cli.render import Render, count
from mas.cli.send_ import add_message, message_text, whom
from mas.cli.target import Arguments, add_as, add_session_option, speaker
from mas.cli.wait_ import add_timeout, check
from mas.model.ids import is_agent_id
from mas.model.message import Asked

SUMMARY = "send a message and wait for the answer"
FOR_AGENTS = "server"
OF_STATUS = "active"
EXAMPLES = """
mas ask 20 "Are the tests green?"
mas ask web:20 --file question.md --timeout 600
"""
_SHOWN = 50


def arguments(parser: argparse.ArgumentParser) -> None:
    add_session_option(parser)
    add_as(parser, "send as this agent (default: the agent you run as, else a person)")
    parser.add_argument("--reply", action="store_true", help="accept only a reply as the answer")
    add_timeout(parser)
    add_message(parser)


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    session_id, target = whom(mas, args)
    me = speaker(args, session_id)
    text = message_text(args, out)
    sent = mas.send(session_id, target, text, me)
    out.talk(f"Sent {count(sent.bytes, 'byte')} to {', '.join(sent.agents)} ({sent.id}); waiting for the answer")
    until = "replied" if args.reply else "answered"
    waited = mas.wait(session_id, target, until, args.timeout, me, sent.id)
    check(waited, args.timeout)
    found = None
    if waited.reply is None and is_agent_id(target):
        found = mas.output(session_id, target, _SHOWN, message_id=sent.id)
    text = waited.reply.message if waited.reply else found.text if found else ""
    asked = Asked(sent, waited, found.text if found else None, found.source if found else None)
    out.result(asked, lambda: out.line(text))
    return 0
