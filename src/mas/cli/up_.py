"""mas up: Start a team and its web page: the team that stopped last, or a new one, in a new workspace if needed."""

from __future__ import annotations

import argparse
import os
from shlex import quote

from mas.bootstrap import init, need_tmux, open_access, open_mas, open_serving
from mas.cli.command import Arguments
from mas.cli.entry import given_path
from mas.cli.render import Render, count, short_path
from mas.model.errors import NoWorkspace
from mas.model.ids import SessionId
from mas.model.run import Run
from mas.model.views import SessionDetail, SessionInfo
from mas.service.mas import Mas
from mas.settings import find_root, has_browser, off_path

# What a new team of demo agents is given to do, so that there is something to see.
_TASKS = (
    "Plan the page of a bakery",
    "List what may go wrong",
    "Write the announcement",
)

SUMMARY = "start a team and its web page, in a new workspace if needed"
WHERE = "here"
EXAMPLES = """
mas up
mas up ~/teams/shop
mas up --new
mas up --no-browser --json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "directory",
        nargs="?",
        type=given_path,
        metavar="DIR",
        help="the workspace (default: the current one, else here)",
    )
    parser.add_argument("--new", action="store_true", help="start a new team even if there is one already")
    parser.add_argument("--port", type=int, metavar="N", help="the server's port (default: the first free from 7717)")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser, only print the address")


def run(args: Arguments, out: Render) -> int:
    from mas.client.connection import login_code

    need_tmux()
    made = init(args.directory or args.workspace or _here(), None, None)
    if made.made:
        out.talk(f"Created workspace {made.name} in {short_path(made.workspace)}")
    mas = open_mas(made.workspace)
    session = _started(mas, out) if args.new else _running(mas, out) or _restored(mas, out) or _started(mas, out)
    serving = open_serving(made.workspace)
    server = serving.find() or serving.detach(["--port", str(args.port)] if args.port is not None else [])
    code = login_code(server.socket, open_access(made.workspace).owner_token())
    prefix = session.session_id[:8]
    if first := _first(made.workspace):
        out.talk(f"first: {first}")
    out.talk(f"next:  mas attach {prefix}  ·  mas stop {prefix}  ·  mas serve --stop")
    out.talk("Open this address in a browser; it signs you in once, within five minutes:")
    body = {"session": session, "server": server, "url": code.url, "expiresAt": code.expires_at}
    out.result(body, lambda: out.line(code.url))
    if has_browser() and out.is_terminal and not args.no_browser:
        import webbrowser

        webbrowser.open(code.url)
    return 0


def _first(workspace: str) -> str:
    """What to type before `mas attach` works here: be in the workspace, have `mas` on PATH."""
    steps = []
    if (directory := off_path()) is not None:
        steps.append(f'export PATH={quote(directory)}:"$PATH"')
    if os.path.realpath(_here()) != workspace:
        steps.append(f"cd {quote(os.path.relpath(workspace))}")
    return " && ".join(steps)


def _running(mas: Mas, out: Render) -> SessionDetail | None:
    """The session that runs, if one does."""
    session = _newest(mas, "active")
    if session is None:
        return None
    out.talk(f"{session.tmux_session} is already running")
    return mas.show(SessionId(session.session_id))


def _restored(mas: Mas, out: Render) -> SessionDetail | None:
    """The session that was stopped or lost last, running again; None if there is none."""
    stopped = _newest(mas, "stopped")
    if stopped is None:
        return None
    session = mas.restore(SessionId(stopped.session_id))
    for warning in session.warnings:
        out.talk(warning)
    out.talk(f"Restored {session.tmux_session}: {count(len(session.agents), 'agent')}; for a new one: mas up --new")
    return session


def _newest(mas: Mas, status: str) -> SessionInfo | None:
    """The session in that status that was at work last."""
    return max(mas.list(status=status).sessions, key=lambda info: info.last_activity, default=None)


def _started(mas: Mas, out: Render) -> SessionDetail:
    session = mas.start(Run(request={}), progress=out.progress("copying templates"))
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
