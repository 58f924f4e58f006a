"""mas up: Make a workspace if needed and start a team in it, unless one is already running."""

from __future__ import annotations

import argparse
import os

from mas.bootstrap import init, open_mas
from mas.cli.command import Arguments
from mas.cli.render import Render, short_path
from mas.cli.start_ import tell_started
from mas.model.errors import NoWorkspace
from mas.model.ids import SessionId
from mas.model.run import Run
from mas.settings import find_root

EXAMPLES = """
mas up
mas up ~/teams/shop
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", nargs="?", metavar="DIR", help="the workspace (default: this one, else here)")


def run(args: Arguments, out: Render) -> int:
    made = init(args.directory or args.workspace or _here(), None, None)
    if made.made:
        out.talk(f"Made workspace {made.name} in {made.workspace}")
    mas = open_mas(made.workspace)
    running = mas.list(status="active").sessions
    if os.path.realpath(_here()) != made.workspace:
        out.talk(f"first: cd {short_path(made.workspace)}")
    if running:
        out.talk(f"{running[0].tmux_session} is already running: mas attach {running[0].session_id[:8]}")
        session = mas.show(SessionId(running[0].session_id))
        out.result(session, lambda: out.line(session.session_id))
        return 0
    tell_started(mas.start(Run(), progress=out.progress("copying templates")), out)
    return 0


def _here() -> str:
    """The workspace this is in, so that none is made inside another; else this directory."""
    try:
        return find_root(None)
    except NoWorkspace:
        return "."
