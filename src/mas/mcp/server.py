"""The tools as a server of the Model Context Protocol. Imports the SDK, which is large: import this late."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import mcp_types as types
from anyio import CapacityLimiter, to_thread
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from mas import __version__
from mas.mcp.tools import TOOLS, Speaker, call
from mas.model.errors import MasError
from mas.model.schema import schema_of

_ABOUT = (
    "You are an agent in a team that MAS runs: several programs like you, each in its own terminal. "
    "With these tools you can list the team, send and read messages, and report what you are doing."
)
Context = ServerRequestContext[Any, Any]
Place = Callable[[Context], AbstractContextManager[None]]
Work = Callable[[], dict[str, Any]]
Run = Callable[[Context, Work], Awaitable[dict[str, Any]]]


async def _in_thread(_: Context, work: Work) -> dict[str, Any]:
    return await to_thread.run_sync(work)


def make_server(
    speaker: Callable[[Context], Speaker], place: Place = lambda _: nullcontext(), run: Run = _in_thread
) -> Server[Any]:
    """A server whose tools act for the caller that `speaker` returns; it is called in a thread, as the tools are.

    `run` is how a tool runs in a thread. One that waits holds `place` meanwhile and has a thread of its own; `place`
    raises a `MasError` if no more may wait.
    """
    waiting = {tool.name for tool in TOOLS if tool.waits}

    async def list_tools(context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=tool.name,
                    description=tool.description,
                    input_schema=schema_of(tool.arguments),
                    annotations=types.ToolAnnotations(read_only_hint=tool.only_reads, open_world_hint=False),
                )
                for tool in TOOLS
            ]
        )

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        def do() -> dict[str, Any]:
            return call(params.name, speaker(context), params.arguments or {})

        try:
            if params.name in waiting:
                # A separate thread: a caller that waits must not block others.
                with place(context):
                    answer = await to_thread.run_sync(do, limiter=CapacityLimiter(1))
            else:
                answer = await run(context, do)
        except MasError as error:
            return _result(f"{error.message} (next: {error.hint})" if error.hint else error.message, is_error=True)
        return _result(json.dumps(answer, ensure_ascii=False), answer)

    return Server("mas", version=__version__, instructions=_ABOUT, on_list_tools=list_tools, on_call_tool=call_tool)


def _result(text: str, answer: dict[str, Any] | None = None, is_error: bool = False) -> types.CallToolResult:
    # Text of a terminal may hold halves of characters, which UTF-8 cannot.
    plain = text.encode("utf-8", "replace").decode()
    structured = json.loads(plain) if answer is not None else None
    content: list[Any] = [types.TextContent(type="text", text=plain)]
    return types.CallToolResult(content=content, structured_content=structured, is_error=is_error)
