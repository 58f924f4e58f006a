"""What agents of a session reach: what people see of it, and what they change."""

from enum import StrEnum
from ipaddress import ip_address
from typing import Literal, NamedTuple

from mas.model.errors import BadInput
from mas.model.ids import shown
from mas.model.isolation import NetworkMode
from mas.model.network import ALLOW, LOCALHOST, is_address, parse_place

PlaceList = Literal["allow", "private"]


class Outcome(StrEnum):
    """What came of a request for a name."""

    REFUSED = "refused"
    FAILED = "failed"
    FOUND = "found"
    CONNECTED = "connected"


class NetworkRequest(NamedTuple):
    """A name that an agent asked for, and what came of it the last time.

    Without a `port` it was only looked up. `place` is what `remedy`, a list of the policy, would have to name.
    """

    agent: str | None
    """None if its process had closed the connection before it was looked for."""
    name: str
    port: int | None
    result: Outcome
    reason: str
    times: int
    """At least: a request that is repeated within a minute is counted with the next one."""
    last_at: str
    place: str
    remedy: PlaceList | None = None


class NetworkView(NamedTuple):
    """What the agents of a session reach, why, and a page of what they asked for; refused requests come first."""

    session_id: str
    mode: NetworkMode
    reason: str
    is_recorded: bool
    """False in a shared network: then no request goes through MAS."""
    allow: tuple[str, ...]
    private: tuple[str, ...]
    requests: tuple[NetworkRequest, ...]
    total: int
    refused: int
    warnings: tuple[str, ...] = ()


class NetworkChange(NamedTuple):
    """Names that were added to a list of the policy, or removed from it; without a session, the workspace's."""

    session_id: str | None
    kind: PlaceList
    file: str
    changed: tuple[str, ...]
    unchanged: tuple[str, ...]
    places: tuple[str, ...]
    """What the list of that file has now."""
    removed: bool
    applied: bool
    """Whether agents that are running have it already."""
    note: str = ""
    """When it takes effect, or why not at once."""


def parse_places(kind: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """Places as a list of the policy has them; `BadInput` for one that would have no effect there."""
    if not words:
        raise BadInput("No name given", f"mas network {kind} example.com", field="places")
    return tuple(dict.fromkeys(_checked(kind, word) for word in words))


def _checked(kind: str, word: str) -> str:
    if "/" in word:
        host = word.partition("://")[2] or word
        host = host.partition("/")[0]
        raise BadInput(f"{shown(word)} is the address of a page: give its host", f"mas network {kind} {host}", "places")
    try:
        place = parse_place(word)
        is_public = not is_address(place.host) or ip_address(place.host).is_global
    except ValueError:
        raise BadInput(
            f"Not the name of a host, with or without a port: {shown(word)}",
            f"mas network {kind} git.example.com; or: '*.example.com', db.example.com:5432",
            "places",
        ) from None
    if kind == ALLOW and (place.host == LOCALHOST or not is_public):
        raise BadInput(
            f"{shown(word)} is no public name: it belongs to the private ones", f"mas network private {word}", "places"
        )
    return f"{place.host}:{place.port}" if place.port else place.host
