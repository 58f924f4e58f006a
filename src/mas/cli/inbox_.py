"""mas inbox: Show the messages of a session or of an agent, newest last, and whether they arrived."""

from __future__ import annotations

import argparse
from collections import Counter

from mas.cli.command import opened
from mas.cli.render import Render, when
from mas.cli.target import Arguments, add_session_and_agent, session_and_agent
from mas.model.message import Box, Message
from mas.settings import inside

EXAMPLES = """
mas inbox
mas inbox web:21
mas inbox 21 --sent
mas inbox web --limit 1000 --json
"""
_SHOWN = 72


def arguments(parser: argparse.ArgumentParser) -> None:
    add_session_and_agent(parser, "without an agent (two digits): the agent you are, else everybody")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--sent", action="store_true", help="messages from the agent, not to it")
    which.add_argument("--all", action="store_true", help="messages to and from the agent")
    parser.add_argument("--limit", type=int, default=100, metavar="N", help="at most the N newest (default: 100)")
    parser.add_argument("--offset", type=int, default=0, metavar="N", help="leave out the N newest")


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    session_id, agent = session_and_agent(mas, args)
    here = inside()
    if agent is None and session_id == here.session:
        agent = here.agent
    box = Box.SENT if args.sent else Box.ALL if args.all else Box.INBOX
    found = mas.messages(session_id, agent, args.limit, args.offset, box)
    for warning in found.warnings:
        out.warn(warning)
    if not found.messages and not out.as_json:
        out.talk("No messages" if not found.total else f"No more than {found.total} messages")
        return 0
    rows = [
        (
            when(message.created_at),
            message.sender or "person",
            message.target,
            _state(message, agent if box is Box.INBOX else None),
            _first_line(message.message),
        )
        for message in found.messages
    ]
    out.result(found, lambda: out.table(("SENT (UTC)", "FROM", "TO", "STATE", "MESSAGE"), rows))
    return 0


def _state(message: Message, agent: str | None) -> str:
    """How far the message came: with one agent, or with all it is for, and why no further."""
    meant = [delivery for delivery in message.deliveries if agent in (None, delivery.agent)]
    counted = Counter(
        f"{delivery.state}: {delivery.reason.splitlines()[0]}" if delivery.reason else delivery.state
        for delivery in meant
    )
    if len(counted) <= 1:
        # What is for people is typed to nobody.
        return next(iter(counted), "kept")
    return ", ".join(f"{count} {state}" for state, count in counted.items())


def _first_line(text: str) -> str:
    line, _, rest = text.partition("\n")
    plain = "".join(character if character.isprintable() else " " for character in line)
    return f"{plain[:_SHOWN]}…" if rest or len(plain) > _SHOWN else plain
