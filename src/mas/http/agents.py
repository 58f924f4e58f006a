"""`/sessions/{id}/agents`: a session's agents, their screens, reports, logs and variables."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Query, Response

from mas.http.dependencies import Caller, Product, Server, SessionPath
from mas.http.wire import AgentPath, ReportBody, RestartBody, answer, answers
from mas.model.agents import AgentList, AgentOutput, LogText, RestartedAgent, Variables
from mas.model.errors import Forbidden
from mas.model.self_report import AgentReport
from mas.model.transcript import MOST_TURNS, Transcript

router = APIRouter(tags=["agents"])

Lines = Annotated[int, Query(ge=1, le=100_000)]
SomeLines = Annotated[int, Query(ge=0, le=100_000)]
SomeAgent = Annotated[str | None, Query(pattern="^[0-9]{2}$")]


@router.get("/sessions/{sessionId}/agents", summary="List agents", **answers(AgentList, 200, 404, 410))
async def agents(server: Server, caller: Caller, session_id: SessionPath) -> Response:
    """The session's agents and their current state."""
    return await server.threads.run(caller, lambda: answer(AgentList(server.mas.agents(session_id))))


@router.get(
    "/sessions/{sessionId}/agents/{agent}/output",
    summary="Read an answer or screen",
    **answers(AgentOutput, 200, 404, 410),
)
async def output(  # noqa: PLR0913 - the parameters of its address
    server: Server,
    caller: Caller,
    session_id: SessionPath,
    agent: AgentPath,
    lines: Lines = 100,
    reader: Annotated[str | None, Query(pattern="^[0-9]{2}$", description="Read as this agent")] = None,
    screen: Annotated[bool, Query(description="Its screen in any case")] = False,
    message: Annotated[str | None, Query(pattern="^m-[0-9a-f]{16}$", description="The answer to this message")] = None,
) -> Response:
    """What an agent said last, by its transcript; else its screen, or the end of its log if it has no pane.

    An agent may read those it may write to. Of a blocked agent, and of one in error, it is always the screen.
    """
    if not caller.is_owner and reader not in (None, caller.agent):
        raise Forbidden(f"Agent {caller.agent} cannot read as {reader!r}")
    seen_by = reader if caller.is_owner else caller.agent

    def found() -> Response:
        return answer(server.mas.output(session_id, agent, lines, seen_by, screen, message))

    return await server.threads.run(caller, found)


@router.get(
    "/sessions/{sessionId}/agents/{agent}/transcript",
    summary="Read a conversation",
    **answers(Transcript, 200, 404, 410),
)
async def transcript(
    server: Server,
    caller: Caller,
    session_id: SessionPath,
    agent: AgentPath,
    limit: Annotated[int, Query(ge=0, le=MOST_TURNS)] = 20,
    offset: Annotated[int, Query(ge=0, le=1_000_000, description="Skip this many of the newest turns")] = 0,
) -> Response:
    """The turns of an agent's conversation, newest last. An agent can read only its own."""
    return await server.threads.run(caller, lambda: answer(server.mas.transcript(session_id, agent, limit, offset)))


@router.post(
    "/sessions/{sessionId}/agents/{agent}/report",
    summary="Report a status",
    **answers(AgentReport, 200, 404, 409, 410, 507),
)
async def report(
    server: Server, caller: Caller, session_id: SessionPath, agent: AgentPath, body: ReportBody
) -> Response:
    """Report what an agent is doing; it is shown and sent as an event. An agent can report only for itself."""
    return await server.threads.run(caller, lambda: answer(server.mas.report(session_id, agent, body.text, body.state)))


@router.post(
    "/sessions/{sessionId}/agents/{agent}/restart",
    summary="Restart an agent",
    **answers(RestartedAgent, 200, 404, 409, 410, 507),
)
def restart(
    mas: Product, session_id: SessionPath, agent: AgentPath, body: Annotated[RestartBody | None, Body()] = None
) -> Response:
    """Start an exited agent again in its pane, and resume its conversation if its provider can."""
    return answer(mas.restart_agent(session_id, agent, (body or RestartBody()).force))


@router.get("/sessions/{sessionId}/logs", summary="Read a log", **answers(LogText, 200, 404, 410))
def logs(
    mas: Product,
    session_id: SessionPath,
    agent: SomeAgent = None,
    lines: SomeLines = 100,
    raw: Annotated[bool, Query(description="What the agent printed, even if its conversation is recorded")] = False,
) -> Response:
    """The last lines of the session's log, or of an agent's: its conversation if that is recorded, else its output."""
    return answer(LogText(agent, mas.logs(session_id, agent, lines, raw)))


@router.get("/sessions/{sessionId}/env", summary="Read variables", **answers(Variables, 200, 404, 410))
def env(mas: Product, session_id: SessionPath, agent: SomeAgent = None) -> Response:
    """The environment variables of a session, or of one of its agents."""
    return answer(Variables(mas.env(session_id, agent)))
