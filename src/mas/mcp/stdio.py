"""The tools for one program, over its standard input and output, until it closes them."""

from __future__ import annotations

from collections.abc import Callable

import anyio
from mcp.server.stdio import stdio_server

from mas.mcp.server import make_server
from mas.mcp.tools import Speaker


def serve_stdio(speaker: Callable[[], Speaker]) -> None:
    """Serve until standard input ends; `speaker` says, for each call, on whose behalf and on which product."""
    server = make_server(lambda _: speaker())

    async def serve() -> None:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(serve)
