"""mas mcp: Give an agent's program its team as tools (Model Context Protocol), over standard input and output."""

from __future__ import annotations

import argparse

from mas.bootstrap import open_mas, open_remote, own_server
from mas.cli.command import OPTIONAL_ID_HELP, Arguments, opened, session_of
from mas.cli.render import Render
from mas.model.errors import Forbidden
from mas.model.ids import SessionId, parse_agent_id, shown
from mas.service.mas import Mas
from mas.settings import Inside, ServerAddress, as_agent

EXAMPLES = """
mas mcp
mas mcp --session 550e8400 --as 21
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--session", metavar="ID", help=OPTIONAL_ID_HELP)
    parser.add_argument(
        "--as", dest="sender", metavar="AGENT", help="who calls the tools (default: the agent you are, else a person)"
    )


def run(args: Arguments, out: Render) -> int:
    from mas.mcp.stdio import serve_stdio
    from mas.mcp.tools import Speaker

    here = as_agent(args.url, args.workspace)
    agent = parse_agent_id(args.sender) if args.sender is not None else None
    if here and agent not in (None, here.agent):
        raise Forbidden(f"Agent {here.agent} cannot speak as {shown(agent or '')}")
    if here is None:
        mas = opened(args)
        session = session_of(mas, args.session)
        serve_stdio(lambda: Speaker(mas, session, agent))
        return 0
    own = _Own(here)
    # Its program asks for the tools once, at its start; the server may come up after that.
    session = own.product().resolve(args.session) if args.session is not None else SessionId(here.session or "")
    serve_stdio(lambda: Speaker(own.product(), session, here.agent))
    return 0


class _Own:
    """The product for an agent, looked for at every call: the server may come, go, and be elsewhere the next time."""

    def __init__(self, here: Inside) -> None:
        self._here = here
        self._known: tuple[ServerAddress, Mas] | None = None

    def product(self) -> Mas:
        address = own_server(self._here)
        if address is None:
            return open_mas()
        if self._known is None or self._known[0] != address:
            self._known = address, open_remote(address)
        return self._known[1]
