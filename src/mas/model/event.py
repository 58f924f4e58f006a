"""Events: what happened in a workspace, sent to every listener."""

from typing import Any, Literal, NamedTuple, get_args

# A session changed its status, an agent its state; a message went its way; an agent reported what it is doing, or was
# answered, or may not reach what it asked for; it finished a turn of its conversation; something was found wrong; the
# retention policy moved or removed a session.
EventKind = Literal["session", "agent", "message", "report", "approval", "turn", "network", "warning", "retention"]
KINDS: tuple[str, ...] = get_args(EventKind)


class Event(NamedTuple):
    """One event. A listener continues after its `id`; `details` have the names of the API."""

    id: str
    at: str
    event: str
    session_id: str | None
    agent: str | None
    details: dict[str, Any]


class EventPage(NamedTuple):
    """Events in order, and the id to continue after.

    `gap` means that events before these are lost: they were too old, or the given id is unknown.
    """

    events: tuple[Event, ...]
    last: str
    gap: bool


def event_fields(event: Event) -> dict[str, Any]:
    """An event as JSON would have it, its details beside the rest."""
    known = {"id": event.id, "at": event.at, "event": event.event}
    if event.session_id is not None:
        known["sessionId"] = event.session_id
    if event.agent is not None:
        known["agent"] = event.agent
    # Its own come first, and no detail can pass for one of them.
    return known | event.details | known


def parse_event(fields: dict[str, Any]) -> Event:
    """The event that `event_fields` wrote; `KeyError` if it cannot have been one."""
    known = ("id", "at", "event", "sessionId", "agent")
    details = {name: value for name, value in fields.items() if name not in known}
    return Event(fields["id"], fields["at"], fields["event"], fields.get("sessionId"), fields.get("agent"), details)
