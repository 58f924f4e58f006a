"""Tickets in requests: what a browser opens without headers has one in its address, or as a subprotocol."""

from __future__ import annotations

from starlette.requests import HTTPConnection

from mas.http.guard.record import method_of

# The subprotocol that is spoken; beside it a page offers its ticket, which is no protocol and is never chosen.
PROTOCOL = "mas"
_TICKET = "ticket."
_IN_QUERY = "ticket="


def ticket_in(request: HTTPConnection) -> tuple[str, str]:
    """The address that is asked for, without its ticket, and the ticket; empty if there is none."""
    path = request.scope["raw_path"].decode("latin-1")
    query = request.scope["query_string"].decode("latin-1")
    if method_of(request.scope) == "WEBSOCKET":
        offered = (word.strip() for word in request.headers.get("sec-websocket-protocol", "").split(","))
        return path, next((word.removeprefix(_TICKET) for word in offered if word.startswith(_TICKET)), "")
    rest, found, ticket = query.rpartition(_IN_QUERY)
    if not found or method_of(request.scope) != "GET" or (rest and not rest.endswith("&")):
        return path, ""
    return f"{path}?{rest[:-1]}" if rest else path, ticket


def shown_host(request: HTTPConnection) -> str:
    """The host and port in the browser's address."""
    return request.headers.get("host", "").lower()


def chosen_protocol(request: HTTPConnection) -> str | None:
    """The subprotocol to accept: a browser closes a connection whose offer was not taken up."""
    offered = request.headers.get("sec-websocket-protocol", "")
    return PROTOCOL if PROTOCOL in (word.strip() for word in offered.split(",")) else None
