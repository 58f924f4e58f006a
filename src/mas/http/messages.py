"""`/sessions/{id}/messages`: send messages to agents, and see whether they arrived."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from anyio import CapacityLimiter
from fastapi import APIRouter, Query, Response

from mas.http.dependencies import Caller, Product, Server, SessionPath
from mas.http.state import ServerState
from mas.http.threads import in_thread
from mas.http.wire import MessageBody, WaitQuery, answer, answers
from mas.model.errors import Forbidden
from mas.model.message import Box, MessageCounts, MessageList, Sent, Waited
from mas.model.principal import Principal

router = APIRouter(tags=["messages"])


@router.post("/sessions/{sessionId}/messages", summary="Send a message", **answers(Sent, 202, 404, 409, 410, 507))
async def send(server: Server, caller: Caller, session_id: SessionPath, body: MessageBody) -> Response:
    """Send a message to an agent, a unit, `managers`, `all` or `person`. An agent can send only as itself."""
    if not caller.is_owner and body.sender not in (None, caller.agent):
        raise Forbidden(f"Agent {caller.agent} cannot send as {body.sender!r}")
    if body.force and not caller.is_owner:
        raise Forbidden("An agent cannot use force: only people may type to an agent that is not idle")
    mas, sender = server.mas, body.sender if caller.is_owner else caller.agent

    def sent() -> Response:
        return answer(mas.send(session_id, body.target, body.message, sender, body.id, body.force, body.wait), 202)

    return await (_waiting(server, caller, sent) if body.wait else server.threads.run(caller, sent))


@router.get("/sessions/{sessionId}/messages", summary="List messages", **answers(MessageList, 200, 404, 410))
async def messages(
    server: Server,
    caller: Caller,
    session_id: SessionPath,
    agent: Annotated[str | None, Query(pattern="^[0-9]{2}$", description="Only messages to or from this agent")] = None,
    limit: Annotated[int, Query(ge=0, le=10_000)] = 100,
    offset: Annotated[int, Query(ge=0, le=1_000_000_000)] = 0,
    box: Annotated[Box, Query(description="With `agent`: `inbox` for messages to it, `sent` from it")] = Box.ALL,
) -> Response:
    """The session's messages, newest last. An agent sees only its own."""
    if not caller.is_owner and agent not in (None, caller.agent):
        raise Forbidden(f"Agent {caller.agent} cannot read the messages of {agent}")
    of = agent if caller.is_owner else caller.agent

    def found() -> Response:
        return answer(server.mas.messages(session_id, of, limit, offset, box))

    return await server.threads.run(caller, found)


@router.get("/sessions/{sessionId}/wait", summary="Wait for agents", **answers(Waited, 200, 404, 409, 410))
async def wait(
    server: Server, caller: Caller, session_id: SessionPath, query: Annotated[WaitQuery, Query()]
) -> Response:
    """Wait until agents reach a state or reply. Ends early if an agent is blocked or has exited."""
    if not caller.is_owner and query.asker not in (None, caller.agent):
        raise Forbidden(f"Agent {caller.agent} cannot wait for replies to {query.asker}")
    asker = query.asker if caller.is_owner else caller.agent

    def waited() -> Response:
        return answer(server.mas.wait(session_id, query.target, query.until, query.timeout, asker, query.after))

    return await _waiting(server, caller, waited)


async def _waiting(server: ServerState, caller: Principal, work: Callable[[], Response]) -> Response:
    """What `work` returns. It runs in a thread apart from those of requests: a waiting call blocks no other."""
    with server.waiters.place(caller):
        return await in_thread(work, limiter=CapacityLimiter(1))


@router.get("/message-counts", summary="Count messages", **answers(MessageCounts))
def message_counts(mas: Product) -> Response:
    """How many deliveries in active sessions are in each state."""
    return answer(MessageCounts(mas.message_counts()))
