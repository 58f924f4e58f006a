"""Values come back from JSON and TOML as they went; what is wrong is refused by the place of its field."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Literal, NamedTuple

import pytest

from mas.model.agents import Variables
from mas.model.errors import BadInput
from mas.model.event import Event, event_fields, parse_event
from mas.model.fields import FLAT, NOT_WRITTEN, Rule
from mas.model.isolation import SIZE, Isolation, Mode, Policy
from mas.model.message import Delivery, DeliveryState, Message, MessageList
from mas.model.schema import body_of
from mas.model.session import AgentRun
from mas.model.shapes import read, unwire, write
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


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Wheel(NamedTuple):
    """A made-up value with a field of each kind."""

    spokes: Annotated[int, Rule("a whole number from 1 to 99", least=1, most=99)]
    outer_size: Annotated[int | None, SIZE] = None
    colour: Colour = Colour.RED
    made_in: Literal["here", "there"] | None = None


class Lamp(NamedTuple):
    """Another, that stands within a third."""

    is_on: bool = False
    lens_kind: str = "clear"


class Bicycle(NamedTuple):
    """A third that holds both."""

    frame_name: Annotated[str, Rule("one word", pattern="[a-z]+")]
    wheels: tuple[Wheel, ...] = ()
    lamp: Annotated[Lamp, FLAT] = Lamp()
    front: Annotated[Wheel, Rule(without=("made_in",))] = Wheel(1)
    paint: Annotated[Wheel, Rule(word="colour")] = Wheel(1)
    labels: tuple[tuple[Annotated[str, Rule("lower-case", test=str.islower)], str], ...] = ()
    weight: float | None = None
    secret: Annotated[str, NOT_WRITTEN] = "mine"


WHOLE = Bicycle(
    "swift",
    (Wheel(20, 2 << 20, Colour.BLUE), Wheel(3, 7, made_in="there")),
    Lamp(True),
    Wheel(9),
    labels=(("owner", "Ann"), ("town", "")),
    weight=9.5,
)
WRITTEN = {
    "frameName": "swift",
    "wheels": [{"spokes": 20, "outerSize": "2MiB", "colour": "blue"}, {"spokes": 3, "outerSize": 7, "madeIn": "there"}],
    "isOn": True,
    "front": {"spokes": 9},
    "labels": {"owner": "Ann", "town": ""},
    "weight": 9.5,
}


def test_a_value_is_written_without_its_usual_fields_and_read_back_as_the_same() -> None:
    assert json.loads(json.dumps(write(WHOLE))) == WRITTEN
    assert read(Bicycle, WRITTEN) == WHOLE
    assert write(Bicycle("a")) == {"frameName": "a"}
    assert read(Bicycle, {"frameName": "a", "wheels": None, "weight": None}) == Bicycle("a")


def test_the_spelling_is_that_of_json_or_of_toml() -> None:
    toml = write(WHOLE, snake=True)
    assert (toml["frame_name"], toml["wheels"][0]["outer_size"], toml["is_on"]) == ("swift", "2MiB", True)
    assert read(Bicycle, toml, snake=True) == WHOLE
    # A team file once could have either.
    assert read(Bicycle, WRITTEN, snake=True) == WHOLE
    with pytest.raises(BadInput, match="frame_name and frameName in a bicycle are the same"):
        read(Bicycle, {"frame_name": "a", "frameName": "b"}, called="a bicycle", snake=True)
    with pytest.raises(BadInput, match=r"wheels\[0\]\.outer_size is 'wide'"):
        read(Bicycle, {"frame_name": "a", "wheels": [{"spokes": 1, "outer_size": "wide"}]}, snake=True)


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ([], "", "A bicycle must be an object"),
        ({}, "frameName", "frameName is missing"),
        ({"frameName": None}, "frameName", "frameName must be one word"),
        ({"frameName": "a b"}, "frameName", "frameName is 'a b'; it must be one word"),
        ({"frameName": "a", "frame_name": "a"}, "frame_name", "Unknown field 'frame_name' in a bicycle (known: frameN"),
        ({"frameName": "a", "secret": "x"}, "secret", "Unknown field 'secret' in a bicycle"),
        ({"frameName": "a", "wheels": {}}, "wheels", "wheels must be a list"),
        ({"frameName": "a", "wheels": [7]}, "wheels[0]", "wheels[0] must be an object"),
        ({"frameName": "a", "wheels": [{}]}, "wheels[0].spokes", "wheels[0].spokes is missing"),
        ({"frameName": "a", "wheels": [{"spokes": True}]}, "wheels[0].spokes", "must be a whole number from 1 to 99"),
        ({"frameName": "a", "wheels": [{"spokes": 1.0}]}, "wheels[0].spokes", "must be a whole number from 1 to 99"),
        ({"frameName": "a", "wheels": [{"spokes": 100}]}, "wheels[0].spokes", "must be a whole number from 1 to 99"),
        ({"frameName": "a", "wheels": [{"hub": 1}]}, "wheels[0].hub", "Unknown field 'hub' in wheels[0]"),
        ({"frameName": "a", "front": {"madeIn": "here"}}, "front.madeIn", "Unknown field 'madeIn' in front"),
        ({"frameName": "a", "front": {"spokes": 1, "colour": "grey"}}, "front.colour", "it can be: red, blue"),
        ({"frameName": "a", "isOn": 1}, "isOn", "isOn must be true or false"),
        ({"frameName": "a", "lensKind": "x\0"}, "lensKind", "lensKind must not hold a NUL character"),
        ({"frameName": "a", "lensKind": "\ud800"}, "lensKind", "lensKind must be valid UTF-8"),
        ({"frameName": "a", "labels": {"UP": ""}}, "labels", "labels has 'UP', which is not lower-case"),
        ({"frameName": "a", "labels": {"up": 1}}, "labels.up", "labels.up must be text"),
        ({"frameName": "a", "weight": "7"}, "weight", "weight must be a number"),
    ],
)
def test_what_is_wrong_is_refused_by_its_place(body: object, field: str, words: str) -> None:
    with pytest.raises(BadInput) as refused:
        read(Bicycle, body, called="a bicycle")
    assert refused.value.field == field
    assert words in refused.value.message


def _is_even(number: int) -> bool:
    if number % 2:
        raise ValueError("is odd")
    return True


Even = Annotated[int, Rule(test=_is_even)]


class Lock(NamedTuple):
    """A fourth, that is not kept as it is written."""

    dials: tuple[Even | tuple[Even, ...], ...] = ()
    sums: Annotated[
        tuple[int, ...],
        Rule(written_as=dict[str, tuple[Even, ...]], read=lambda parts: tuple(map(sum, parts.values()))),
    ] = ()
    code: Annotated[str, Rule("four digits", test=int)] = "1"


def test_a_value_can_be_made_of_another_that_is_read_first() -> None:
    assert read(Lock, {"dials": [2, [4, 6]], "sums": {"a": [2, 4], "b": []}}) == Lock((2, (4, 6)), (6, 0))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"dials": [2, 3]}, "dials[1] is odd"),
        ({"dials": [[4, 7]]}, "dials[0][1] is odd"),
        ({"dials": ["x"]}, "dials[0] must be a whole number"),
        ({"sums": {"a": [2, 9]}}, "sums.a[1] is odd"),
        ({"sums": {"\x1b": [9]}}, r"sums.'\x1b'[0] is odd"),
        ({"sums": []}, "sums must be a table"),
        ({"code": "x"}, "code is 'x'; it must be four digits"),
    ],
)
def test_a_rule_says_in_its_own_words_why_a_part_is_refused(body: object, words: str) -> None:
    with pytest.raises(BadInput) as refused:
        read(Lock, body, snake=True)
    assert refused.value.message == words


def test_an_object_with_one_field_can_be_that_field_alone() -> None:
    assert read(Isolation, {"tier": "A", "policy": "require"}).policy == Policy(Mode.REQUIRE)
    assert write(Isolation("A", policy=Policy(Mode.REQUIRE)))["policy"] == "require"
    with pytest.raises(BadInput, match="policy is 'x'; it can be: auto, require, off"):
        read(Isolation, {"tier": "A", "policy": "x"})


def test_the_description_of_the_api_is_made_of_the_same_fields() -> None:
    _, bodies = body_of(Bicycle)
    described = bodies["BicycleBody"]
    assert set(described["properties"]) == {
        *("frameName", "wheels", "isOn", "lensKind", "front", "paint", "labels", "weight")
    }
    assert (described["required"], described["properties"]["frameName"]["pattern"]) == (["frameName"], "^[a-z]+$")
    wheels = [shape["properties"] for name, shape in bodies.items() if "WheelBody" in name]
    assert sorted("madeIn" in wheel for wheel in wheels) == [False, True]
    for wheel in wheels:
        assert (wheel["spokes"]["minimum"], wheel["spokes"]["maximum"], wheel["spokes"]["type"]) == (1, 99, "integer")


def test_what_a_program_wrote_may_have_fields_of_a_newer_version() -> None:
    assert read(Wheel, {"spokes": 3, "hub": 1}, newer=True) == Wheel(3)
    with pytest.raises(BadInput, match="colour is 'None'"):
        read(Wheel, {"spokes": 3, "colour": None}, newer=True)
