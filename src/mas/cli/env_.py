"""mas env: Print a session's variables for a shell to evaluate."""

from __future__ import annotations

import argparse
import shlex

from mas.cli.command import OPTIONAL_ID_HELP, Arguments, opened, session_of
from mas.cli.render import Render
from mas.service.environment import REMOVED

EXAMPLES = """
eval "$(mas env 550e8400)"
eval "$(mas env 550e8400 --agent 21)"
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", nargs="?", metavar="ID", help=OPTIONAL_ID_HELP)
    parser.add_argument("--agent", help="also say which agent to be")


def run(args: Arguments, out: Render) -> int:
    mas = opened(args)
    found = mas.env(session_of(mas, args.session), args.agent)
    lines = [f"export {key}={shlex.quote(value)}" for key, value in found.items()]
    out.result(found, lambda: out.line("\n".join([*lines, f"unset {' '.join(REMOVED)}"])))
    return 0
