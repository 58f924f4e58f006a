"""`POST /runs`: start a session."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Header, Request, Response

from mas.http.dependencies import Product
from mas.http.wire import answer, answers
from mas.model.run import as_asked, asks_for_legacy, parse_run
from mas.model.teamfile import team_in
from mas.model.views import SessionDetail

router = APIRouter(tags=["sessions"])

_KEY = "A repeated key returns the session that the first request with it started; kept for a day"


@router.post("/runs", summary="Start a session", **answers(SessionDetail, 201, 404, 409, 410, 507))
def start(
    mas: Product,
    request: Request,
    body: Annotated[Any, Body()] = None,  # noqa: ANN401 - raw JSON
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=200, description=_KEY)] = None,
) -> Response:
    """Start a session: the default team of 13, a team by name, or a custom one. If an agent cannot start, none does."""
    asked = {} if body is None else body
    run = parse_run(asked, lambda name: team_in(mas.teams(), name))._replace(request=as_asked(asked))
    session = mas.start(run, legacy=asks_for_legacy(asked), key=idempotency_key)
    # So that the session's own log begins with the request that made it.
    request.state.session_id = session.session_id
    return answer(session, 201, {"Location": f"/sessions/{session.session_id}"})
