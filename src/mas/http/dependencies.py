"""What routes take from the app: the server's state, the product, and who asks."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from mas.http.state import ServerState
from mas.http.threads import in_thread
from mas.http.wire import SessionQuery, SessionReference
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


async def _session(server: Server, request: Request, reference: SessionReference) -> SessionId:
    """The full id of the session that the address names; only a name has to be looked up."""
    # For the log of that session.
    request.state.named_session = session_id = await _full_id(server.mas, request, reference)
    return session_id


async def _filter(server: Server, request: Request, reference: SessionQuery = None) -> SessionId | None:
    return None if reference is None else await _full_id(server.mas, request, reference)


async def _full_id(mas: Mas, request: Request, reference: str) -> SessionId:
    is_id = is_session_id(reference)
    session_id = SessionId(reference) if is_id else await in_thread(full_id, mas, parse_reference(reference))
    # Should there be no such session, the refusal says where it is kept instead.
    request.state.asked_session = session_id
    return session_id


def full_id(mas: Mas, reference: str) -> SessionId:
    """The full id of the session that `reference` means. What is a full id already may be that of no session."""
    exact = reference.lower()
    return SessionId(exact) if is_session_id(exact) else mas.resolve(reference)


SessionPath = Annotated[SessionId, Depends(_session)]
OnlySession = Annotated[SessionId | None, Depends(_filter)]
Product = Annotated[Mas, Depends(_product)]
Caller = Annotated[Principal, Depends(_caller)]
