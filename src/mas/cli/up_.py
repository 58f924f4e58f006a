"""mas up: Make a workspace if needed, start a team in it, serve it, and say where: the newcomer's one command."""

from __future__ import annotations

import argparse
import os

from mas.bootstrap import init, open_mas, open_serving
from mas.cli.command import Arguments
from mas.cli.render import Render, count, short_path
from mas.model.errors import NoWorkspace
from mas.model.ids import SessionId
from mas.model.run import Run
from mas.model.views import SessionDetail
from mas.service.mas import Mas
from mas.settings import find_root, has_browser

# What a new team of demo agents is given to do, so that there is something to see.
_TASKS = (
    "Plan the page of a bakery",
    "List what may go wrong",
    "Write the announcement",
)

EXAMPLES = """
mas up
mas up ~/teams/shop
mas up --no-browser --json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", nargs="?", metavar="DIR", help="the workspace (default: this one, else here)")
    parser.add_argument("--port", type=int, metavar="N", help="the server's port (default: the first free from 7717)")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser, only print the address")


def run(args: Arguments, out: Render) -> int:
    from mas.client.connection import login_code

    made = init(args.directory or args.workspace or _here(), None, None)
    if made.made:
        out.talk(f"Made workspace {made.name} in {short_path(made.workspace)}")
    session = _running(open_mas(made.workspace), out)
    serving = open_serving(made.workspace)
    server = serving.find() or serving.detach(["--port", str(args.port)] if args.port is not None else [])
    code = login_code(server.socket)
    if os.path.realpath(_here()) != made.workspace:
        out.talk(f"first: cd {short_path(made.workspace)}")
    prefix = session.session_id[:8]
    out.talk(f"next:  mas attach {prefix}  ·  mas stop {prefix}  ·  mas serve --stop")
    out.talk("Open this address in a browser; it signs you in once, within five minutes:")
    body = {"session": session, "server": server, "url": code.url, "expiresAt": code.expires_at}
    out.result(body, lambda: out.line(code.url))
    if has_browser() and out.is_terminal and not args.no_browser:
        import webbrowser

        webbrowser.open(code.url)
    return 0


def _running(mas: Mas, out: Render) -> SessionDetail:
    """The session that runs, or a new one."""
    running = mas.list(status="active").sessions
    if running:
        out.talk(f"{running[0].tmux_session} is already running")
        return mas.show(SessionId(running[0].session_id))
    session = mas.start(Run(), progress=out.progress("copying templates"))
    for warning in session.warnings:
        out.talk(warning)
    out.talk(
        f"Started {session.tmux_session}: {count(len(session.agents), 'agent')} in {short_path(session.working_dir)}"
    )
    if {agent.provider for agent in session.agents} == {"demo"}:
        for task in _TASKS:
            mas.send(SessionId(session.session_id), session.agents[0].id, task)
    return session


def _here() -> str:
    """The workspace this is in, so that none is made inside another; else this directory."""
    try:
        return find_root(None)
    except NoWorkspace:
        return "."
