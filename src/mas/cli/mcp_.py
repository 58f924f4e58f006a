"""mas mcp: Give an agent's program its team as tools (Model Context Protocol), over standard input and output."""

from __future__ import annotations

import argparse

from mas.bootstrap import open_mas, open_remote, own_server
from mas.cli.command import opened
from mas.cli.render import Render
from mas.cli.target import (
    Arguments,
    add_as,
    add_session_and_agent,
    check_speaker,
    given_session_and_agent,
    one_agent,
    session_of,
)
from mas.model.ids import SessionId
from mas.service.mas import Mas
from mas.settings import Inside, ServerAddress, as_agent

SUMMARY = "serve MCP tools to an agent's program"
# Tools may be called later, when there is a server.
FOR_AGENTS = "here"
EXAMPLES = """
mas mcp
mas mcp web:21
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_session_and_agent(parser, "with an agent (two digits), as that agent")
    add_as(parser, "act as this agent (default: the agent you run as, else a person)")


def run(args: Arguments, out: Render) -> int:
    from mas.mcp.stdio import serve_stdio
    from mas.mcp.tools import Speaker

    here = as_agent(args.url, args.workspace)
    named, agent = given_session_and_agent(args)
    agent = one_agent(agent, args.sender)
    if here is None:
        mas = opened(args)
        session = session_of(mas, named)
        serve_stdio(lambda: Speaker(mas, session, agent))
        return 0
    own = _Own(here)
    # Its program asks for the tools once, at its start; the server may come up after that.
    session = own.product().resolve(named) if named is not None else SessionId(here.session or "")
    check_speaker(here, session, agent)
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
