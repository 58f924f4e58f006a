"""mas send: Send a message to agents; each gets it, byte for byte, as soon as it is idle."""

from __future__ import annotations

import argparse
import sys

from mas.cli.command import opened, seconds
from mas.cli.entry import everything
from mas.cli.render import Render
from mas.cli.target import Arguments, add_as, add_session_option, session_and_target, speaker
from mas.model.errors import BadInput
from mas.model.ids import SessionId
from mas.model.message import LARGEST, DeliveryState
from mas.model.reports import Sent
from mas.service.mas import Mas

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
    add_as(parser, "as which agent (default: the agent you are, else a person)", "--from")
    parser.add_argument(
        "--id", dest="message_id", metavar="MESSAGE-ID", help="its id; sent again with the same one, nothing is typed"
    )
    parser.add_argument("--force", action="store_true", help="do not wait until the agent is idle")
    parser.add_argument(
        "--wait",
        type=seconds,
        default=_WAIT,
        metavar="SECONDS",
        help=f"how long to wait for it to arrive (default: {_WAIT:.0f}; 0: do not)",
    )
    add_message(parser)


def add_message(parser: argparse.ArgumentParser) -> None:
    """Whom it is for, and the text or where it comes from."""
    parser.add_argument("--file", metavar="FILE", help="read the text from a file")
    parser.add_argument(
        "target", metavar="TARGET", help="an agent (two digits), a unit, managers, all or person; or SESSION:TARGET"
    )
    parser.add_argument("message", nargs="?", metavar="MESSAGE", help="the text; - or nothing reads standard input")


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    session_id, target = whom(mas, args)
    sender = speaker(args, session_id)
    text = message_text(args, out)
    sent = mas.send(session_id, target, text, sender, args.message_id, args.force, args.wait)
    for state, agents in _by_state(sent).items():
        talk = out.warn if state.startswith(DeliveryState.UNDELIVERED) else out.talk
        talk(f"{state}: {', '.join(agents)}")
    out.talk(f"Sent {sent.bytes} bytes to {', '.join(sent.agents) or sent.target} ({sent.id})")
    if out.as_json:
        out.result(sent, lambda: None)
    return 0


def whom(mas: Mas, args: Arguments) -> tuple[SessionId, str]:
    """The session and whom in it a message is for."""
    session_id, target = session_and_target(mas, args)
    if target is None:
        prefix = session_id[:8]
        raise BadInput(
            "To whom?", f"mas show {prefix}; mas {args.command} {prefix}:00 …; mas {args.command} {prefix}:all …"
        )
    return session_id, target


def _by_state(sent: Sent) -> dict[str, list[str]]:
    """The agents by how far it came with them, where that is not all the way."""
    found: dict[str, list[str]] = {}
    for delivery in sent.deliveries:
        if delivery.state is DeliveryState.UNDELIVERED or delivery.state is DeliveryState.QUEUED:
            reason = (delivery.reason or "").partition("\n")[0]
            found.setdefault(f"{delivery.state} ({reason})" if reason else delivery.state, []).append(delivery.agent)
    return found


def message_text(args: Arguments, out: Render) -> str:
    """The text as it was given: as an argument, in a file, or on standard input."""
    if args.file is not None and args.message is not None:
        raise BadInput("Give the message or --file, not both")
    if args.file is not None:
        return _file(args.file)
    return _standard_input(out) if args.message in (None, "-") else args.message


def _file(path: str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise BadInput(f"Cannot read {path}: {error.strerror}") from None
    if len(data) > LARGEST:
        raise BadInput(f"{path} has more than {LARGEST} bytes (1 MiB), the most that a message may have")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise BadInput("A message must be valid UTF-8") from None


def _standard_input(out: Render) -> str:
    if sys.stdin is not None and sys.stdin.isatty():
        out.talk("Type the message; Ctrl-D on a new line ends it")
    try:
        return everything("message").decode()
    except UnicodeDecodeError:
        raise BadInput("A message must be valid UTF-8") from None
