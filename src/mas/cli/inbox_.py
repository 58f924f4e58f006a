"""mas inbox: Show the messages of a session or of an agent, newest last, and whether they arrived."""

from __future__ import annotations

import argparse
from collections import Counter

from mas.cli.command import opened
from mas.cli.listing import add_limit, add_output, add_utc, add_watch, number, watched
from mas.cli.render import Render, count
from mas.cli.target import Arguments, add_session_and_agent, session_and_agent
from mas.model.message import Box, Message, MessageList
from mas.settings import inside

SUMMARY = "show messages and whether they arrived"
FOR_AGENTS = "server"
EXAMPLES = """
mas inbox
mas inbox web:21
mas inbox 21 --sent
mas inbox web -n 1000 --json
mas inbox web --watch
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_session_and_agent(parser, "with an agent (two digits), only its own (default: the agent you run as, else all)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--sent", action="store_true", help="messages from the agent, not to it")
    which.add_argument("--all", action="store_true", help="messages to and from the agent")
    add_limit(parser, "show only the N newest (default: 100)", default=100)
    parser.add_argument("--offset", type=number, default=0, metavar="N", help="skip the N newest")
    add_output(parser, "message ids", "message ids")
    add_utc(parser)
    add_watch(parser)


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    session_id, agent = session_and_agent(mas, args)
    here = inside()
    if agent is None and session_id == here.session:
        agent = here.agent
    box = Box.SENT if args.sent else Box.ALL if args.all else Box.INBOX
    return watched(
        args.watch,
        out,
        lambda: mas.messages(session_id, agent, args.limit, args.offset, box),
        lambda found: _show(found, agent if box is Box.INBOX else None, args, out),
    )


def _show(found: MessageList, agent: str | None, args: Arguments, out: Render) -> None:
    for warning in found.warnings:
        out.warn(warning)
    if args.quiet or args.output == "name":
        out.raw("".join(f"{message.id}\n" for message in found.messages))
    elif out.as_json or found.messages:
        out.result(found, lambda: _table(found, agent, out))
    else:
        out.talk(f"There is nothing more: {count(found.total, 'message')} in all" if found.total else "No messages")


def _table(found: MessageList, agent: str | None, out: Render) -> None:
    out.table(
        (out.heading("SENT"), "FROM", "TO", "STATE", "MESSAGE"),
        [
            (
                out.time(message.created_at),
                message.sender or "person",
                message.target,
                _state(message, agent),
                " ".join(message.message.split()),
            )
            for message in found.messages
        ],
    )


def _state(message: Message, agent: str | None) -> str:
    """Whether the message has arrived: with one agent, or with all it is for, and if not, why."""
    meant = [delivery for delivery in message.deliveries if agent in (None, delivery.agent)]
    counted = Counter(
        f"{delivery.state}: {delivery.reason.splitlines()[0]}" if delivery.reason else delivery.state
        for delivery in meant
    )
    if len(counted) <= 1:
        # A message for people is not typed to an agent.
        return next(iter(counted), "kept")
    return ", ".join(f"{count} {state}" for state, count in counted.items())
