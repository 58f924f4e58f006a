"""`/sessions/{id}/files`: a session's files, and the templates that they were copied from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse

from mas.http.dependencies import Product, SessionPath
from mas.http.wire import answer, answers, refused
from mas.model.errors import MasError
from mas.model.files import FileListing, FilePart
from mas.model.ids import SessionId
from mas.service.mas import Mas

router = APIRouter(tags=["files"])

FilePath = Annotated[str, Query(max_length=4096, description="A path relative to the session's directory")]
Offset = Annotated[int, Query(ge=0, le=1 << 50)]
Most = Annotated[int, Query(ge=1, le=4 << 20)]
_PIECE = 1 << 20


@router.get("/sessions/{sessionId}/files", summary="List files", **answers(FileListing, 200, 404, 410))
def files(mas: Product, session_id: SessionPath, path: FilePath = "") -> Response:
    """What is in a directory below `unit`, `workflows` or `logs`. Links are shown, never followed."""
    return answer(mas.files(session_id, path))


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
    offset: Offset = 0,
    most: Most = 1 << 20,
) -> Response:
    """Up to `most` bytes of a file, starting at `offset`. The header `X-File-Size` has the size of the file."""
    return _bytes(mas.file(session_id, path, offset, most))


@router.get(
    "/sessions/{sessionId}/download",
    summary="Download a file",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}, "description": "The bytes"}, **refused(404, 410)},
)
def download(mas: Product, session_id: SessionPath, path: Annotated[FilePath, Query(min_length=1)]) -> Response:
    """A whole file of any size; what is added to it during the download is not sent."""
    first = mas.file(session_id, path, 0, _PIECE)
    headers = {**_headers(first), "Content-Length": str(first.size)}
    return StreamingResponse(_all_of(mas, session_id, first), 200, headers, "application/octet-stream")


def _all_of(mas: Mas, session: SessionId, part: FilePart) -> Iterator[bytes]:
    """Piece by piece; ends too early, which the other end notices, where the file has become shorter or is gone."""
    size, sent = part.size, 0
    while part.data:
        yield part.data[: size - sent]
        sent += len(part.data)
        if sent >= size:
            return
        try:
            part = mas.file(session, part.path, sent, _PIECE)
        except MasError:
            return


@router.get(
    "/template-file",
    summary="Read a template",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": {}}, "description": "The bytes"}, **refused(404)},
)
def template_file(
    mas: Product,
    path: Annotated[str, Query(min_length=1, max_length=4096, description="A path relative to the workspace")],
    offset: Offset = 0,
    most: Most = 1 << 20,
) -> Response:
    """Part of a template: a file below `unit` or `workflows` that new sessions get a copy of."""
    return _bytes(mas.template_file(path, offset, most))


def _bytes(part: FilePart) -> Response:
    return Response(part.data, 200, _headers(part), "application/octet-stream")


def _headers(part: FilePart) -> dict[str, str]:
    name = quote(part.path.rpartition("/")[2])
    return {
        "X-File-Size": str(part.size),
        # Never shown as a page of ours: an agent may have written it.
        "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
    }
