"""mas send: Send a message to agents. It is typed to each one as soon as that agent is idle."""

from __future__ import annotations

import argparse
import sys

from mas.cli.command import opened, seconds
from mas.cli.entry import content, everything, given_path
from mas.cli.render import Render, count
from mas.cli.target import Arguments, add_as, add_session_option, session_and_target, speaker
from mas.model.errors import BadInput, NotFound
from mas.model.ids import SessionId
from mas.model.message import LARGEST, DeliveryState, Sent
from mas.service.mas import Mas

SUMMARY = "send a message to agents"
FOR_AGENTS = "server"
OF_STATUS = "active"
EXAMPLES = """
mas send 00 "Plan the release"
mas send web:21 "Pull before you push"
mas send --session web development "Pull before you push"
mas send managers - < brief.md
mas send 21 --file brief.md
mas send person "The release is out"
"""
# Long enough for an agent that is ready to say that it has the message.
_WAIT = 2.0


def arguments(parser: argparse.ArgumentParser) -> None:
    add_session_option(parser)
    add_as(parser, "send as this agent (default: the agent you run as, else a person)", "--from")
    parser.add_argument(
        "--id",
        dest="message_id",
        metavar="MESSAGE-ID",
        help="an id for the message; if it was sent before, nothing is typed",
    )
    parser.add_argument("--force", action="store_true", help="type it even if the agent is not idle")
    parser.add_argument(
        "--wait",
        type=seconds,
        default=_WAIT,
        metavar="SECONDS",
        help=f"wait at most this long for it to arrive (default: {_WAIT:.0f}; 0: do not wait)",
    )
    add_message(parser)


def add_message(parser: argparse.ArgumentParser) -> None:
    """The recipient, and the text or where it comes from."""
    parser.add_argument("--file", type=given_path, metavar="FILE", help="read the text from a file")
    parser.add_argument(
        "target", metavar="TARGET", help="an agent (two digits), a unit, managers, all or person; or SESSION:TARGET"
    )
    parser.add_argument("message", nargs="?", metavar="MESSAGE", help="the text; - or no text: read standard input")


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    session_id, target = whom(mas, args)
    sender = speaker(args, session_id)
    text = message_text(args, out)
    sent = mas.send(session_id, target, text, sender, args.message_id, args.force, args.wait)
    for reason, agents in _by_reason(sent, DeliveryState.UNDELIVERED).items():
        out.warn(f"not delivered to {', '.join(agents)}" + (f": {reason}" if reason else ""))
    out.talk(_summary(sent))
    if out.as_json:
        out.result(sent, lambda: None)
    return 0


def whom(mas: Mas, args: Arguments) -> tuple[SessionId, str]:
    """The session, and the recipient in it."""
    session_id, target = session_and_target(mas, args)
    if target is None:
        prefix = session_id[:8]
        raise BadInput(
            "No recipient given",
            f"mas show {prefix}; mas {args.command} {prefix}:00 …; mas {args.command} {prefix}:all …",
        )
    return session_id, target


def _summary(sent: Sent) -> str:
    """One line: which agents the message was typed to, and which it waits for and why."""
    waiting = _by_reason(sent, DeliveryState.QUEUED)
    away = {agent for state in (DeliveryState.QUEUED, DeliveryState.UNDELIVERED) for agent in _agents(sent, state)}
    there = [agent for agent in sent.agents if agent not in away]
    much, number = count(sent.bytes, "byte"), f" ({sent.id})"
    # A message for people is not typed to an agent.
    parts = [f"Sent {much} to {', '.join(there) or sent.target}{number}"] if there or not sent.agents else []
    for reason, agents in waiting.items():
        names = ", ".join(agents)
        parts.append(f"queued for {names}" if parts else f"Queued {much} for {names}{number}")
        parts[-1] += f": {reason}" if reason else ""
    return "; ".join(parts) or f"Kept {much}{number}"


def _by_reason(sent: Sent, state: DeliveryState) -> dict[str, list[str]]:
    """The agents whose delivery is in this state, by the reason for it."""
    found: dict[str, list[str]] = {}
    for delivery in sent.deliveries:
        if delivery.state is state:
            found.setdefault((delivery.reason or "").partition("\n")[0], []).append(delivery.agent)
    return found


def _agents(sent: Sent, state: DeliveryState) -> list[str]:
    return [delivery.agent for delivery in sent.deliveries if delivery.state is state]


def message_text(args: Arguments, out: Render) -> str:
    """The text as it was given: as an argument, in a file, or on standard input."""
    if args.file is not None and args.message is not None:
        raise BadInput("Give the message or --file, not both")
    if args.file is not None:
        return _file(args.file)
    return _standard_input(out) if args.message in (None, "-") else args.message


def _file(name: str) -> str:
    try:
        return content(name, LARGEST).decode()
    except NotFound as error:
        raise BadInput(error.message) from None
    except UnicodeDecodeError:
        raise BadInput("A message must be valid UTF-8") from None


def _standard_input(out: Render) -> str:
    if sys.stdin is not None and sys.stdin.isatty():
        out.talk("Type the message; end it with Ctrl-D on a new line")
    try:
        return everything("message").decode()
    except UnicodeDecodeError:
        raise BadInput("A message must be valid UTF-8") from None
