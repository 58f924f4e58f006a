"""The app: the product's routes with the guard in front of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from threading import ExceptHookArgs
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from mas import __version__
from mas.http import (
    about,
    agents,
    approvals,
    events,
    files,
    maintenance,
    messages,
    page,
    runs,
    sessions,
    signin,
    terminal,
)
from mas.http.errors import add_handlers
from mas.http.events import EventFeed
from mas.http.guard import Guard
from mas.http.limits import Limits
from mas.http.metrics import Metrics
from mas.http.periodic import Rounds
from mas.http.supervisor import Supervisor
from mas.http.threads import in_thread
from mas.http.viewer import Hall
from mas.http.wire import Problem
from mas.service.access import Access
from mas.service.mas import Mas
from mas.service.messages.courier import Courier
from mas.service.messages.waiters import Waiters

_ABOUT = "Teams of command-line agents, each team in an isolated session of its own."
# Whatever is worth a message's going on is told as an event; the rounds are for what was missed.
_BETWEEN_ROUNDS = 5.0
_BETWEEN_DISK_LOOKS = 5.0
# How long a server that starts waits for work that was cut short to be finished.
_FOR_RECOVERY = 10.0
_BETWEEN_RETENTIONS = 600.0
_GROUPS = (runs, sessions, agents, approvals, messages, files, events, terminal, maintenance, about, signin, page)


class Door(Protocol):
    """Another way to the product at a path of its own, behind the same guard."""

    async def run(self) -> None:
        """What it does beside answering, until cancelled."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""


Doors = Mapping[str, Callable[[Mas, Waiters], Door]]


class Parts(NamedTuple):
    """What an app is made of: `events` is where new ones show, `told` hears of every request that is over.

    `doors` makes, for a path each, more ways to the product.
    """

    mas: Mas
    courier: Courier
    access: Access
    url: str
    hosts: tuple[str, ...]
    events: str
    limits: Limits
    told: Callable[[dict[str, Any]], None]
    doors: Doors = MappingProxyType({})
    watch_disk: Callable[[], None] = lambda: None
    finish_work: Callable[[], None] = lambda: None
    retain: Callable[[], None] = lambda: None

    @property
    def cookie(self) -> str:
        """Browsers do not keep the cookies of two ports apart: the name has to."""
        return f"mas-{urlsplit(self.url).port}"


def create_app(parts: Parts) -> FastAPI:
    """All routes; whoever serves it puts the guard in front."""
    metrics = Metrics(parts.mas)
    waiters = Waiters(parts.limits.waiters)
    supervisor = Supervisor(metrics.task_started, metrics.task_failed)
    rounds = Rounds(parts.courier)

    def thread_failed(failure: ExceptHookArgs) -> None:
        supervisor.thread_failed(failure)
        # It may have been one that took messages to an agent: they are looked for again.
        rounds.begin_again()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        feed = app.state.feed = EventFeed(parts.mas, parts.events, parts.courier.hear, rounds.begin_again)
        # Before anybody is answered: what a listing shows and is then undone would be missed.
        first = supervisor.start("first-recovery", partial(in_thread, parts.finish_work))
        await asyncio.wait([first], timeout=_FOR_RECOVERY)
        supervisor.start("events", feed.run)
        supervisor.start("loop", metrics.watch_loop)
        supervisor.start_every(_BETWEEN_ROUNDS, "courier", rounds.go)
        supervisor.start_every(_BETWEEN_DISK_LOOKS, "disk", parts.watch_disk)
        supervisor.start_every(_BETWEEN_ROUNDS, "recovery", parts.finish_work)
        supervisor.start_every(_BETWEEN_RETENTIONS, "retention", parts.retain)
        for path, make in parts.doors.items():
            door = make(parts.mas, waiters)
            app.router.routes.append(Route(path, door, include_in_schema=False))
            supervisor.start(path.strip("/"), door.run)
        try:
            yield
        finally:
            feed.close()
            await supervisor.stop()

    app = FastAPI(
        title="MAS", version=__version__, description=_ABOUT, docs_url=None, redoc_url=None, lifespan=lifespan
    )
    app.state.mas = parts.mas
    app.state.access = parts.access
    app.state.metrics = metrics
    app.state.supervisor = supervisor
    app.state.thread_failed = thread_failed
    app.state.hall = Hall(supervisor)
    app.state.page = page.Page()
    app.state.waiters = waiters
    app.state.url = parts.url
    app.state.cookie = parts.cookie
    for group in _GROUPS:
        app.include_router(group.router)
    add_handlers(app)
    _describe(app)
    return app


def guarded(app: FastAPI, parts: Parts) -> ASGIApp:
    """The app with the guard in front of it."""

    def told(record: dict[str, Any]) -> None:
        app.state.metrics.request(record["method"], record.pop("route"), record["status"], record["seconds"])
        parts.told(record)

    async def counted(scope: Scope, receive: Receive, send: Send) -> None:
        with app.state.metrics.open_stream(scope):
            await app(scope, receive, send)

    return Guard(counted, parts.access, parts.hosts, parts.cookie, parts.limits, told)


def close_streams(app: FastAPI) -> None:
    """End what would go on for ever, so that the server can."""
    app.state.feed.close()


def _describe(app: FastAPI) -> None:
    """Add to the API's description what all calls share: refusals and the token."""
    made = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = made()
            parts = schema.setdefault("components", {})
            parts.setdefault("schemas", {})["Problem"] = Problem.model_json_schema(
                by_alias=True, ref_template="#/components/schemas/{model}"
            )
            parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            schema["security"] = [{"token": []}]
            schema["paths"]["/health"]["get"]["security"] = []
            for unused in ("HTTPValidationError", "ValidationError"):
                parts["schemas"].pop(unused, None)
        return app.openapi_schema or schema

    app.openapi = described  # type: ignore[method-assign] # how FastAPI lets it be extended
