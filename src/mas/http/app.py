"""The app: the product's routes with the guard in front of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Protocol

from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from mas import __version__
from mas.http import (
    about,
    agents,
    approvals,
    browser,
    events,
    files,
    forwards,
    maintenance,
    messages,
    network,
    runs,
    sessions,
    terminal,
)
from mas.http.errors import add_handlers
from mas.http.state import ServerState
from mas.http.threads import CallerThreads, in_thread
from mas.http.wire import Problem
from mas.model.run import RunBody
from mas.model.schema import body_of
from mas.service.mas import Mas
from mas.service.shares import Shares

_ABOUT = "Teams of command-line agents, each team in an isolated session of its own."
# Events say when a message can go on; the rounds find what was missed.
_BETWEEN_ROUNDS = 5.0
_BETWEEN_DISK_LOOKS = 5.0
# How long a server that starts waits for work that was cut short to be finished.
_FOR_RECOVERY = 10.0
_BETWEEN_RETENTIONS = 600.0
_GROUPS = (
    runs,
    sessions,
    agents,
    approvals,
    messages,
    files,
    network,
    forwards,
    events,
    terminal,
    maintenance,
    about,
    browser,
)


class Door(Protocol):
    """Another way to the product at a path of its own, behind the same guard."""

    async def run(self) -> None:
        """What it does besides answering requests, until cancelled."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""


# Each is made with the product, the shares of calls that wait, and what runs work in a thread for a caller.
Doors = Mapping[str, Callable[[Mas, Shares, CallerThreads], Door]]


def create_app(server: ServerState, doors: Doors) -> FastAPI:
    """All routes, and `doors`: more ways to the product, each at its path. Who serves it puts the guard in front."""
    app = FastAPI(
        title="MAS",
        version=__version__,
        description=_ABOUT,
        docs_url=None,
        redoc_url=None,
        lifespan=lambda app: _running(app, server, doors),
    )
    app.state.server = server
    for group in _GROUPS:
        app.include_router(group.router)
    add_handlers(app)
    _describe(app)
    return app


@asynccontextmanager
async def _running(app: FastAPI, server: ServerState, doors: Doors) -> AsyncIterator[None]:
    """The background tasks, from before the first request until after the last."""
    workspace, supervisor = server.workspace, server.supervisor
    # Before the first request: a listing must not show work that is then undone.
    first = supervisor.start("first-recovery", partial(in_thread, workspace.finish_work))
    await asyncio.wait([first], timeout=_FOR_RECOVERY)
    supervisor.start("events", server.feed.run)
    supervisor.start("turns", server.turns.run)
    supervisor.start("loop", server.metrics.watch_loop)
    supervisor.start_every(_BETWEEN_ROUNDS, "courier", server.rounds.go)
    supervisor.start_every(_BETWEEN_DISK_LOOKS, "disk", workspace.watch_disk)
    supervisor.start_every(_BETWEEN_ROUNDS, "recovery", workspace.finish_work)
    supervisor.start_every(_BETWEEN_ROUNDS, "forwards", workspace.tidy_forwards)
    supervisor.start_every(_BETWEEN_RETENTIONS, "retention", workspace.retain)
    for path, make in doors.items():
        door = make(server.mas, server.waiters, server.threads)
        app.router.routes.append(Route(path, door, include_in_schema=False))
        supervisor.start(path.strip("/"), door.run)
    try:
        yield
    finally:
        server.feed.close()
        await supervisor.stop()


def _describe(app: FastAPI) -> None:
    """Add to the API's description what all calls share, refusals and the token, and the body that the model reads."""
    made = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = made()
            parts = schema["components"]
            run, bodies = body_of(RunBody)
            schema["paths"]["/runs"]["post"]["requestBody"] = {"content": {"application/json": {"schema": run}}}
            schemas = dict(sorted((parts["schemas"] | bodies).items()))
            parts["schemas"] = schemas | {"Problem": Problem.model_json_schema()}
            parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            schema["security"] = [{"token": []}]
            for verb, path in (("get", "/health"), ("post", "/browser/hello"), ("post", "/browser/bearer")):
                schema["paths"][path][verb]["security"] = []
            for unused in ("HTTPValidationError", "ValidationError"):
                parts["schemas"].pop(unused, None)
        return app.openapi_schema or schema

    app.openapi = described  # type: ignore[method-assign] # how FastAPI lets it be extended
