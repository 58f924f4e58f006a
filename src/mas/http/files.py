"""`/sessions/{id}/files`: look into a session's directory."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query, Response

from mas.http.product import Product, known
from mas.http.wire import SessionPath, answer, answers, refused
from mas.model.files import FileListing

router = APIRouter(tags=["files"])

FilePath = Annotated[str, Query(max_length=4096, description="Relative to the session's directory")]


@router.get("/sessions/{sessionId}/files", summary="List files", **answers(FileListing, 200, 404, 410))
def files(mas: Product, session_id: SessionPath, path: FilePath = "") -> Response:
    """What is in a directory below `unit`, `workflows` or `logs`. Links are shown, never followed."""
    with known(mas, session_id) as session:
        return answer(mas.files(session, path))


@router.get(
    "/sessions/{sessionId}/file",
    summary="Read a file",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}, "description": "The bytes"}, **refused(404, 410)},
)
def file(
    mas: Product,
    session_id: SessionPath,
    path: Annotated[FilePath, Query(min_length=1)],
    offset: Annotated[int, Query(ge=0, le=1 << 50)] = 0,
    most: Annotated[int, Query(ge=1, le=4 << 20)] = 1 << 20,
) -> Response:
    """Up to `most` bytes of a file from `offset` on; `X-File-Size` tells how many there are."""
    with known(mas, session_id) as session:
        part = mas.file(session, path, offset, most)
    name = quote(part.path.rpartition("/")[2])
    headers = {
        "X-File-Size": str(part.size),
        # Never shown as a page of ours: an agent may have written it.
        "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
    }
    return Response(part.data, 200, headers, "application/octet-stream")
