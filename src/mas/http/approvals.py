"""`/approvals`: what agents wait for somebody to decide, and the decision."""

from __future__ import annotations

from fastapi import APIRouter, Response

from mas.http.dependencies import Caller, OnlySession, Product, SessionPath, known
from mas.http.wire import AgentPath, answer, answers
from mas.model.approvals import AgentAnswer, ApprovalList

router = APIRouter(tags=["approvals"])


@router.get("/approvals", summary="List approvals", **answers(ApprovalList, 200, 404, 410))
def approvals(mas: Product, session_id: OnlySession) -> Response:
    """Every agent of the active sessions that waits for an answer, the longest first."""
    if session_id is None:
        return answer(mas.approvals())
    with known(mas, session_id) as session:
        return answer(mas.approvals(session))


@router.post(
    "/sessions/{sessionId}/agents/{agent}/approve", summary="Approve", **answers(AgentAnswer, 200, 404, 409, 410)
)
def approve(mas: Product, caller: Caller, session_id: SessionPath, agent: AgentPath) -> Response:
    """Allow what an agent asks for; answers once it has taken the answer."""
    with known(mas, session_id) as session:
        return answer(mas.answer(session, agent, True, str(caller)))


@router.post("/sessions/{sessionId}/agents/{agent}/deny", summary="Deny", **answers(AgentAnswer, 200, 404, 409, 410))
def deny(mas: Product, caller: Caller, session_id: SessionPath, agent: AgentPath) -> Response:
    """Deny what an agent asks for; answers once it has taken the answer."""
    with known(mas, session_id) as session:
        return answer(mas.answer(session, agent, False, str(caller)))
