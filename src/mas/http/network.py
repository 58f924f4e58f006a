"""`/sessions/{id}/network`: what agents reach, what they asked for, and what more they may."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from mas.http.dependencies import Product, SessionPath
from mas.http.wire import NetworkBody, answer, answers
from mas.model.network_view import NetworkChange, NetworkView

router = APIRouter(tags=["network"])


@router.get("/sessions/{sessionId}/network", summary="Network of a session", **answers(NetworkView, 200, 404, 410))
def network(
    mas: Product,
    session_id: SessionPath,
    agent: Annotated[str | None, Query(pattern="^[0-9]{2}$", description="Only what this agent asked for")] = None,
    refused: Annotated[bool, Query(description="Only what was refused")] = False,
    limit: Annotated[int, Query(ge=0, le=10_000)] = 100,
    offset: Annotated[int, Query(ge=0, le=1_000_000_000)] = 0,
) -> Response:
    """Which names agents reach and why, and which they asked for: refused ones first, then the newest."""
    return answer(mas.network(session_id, agent, refused, limit, offset))


@router.post(
    "/sessions/{sessionId}/network",
    summary="Allow names in a session",
    **answers(NetworkChange, 200, 404, 409, 410, 507),
)
def change_session(mas: Product, session_id: SessionPath, body: NetworkBody) -> Response:
    """Add names to what this session's agents may reach, or remove them. A running session has it at once."""
    return answer(mas.change_network(session_id, body.kind, tuple(body.places), body.remove))


@router.post("/network", summary="Allow names in the workspace", **answers(NetworkChange, 200, 507))
def change_workspace(mas: Product, body: NetworkBody) -> Response:
    """Add names to what agents of all sessions may reach, in `config.json`. They have it from their next start on."""
    return answer(mas.change_network(None, body.kind, tuple(body.places), body.remove))
