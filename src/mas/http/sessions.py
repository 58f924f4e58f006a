"""`/sessions`: list, show, stop, restore, clone, archive, unarchive, delete, undelete, and try these."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated

from fastapi import APIRouter, Body, Query, Request, Response

from mas.http.dependencies import Product, SessionPath
from mas.http.wire import CloneBody, RenameBody, SessionReference, answer, answers, rendered
from mas.model.errors import NoSession
from mas.model.ids import SessionId
from mas.model.session import Listed, Tryable
from mas.model.stats import SessionStats
from mas.model.views import SessionDetail, SessionInfo, SessionList

router = APIRouter(tags=["sessions"])


@router.get("/sessions", summary="List sessions", **answers(SessionList))
def list_sessions(
    mas: Product,
    status: Annotated[Listed | None, Query(description="Default: all but archived and deleted")] = None,
    limit: Annotated[int | None, Query(ge=0, le=100_000)] = None,
    offset: Annotated[int, Query(ge=0, le=1_000_000_000)] = 0,
) -> Response:
    """The workspace's sessions, oldest first, with their status checked in tmux."""
    found = mas.list(status, limit, offset, agents=True)
    sessions = b",".join(map(_rendered, found.sessions))
    rest = rendered({"total": found.total, "warnings": found.warnings})
    return Response(b'{"sessions":[' + sessions + b"]," + rest[1:], media_type="application/json")


@lru_cache(maxsize=10_000)
def _rendered(info: SessionInfo) -> bytes:
    """A session's part of a listing; few change from one listing to the next."""
    return rendered(info)


@router.get("/sessions/{sessionId}", summary="Show a session", **answers(SessionDetail, 200, 404, 410))
def show(mas: Product, session_id: SessionPath) -> Response:
    """Everything about one session: directories, configuration, logs, `.session` fields, and its agents' states."""
    return answer(mas.show(session_id))


@router.post("/sessions/{sessionId}/stop", summary="Stop", **answers(SessionDetail, 200, 404, 409, 410, 507))
def stop(mas: Product, session_id: SessionPath) -> Response:
    """End every process of the session and keep its directory. Stopping a stopped session does nothing."""
    return answer(mas.stop(session_id))


@router.post("/sessions/{sessionId}/restore", summary="Restore", **answers(SessionDetail, 200, 404, 409, 410, 507))
def restore(mas: Product, session_id: SessionPath) -> Response:
    """Start a stopped session again, with the same team in the same directory."""
    return answer(mas.restore(session_id))


@router.post("/sessions/{sessionId}/clone", summary="Clone", **answers(SessionDetail, 201, 404, 409, 410, 507))
def clone(
    mas: Product, request: Request, session_id: SessionPath, body: Annotated[CloneBody | None, Body()] = None
) -> Response:
    """Copy a session's files and configuration into a new session, which is stopped unless `start` is true."""
    wanted = body or CloneBody()
    made = mas.clone(session_id, wanted.name, wanted.start)
    request.state.session_id = made.session_id
    return answer(made, 201, {"Location": f"/sessions/{made.session_id}"})


@router.post("/sessions/{sessionId}/rename", summary="Rename", **answers(SessionDetail, 200, 404, 409, 410, 507))
def rename(mas: Product, session_id: SessionPath, body: RenameBody) -> Response:
    """Give the session another name, not used by any session except deleted ones. Its agents keep running."""
    return answer(mas.rename(session_id, body.name))


@router.post("/sessions/{sessionId}/archive", summary="Archive", **answers(SessionInfo, 200, 404, 409, 410, 507))
def archive(mas: Product, session_id: SessionPath) -> Response:
    """Pack a stopped session into one verified file."""
    return answer(mas.archive(session_id))


@router.post("/sessions/{sessionId}/unarchive", summary="Unarchive", **answers(SessionDetail, 200, 404, 409, 507))
def unarchive(mas: Product, session_id: SessionReference) -> Response:
    """Bring an archived session back, stopped."""
    return answer(mas.unarchive(session_id))


@router.delete("/sessions/{sessionId}", summary="Delete", **answers(SessionInfo, 200, 404, 409, 410, 507))
def delete(mas: Product, session_id: SessionPath) -> Response:
    """Stop the session and move it to the trash. It can be undeleted until it is pruned."""
    return answer(mas.delete(session_id))


@router.post("/sessions/{sessionId}/undelete", summary="Undelete", **answers(SessionDetail, 200, 404, 409, 507))
def undelete(mas: Product, session_id: SessionReference) -> Response:
    """Bring a deleted session back, stopped."""
    return answer(mas.undelete(session_id))


@router.get("/sessions/{sessionId}/dry-run", summary="Try a verb", **answers(SessionInfo, 200, 404, 409, 410, 507))
def dry_run(mas: Product, session_id: SessionReference, verb: Annotated[Tryable, Query()]) -> Response:
    """The session as it is now, if the verb would be done to it; otherwise the verb's own refusal. Changes nothing."""
    return answer(mas.dry_run(verb, session_id))


@router.get("/sessions/{sessionId}/stats", summary="Resources of a session", **answers(SessionStats, 200, 404, 410))
def stats(mas: Product, session_id: SessionPath) -> Response:
    """CPU, memory and disk of a session and its agents. `cpu` is the average cores since the last request."""
    found = mas.stats(session_id).sessions
    if not found:
        raise NoSession(session_id)
    return answer(found[0])


@router.get("/resolve", summary="Find a session", **answers(SessionInfo, 200, 404, 410))
def resolve(mas: Product, reference: Annotated[str, Query(min_length=1, max_length=64)]) -> Response:
    """The session with this name, UUID (the first 4 characters are enough) or `mas-xxxxxxxx`."""
    session_id = mas.resolve(reference)
    found = [info for info in mas.list(agents=True).sessions if info.session_id == session_id]
    if not found:
        raise NoSession(SessionId(session_id))
    return answer(found[0])
