"""`/sessions/{id}/forwards`: ports of this machine that lead into a session's network. Only for the owner."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from mas.http.dependencies import Product, SessionPath
from mas.http.guard.tickets import shown_host
from mas.http.wire import ForwardBody, answer, answers
from mas.model.errors import Conflict
from mas.model.forwards import LARGEST_PORT, Forward, ForwardList, PortList
from mas.model.ids import SessionId

router = APIRouter(tags=["forwards"])

PortPath = Annotated[int, Path(ge=1, le=LARGEST_PORT, description="A port inside the session's network")]
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@router.get("/sessions/{sessionId}/ports", summary="List ports", **answers(PortList, 200, 404, 409, 410))
def ports(mas: Product, session_id: SessionPath) -> Response:
    """The ports that programs of the session listen at."""
    return answer(mas.ports(session_id))


@router.get("/sessions/{sessionId}/forwards", summary="List forwards", **answers(ForwardList, 200, 404, 410))
def forwards(mas: Product, session_id: SessionPath) -> Response:
    """The open forwards of the session that this server keeps."""
    return answer(ForwardList(mas.forwards(session_id)))


@router.post("/sessions/{sessionId}/forwards", summary="Open a forward", **answers(Forward, 200, 404, 409, 410))
def forward(request: Request, mas: Product, session_id: SessionPath, body: ForwardBody) -> Response:
    """Have a port of the server's machine, on loopback, lead to a port inside the session's network.

    It ends with the session or the server. If the port is forwarded already, the open forward is returned.
    """
    if request.state.browser:
        _check_is_here(shown_host(request), session_id, body.port)
    return answer(mas.forward(session_id, body.port, body.local, body.any_user))


@router.delete("/sessions/{sessionId}/forwards/{port}", summary="Close a forward", **answers(Forward, 200, 404, 410))
def end(mas: Product, session_id: SessionPath, port: PortPath) -> Response:
    """Close a forward, with all its connections."""
    return answer(mas.end_forward(session_id, port))


def _check_is_here(host: str, session_id: SessionId, port: int) -> None:
    """A forward is on the server's loopback: a browser that calls the server by another name is not there."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if name not in _LOOPBACK:
        there, here = f"mas forward {session_id[:8]} {port} {port}", f"ssh -L {port}:127.0.0.1:{port} {name}"
        raise Conflict(
            "A forward opens on the server's machine, and this browser is on another", f"there: {there}; here: {here}"
        )
