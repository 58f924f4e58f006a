"""mas token: Print the token for the API: the owner's, or one for a single agent."""

from __future__ import annotations

import argparse

from mas.bootstrap import open_access
from mas.cli.command import opened
from mas.cli.render import Render
from mas.cli.target import Arguments, add_session_and_agent, given_session_and_agent, one_agent, session_of
from mas.model.errors import BadInput

SUMMARY = "print the token for the API"
WHERE = "here"
EXAMPLES = """
mas token
mas token --rotate
mas token web:21
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rotate", action="store_true", help="replace the token; the old one and all signed-in browsers stop working"
    )
    add_session_and_agent(parser, "with an agent (two digits), a token that can do only what this agent may")
    for spelling, text in (("--as", "the agent"), ("--agent", argparse.SUPPRESS)):
        parser.add_argument(spelling, dest="as_agent", metavar="AGENT", help=text)


def run(args: Arguments, out: Render) -> int:
    session, agent = given_session_and_agent(args)
    agent = one_agent(agent, args.as_agent)
    if args.rotate and (session or agent):
        raise BadInput("Only the owner's token can be replaced")
    if session and agent is None:
        raise BadInput("No agent given", f"mas show {session}; mas token {session}:00")
    access = open_access(args.workspace)
    if agent is not None:
        mas = opened(args)
        session_id = session_of(mas, session)
        if agent not in {known.id for known in mas.show(session_id).agents}:
            raise BadInput(f"No agent {agent} in session {session_id}", f"mas show {session_id}")
        token = access.agent_token(session_id, agent)
    else:
        token = access.renew_owner_token() if args.rotate else access.owner_token()
    out.result({"token": token}, lambda: out.line(token))
    return 0
