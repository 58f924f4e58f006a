"""The API's JSON shapes: all request and response bodies, in camelCase."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from fastapi import Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field, create_model

from mas.model.forwards import LARGEST_PORT
from mas.model.message import LARGEST, DeliveryState, Until
from mas.model.network_view import PlaceList
from mas.model.schema import reference_to
from mas.model.self_report import LONGEST_REPORT, Reported
from mas.model.session import Gone, Status
from mas.model.state import State
from mas.model.views import camel, wire

_LONGEST_REFERENCE = 64
_REFERENCE = "The session: its name, `mas-xxxxxxxx`, or its UUID (the first 4 characters are enough)"
SessionReference = Annotated[
    str, Path(alias="sessionId", min_length=1, max_length=_LONGEST_REFERENCE, description=_REFERENCE)
]
SessionQuery = Annotated[
    str | None, Query(alias="sessionId", min_length=1, max_length=_LONGEST_REFERENCE, description=_REFERENCE)
]
AgentPath = Annotated[str, Path(pattern="^[0-9]{2}$", description="The agent: two digits, such as 00 or 21")]
PROBLEM = "application/problem+json"


class Body(BaseModel):
    """A request's body."""

    model_config = ConfigDict(alias_generator=camel, extra="forbid", strict=True)


class CloneBody(Body):
    """How to clone a session."""

    name: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    start: bool = False


class RenameBody(Body):
    """The new name of a session."""

    name: Annotated[str, Field(min_length=1, max_length=64)]


TARGET = "^([0-9]{2}|[a-z][a-z0-9_-]{0,31})$"


class RestartBody(Body):
    """How to restart an agent."""

    force: Annotated[bool, Field(description="End its program first if that is running")] = False


class MessageBody(Body):
    """A message to agents, or from an agent to a person."""

    target: Annotated[str, Field(pattern=TARGET, description="An agent, a unit, `managers`, `all` or `person`")]
    message: Annotated[str, Field(min_length=1, max_length=LARGEST)]
    sender: Annotated[str, Field(pattern="^[0-9]{2}$", description="The sending agent; default: a person")] | None = (
        None
    )
    id: (
        Annotated[str, Field(pattern="^m-[0-9a-f]{16}$", description="If it was sent before, nothing is typed")] | None
    ) = None
    force: Annotated[bool, Field(description="Type it even if the agent is not idle")] = False
    wait: Annotated[float, Field(ge=0, le=60, description="Wait at most this many seconds for delivery")] = 0.0


class WaitQuery(BaseModel):
    """What to wait for."""

    # Not strict: all that a query has is text.
    model_config = ConfigDict(alias_generator=camel, extra="forbid")

    target: Annotated[str, Field(pattern=TARGET)] = "all"
    until: Annotated[Until, Field(description="`answered`: one has replied, or all are idle")] = "idle"
    timeout: Annotated[float, Field(ge=0, le=60, description="Seconds")] = 60.0
    asker: Annotated[str, Field(pattern="^[0-9]{2}$", description="The agent that a reply is for")] | None = None
    after: Annotated[str, Field(pattern="^m-[0-9a-f]{16}$", description="Replies after this message")] | None = None


class ReportBody(Body):
    """What an agent reports about itself."""

    text: Annotated[str, Field(min_length=1, max_length=LONGEST_REPORT)]
    state: Reported | None = None


class NetworkBody(Body):
    """Names to add to a list of what agents may reach, or to remove from it."""

    kind: PlaceList
    places: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=300)]],
        Field(min_length=1, max_length=250, description="`git.example.com`, `*.example.com`, `db.example.com:5432`"),
    ]
    remove: bool = False


_Port = Annotated[int, Field(ge=1, le=LARGEST_PORT)]


class ForwardBody(Body):
    """The port inside a session's network that a forward leads to."""

    port: _Port
    local: Annotated[_Port | None, Field(description="The port of the server's machine; default: a free one")] = None
    any_user: Annotated[bool, Field(description="For programs of all users of the machine")] = False


class PruneBody(Body):
    """Which sessions to prune. A dry run unless `dryRun` is false."""

    older_than: Annotated[float | None, Field(ge=0, le=1e10, description="Seconds since its last activity")] = None
    keep: Annotated[
        int | None, Field(ge=0, le=1_000_000, description="Keep this many of the newest sessions of each status")
    ] = None
    statuses: Annotated[list[str], Field(description="Only these statuses; empty: all but archived")] = []
    policy: Annotated[bool, Field(description="Follow `retention` in the workspace's config.json instead")] = False
    dry_run: bool = True


class MigrateBody(Body):
    """Where old sessions are; default: this workspace and `~/.mas`."""

    source: str | None = None
    dry_run: bool = True


class RepairBody(Body):
    """Whether to repair, or only to show what would be repaired."""

    dry_run: bool = True


_KeyName = Annotated[str, Field(pattern="^[0-9a-f]{32}$", description="The name of a key")]
_Nonce = Annotated[str, Field(pattern="^[0-9a-f]{32}$", description="Random, from the page")]


class HelloBody(Body):
    """What a page asks the server to prove."""

    nonce: _Nonce
    keys: Annotated[list[_KeyName], Field(min_length=1, max_length=16)]


class ProofBody(Body):
    """A page's proof that it has a key: an HMAC with it of `page`, the key's name, the host, nonce and challenge."""

    key: _KeyName
    nonce: _Nonce
    challenge: Annotated[str, Field(max_length=200, description="From the server's greeting")]
    proof: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class TicketBody(Body):
    """The address that a ticket opens."""

    target: Annotated[str, Field(pattern="^/", max_length=16_384, description="A path with its query")]


class Problem(BaseModel):
    """Why a request was refused (RFC 9457); `code` is stable and for programs, `detail` is for people."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    hint: str = ""
    errors: list[dict[str, Any]] = []
    request_id: Annotated[str, Field(alias="requestId")] = ""


class EventFields(BaseModel):
    """What every event tells."""

    model_config = ConfigDict(alias_generator=camel, extra="allow")

    id: str
    at: str
    session_id: str = ""
    agent: str = ""


def _event(name: str, about: str, /, **details: Any) -> type[EventFields]:  # noqa: ANN401 - types
    """An event with these details; those that may be None can be missing."""
    fields: dict[str, Any] = {one: (hint, None if NoneType in get_args(hint) else ...) for one, hint in details.items()}
    fields["event"] = (Literal[name], ...)
    return create_model(f"{name.capitalize()}Event", __base__=EventFields, __doc__=about, **fields)


EVENTS = (
    _event("session", "A session changed its status, or was renamed.", status=Status | Gone, name=str | None),
    _event("agent", "An agent is in another state.",
           state=State, state_text=str, state_source=str, kind=str, exit_status=int | None),
    _event("message", "A message has come a step further, with the agent that is named.",
           message_id=str, target=str, sender=str | None, state=DeliveryState),
    _event("report", "An agent said what it is doing.", text=str, state=State | None),
    _event("approval", "What an agent asked for was answered.", allowed=bool, by=str, kind=str, text=str),
    _event("turn", "An agent finished a turn of its conversation.",
           turn=str, conversation=str, text=str, model=str | None, tools=int, tokens=dict[str, int],
           started_at=str, ended_at=str),
    _event("network", "An agent asked for a name that it may not reach; `remedy` is the list that would allow it.",
           name=str, port=int | None, result=Literal["refused"], reason=str, remedy=PlaceList | None),
    _event("warning", "Something was found wrong.", text=str),
    _event("retention", "The retention policy moved a session, or removed one for good.", action=str, reason=str),
)  # fmt: skip
_Event = Annotated[Union[EVENTS], Field(discriminator="event")]  # type: ignore[valid-type] # noqa: UP007 - made while running


class EventFieldsPage(BaseModel):
    """Events in order. Continue after `last`; `gap` means that events before these are lost."""

    events: list[_Event]
    last: str
    gap: bool


@cache
def shape(kind: type) -> type[BaseModel]:
    """The wire shape of one of the model's values, for the documentation of the API."""
    fields: dict[str, Any] = {camel(name): (_wired(hint), ...) for name, hint in get_type_hints(kind).items()}
    return create_model(kind.__name__, __config__=ConfigDict(extra="forbid"), __doc__=kind.__doc__, **fields)


def _wired(hint: Any) -> Any:  # noqa: ANN401 - a type of any kind
    origin, inner = get_origin(hint), get_args(hint)
    if origin is tuple:
        return list[_wired(inner[0])]  # type: ignore[misc] # a type made while running
    if origin is dict:
        return dict[str, _wired(inner[1])]  # type: ignore[misc]
    if origin in (Union, UnionType):
        return Union[tuple(_wired(option) for option in inner)]  # noqa: UP007 - made while running
    return shape(hint) if isinstance(hint, type) and hasattr(hint, "_fields") else hint


def answers(kind: type, status: int = 200, *refusals: int) -> dict[str, Any]:
    """A route's documentation: what it returns, and its refusals in addition to those of every route."""
    responses: dict[int | str, dict[str, Any]] = {status: {"model": shape(kind)}}
    return {"status_code": status, "response_model": None, "responses": responses | refused(*refusals)}


def refused(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The documentation of refusals."""
    body = {"content": {PROBLEM: {"schema": reference_to("Problem")}}}
    return {status: body | {"description": _MEANING[status]} for status in sorted({*_ALWAYS, *statuses})}


def answer(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A value of the model as the answer. No second look at its shape: a test and the fuzzer see to that."""
    return Response(rendered(value), status, headers, "application/json")


def rendered(value: object) -> bytes:
    """A value of the model as JSON."""
    text = json.dumps(wire(value), ensure_ascii=False, separators=(",", ":"))
    # Text of a terminal may hold halves of characters, which UTF-8 cannot.
    return text.encode("utf-8", "replace")


_ALWAYS = (400, 401, 403, 413, 422, 429, 500, 503)
_MEANING = {
    400: "The server does not understand the request",
    401: "The token is missing or wrong",
    403: "This token, Host or Origin is not allowed",
    404: "No such session or agent",
    408: "The body did not arrive in time",
    409: "The session is busy, or in a state that does not allow this",
    410: "The session is archived",
    413: "The body is too large",
    422: "Bad input",
    429: "Too many requests",
    500: "A file is damaged, or the server failed",
    503: "tmux does not respond",
    507: "The disk is full",
}
