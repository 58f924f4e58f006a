"""About the server: teams, providers, health, metrics, and its documentation."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse

from mas import __version__
from mas.http.dependencies import Caller, Product, Server
from mas.http.docs import page
from mas.http.threads import in_thread
from mas.http.wire import answer, answers, refused
from mas.model.catalog import ProviderList, TeamList
from mas.model.principal import NOBODY
from mas.model.server import Health

router = APIRouter(tags=["about"])
_METRICS = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/health", summary="Liveness", **answers(Health))
async def health(server: Server, caller: Caller) -> Response:
    """Whether the server works; with a token also its version, and which isolation a session started now would get.

    `degraded` means that the background tasks in `failing` raised an error; each is started again after a pause.
    """
    failing = server.supervisor.failing
    status = "degraded" if failing else "ok"
    if caller is NOBODY:
        return answer(Health(status, failing=failing))
    return answer(Health(status, __version__, await in_thread(server.mas.isolation), failing))


@router.get("/teams", summary="List teams", **answers(TeamList))
def teams(mas: Product) -> Response:
    """The teams that a session can be started with."""
    return answer(TeamList(mas.teams()))


@router.get("/providers", summary="List providers", **answers(ProviderList))
def providers(mas: Product) -> Response:
    """The agent programs that MAS knows, and which of them are installed on this machine."""
    return answer(ProviderList(mas.providers()))


@router.get(
    "/metrics",
    summary="Metrics for Prometheus",
    response_class=PlainTextResponse,
    responses={200: {"content": {"text/plain": {}}, "description": "Metrics"}, **refused()},
)
def metrics(server: Server) -> Response:
    """Sessions by status, agents and messages by state, request times, event-loop lag, disk."""
    return Response(server.metrics.text(), media_type=_METRICS)


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    """The API, for people to read."""
    return HTMLResponse(page(request.app.openapi()))
