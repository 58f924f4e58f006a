"""mas token: Print the token that the API asks for: the owner's, or one good for a single agent only."""

from __future__ import annotations

import argparse

from mas.bootstrap import open_access
from mas.cli.command import Arguments, opened, session_of
from mas.cli.render import Render
from mas.model.errors import BadInput
from mas.model.ids import parse_agent_id

EXAMPLES = """
mas token
mas token --rotate
mas token --agent 21 --session 550e8400
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rotate", action="store_true", help="a new one; the old one and all browsers are out")
    parser.add_argument("--agent", metavar="AGENT", help="a token good for this agent's own messages only")
    parser.add_argument("--session", metavar="ID", help="the agent's session (default: the only active one)")


def run(args: Arguments, out: Render) -> int:
    if args.rotate and args.agent:
        raise BadInput("Only the owner's token can be renewed")
    access = open_access(args.workspace)
    if args.agent:
        mas = opened(args)
        session_id = session_of(mas, args.session)
        agent = parse_agent_id(args.agent)
        if agent not in {known.id for known in mas.show(session_id).agents}:
            raise BadInput(f"No agent {agent} in session {session_id}", f"mas show {session_id}")
        token = access.agent_token(session_id, agent)
    else:
        token = access.renew_owner_token() if args.rotate else access.owner_token()
    out.result({"token": token}, lambda: out.line(token))
    return 0
