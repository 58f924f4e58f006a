"""Values come back from JSON as they went."""

from __future__ import annotations

import json

import pytest

from mas.client.unwire import unwire
from mas.model.agents import Variables
from mas.model.event import Event, event_fields, parse_event
from mas.model.message import Delivery, DeliveryState, Message, MessageList
from mas.model.session import AgentRun
from mas.model.upkeep import Check, Diagnosis, Pruned, PrunePlan
from mas.model.views import AgentView, SessionInfo, SessionList, wire
from mas.service.upkeep.prune import PrunePolicy

AGENT = AgentView("00", "meta", "Meta manager", "shell", None, "exited", "ended", "tmux", "%1", 7)
SESSION = SessionInfo("id", "mas-id", "Größe", "active", "", "", "/w", "/w/u", "/w/f", 1, None)
VALUES = (
    AGENT,
    SESSION,
    SessionList((SESSION, SESSION._replace(agents=(AgentRun("00", "meta", "r", "p"),))), 2, ("careful",)),
    Message("m-1", None, "all", "one\ntwo", "now", (Delivery("00", DeliveryState.TYPED, "now"),)),
    MessageList((), 0),
    Diagnosis((Check("tmux", True, "3.3a"),), ok=True),
    PrunePlan((Pruned("id", None, "stopped", "then", "trash", 4096),), done=False),
    Variables({"PATH": "/bin", "EMPTY": ""}),
    PrunePolicy(1.5, 3, ("stopped",)),
    PrunePolicy(7, None),
)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_survives_the_wire(value: object) -> None:
    back = unwire(type(value), json.loads(json.dumps(wire(value))))
    assert back == value
    assert repr(back) == repr(value)


def test_what_a_newer_server_adds_is_passed_over_and_what_an_older_lacks_has_its_default() -> None:
    body = wire(SESSION) | {"colour": "green"}
    del body["agents"]
    assert unwire(SessionInfo, body) == SESSION


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (SessionList, []),
        (SessionList, None),
        (SessionList, {"sessions": {}, "total": 0}),
        (SessionList, {"sessions": [], "total": "0"}),
        (SessionList, {"sessions": []}),
        (SessionList, {"sessions": [1], "total": 1}),
        (Delivery, {"agent": "00", "state": "lost", "at": ""}),
        (Delivery, {"agent": None, "state": "typed", "at": ""}),
        (Variables, {"variables": {"PATH": 1}}),
    ],
)
def test_what_cannot_have_been_such_a_value_is_refused(kind: type, body: object) -> None:
    with pytest.raises(ValueError):
        unwire(kind, body)


def test_an_event_survives_the_wire() -> None:
    for event in (
        Event("1.2", "now", "session", "id", None, {"status": "active"}),
        Event("1.3", "now", "message", "id", "21", {"messageId": "m-1", "sender": None, "state": "typed"}),
        Event("1.4", "now", "warning", None, None, {}),
    ):
        assert parse_event(json.loads(json.dumps(event_fields(event)))) == event
