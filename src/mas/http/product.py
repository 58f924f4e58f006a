"""What routes take from the app: the product, and who asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from fastapi import Depends, Request

from mas.model.errors import NoSession
from mas.model.ids import SessionId
from mas.model.principal import Principal
from mas.service.mas import Mas


def _product(request: Request) -> Mas:
    mas: Mas = request.app.state.mas
    return mas


def _caller(request: Request) -> Principal:
    principal: Principal = request.state.principal
    return principal


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
