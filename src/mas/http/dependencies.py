"""What routes take from the app: the server's state, the product, and who asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from mas.http.state import ServerState
from mas.http.threads import in_thread
from mas.http.wire import SessionQuery, SessionReference
from mas.model.errors import NoSession
from mas.model.ids import SessionId, is_session_id, parse_reference
from mas.model.principal import Principal
from mas.service.mas import Mas


async def _server(connection: HTTPConnection) -> ServerState:
    server: ServerState = connection.app.state.server
    return server


Server = Annotated[ServerState, Depends(_server)]


async def _product(server: Server) -> Mas:
    return server.mas


async def _caller(request: Request) -> Principal:
    principal: Principal = request.state.principal
    return principal


async def _session(server: Server, request: Request, reference: SessionReference) -> str:
    """The full id of the session that the address names; only a name has to be looked up."""
    session_id = await _full_id(server.mas, reference)
    # For the log of that session.
    request.state.named_session = session_id
    return session_id


async def _filter(server: Server, reference: SessionQuery = None) -> str | None:
    return None if reference is None else await _full_id(server.mas, reference)


async def _full_id(mas: Mas, reference: str) -> str:
    return reference if is_session_id(reference) else await in_thread(full_id, mas, parse_reference(reference))


def full_id(mas: Mas, reference: str) -> SessionId:
    """The full id of the session that `reference` means. What is a full id already may be that of no session."""
    exact = reference.lower()
    return SessionId(exact) if is_session_id(exact) else mas.resolve(reference)


SessionPath = Annotated[str, Depends(_session)]
OnlySession = Annotated[str | None, Depends(_filter)]
Product = Annotated[Mas, Depends(_product)]
Caller = Annotated[Principal, Depends(_caller)]


@contextmanager
def known(mas: Mas, session_id: str) -> Iterator[SessionId]:
    """A session by its full id; where it is not in the registry, an error that says where it is kept instead."""
    try:
        yield SessionId(session_id)
    except NoSession:
        mas.resolve(session_id)
        raise
