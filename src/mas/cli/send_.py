"""mas send: Type a message to agents, byte for byte, and press Enter."""

from __future__ import annotations

import argparse
import sys

from mas.cli.command import OPTIONAL_ID_HELP, Arguments, opened, session_of
from mas.cli.render import Render
from mas.model.errors import BadInput
from mas.settings import inside

EXAMPLES = """
mas send 00 "Plan the release"
mas send --session 550e8400 development "Pull before you push"
mas send managers - < brief.md
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--session", metavar="ID", help=OPTIONAL_ID_HELP)
    parser.add_argument(
        "--from",
        dest="sender",
        metavar="AGENT",
        help="who sends it (default: the agent you are, else a person)",
    )
    parser.add_argument(
        "--id", dest="message_id", metavar="MESSAGE-ID", help="its id; sent again with the same one, nothing is typed"
    )
    parser.add_argument("target", metavar="TARGET", help="an agent (two digits), a unit, managers or all")
    parser.add_argument(
        "message", nargs="?", default="-", metavar="MESSAGE", help="the text; - or nothing reads standard input"
    )


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    session_id = session_of(mas, args.session)
    text = _standard_input(out) if args.message == "-" else args.message
    sent = mas.send(session_id, args.target, text, args.sender or inside().agent, args.message_id)
    out.talk(f"Sent {sent.bytes} bytes to {', '.join(sent.agents)} ({sent.id})")
    if out.as_json:
        out.result(sent, lambda: None)
    return 0


def _standard_input(out: Render) -> str:
    if sys.stdin is None:
        raise BadInput("There is no message, and no standard input to read one from")
    if sys.stdin.isatty():
        out.talk("Type the message; Ctrl-D on a new line ends it")
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise BadInput("A message must be valid UTF-8") from None
