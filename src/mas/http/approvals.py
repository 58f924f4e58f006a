"""`/approvals`: the decisions that agents are waiting for."""

from __future__ import annotations

from fastapi import APIRouter, Response

from mas.http.dependencies import Caller, OnlySession, Product, SessionPath
from mas.http.wire import AgentPath, answer, answers
from mas.model.approvals import AgentAnswer, ApprovalList

router = APIRouter(tags=["approvals"])


@router.get("/approvals", summary="List approvals", **answers(ApprovalList, 200, 404, 410))
def approvals(mas: Product, session_id: OnlySession) -> Response:
    """Every agent in an active session that is waiting for a decision, longest wait first."""
    return answer(mas.approvals(session_id))


@router.post(
    "/sessions/{sessionId}/agents/{agent}/approve", summary="Approve", **answers(AgentAnswer, 200, 404, 409, 410)
)
def approve(mas: Product, caller: Caller, session_id: SessionPath, agent: AgentPath) -> Response:
    """Approve what an agent asks for. Returns when the agent has received the answer."""
    return answer(mas.answer(session_id, agent, True, str(caller)))


@router.post("/sessions/{sessionId}/agents/{agent}/deny", summary="Deny", **answers(AgentAnswer, 200, 404, 409, 410))
def deny(mas: Product, caller: Caller, session_id: SessionPath, agent: AgentPath) -> Response:
    """Deny what an agent asks for. Returns when the agent has received the answer."""
    return answer(mas.answer(session_id, agent, False, str(caller)))
