"""Policies and limits: what people write is read exactly, or refused by the name of the field; nearer words decide."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import given

from mas.model.errors import BadInput
from mas.model.isolation import (
    Isolation,
    Limits,
    Mode,
    Policy,
    PolicyOrWord,
    SessionLimits,
    TierView,
    parse_size,
    shown_gaps,
    shown_limits,
    shown_policy,
    shown_size,
)
from mas.model.shapes import read, write
from tests.model.policies import POLICIES, SESSION_LIMITS

GIB = 1 << 30


def parse_policy(body: object) -> Policy:
    policy: Policy = read(cast(Any, PolicyOrWord), body, "isolation")
    return policy


def parse_session_limits(body: object) -> SessionLimits:
    return read(SessionLimits, body, "limits")


@given(POLICIES)
def test_the_body_of_a_policy_reads_back_as_the_same_policy(policy: Policy) -> None:
    isolation = Isolation("A", policy=policy)
    assert read(Isolation, json.loads(json.dumps(write(isolation)))) == isolation


@given(SESSION_LIMITS)
def test_the_body_of_limits_reads_back_as_the_same_limits(limits: SessionLimits) -> None:
    assert parse_session_limits(json.loads(json.dumps(write(limits)))) == limits


def test_what_is_not_enforced_and_what_is_not_available_are_shown_apart() -> None:
    assert shown_gaps(Isolation("A")) == ()
    found = Isolation("B", "landlock", ("UDP", "names"), ("/tmp",))
    assert shown_gaps(found) == ("not enforced: UDP; names", "not available: /tmp")
    assert shown_gaps(TierView("B", "landlock", not_available=("/tmp",))) == ("not available: /tmp",)


def test_a_session_of_an_earlier_version_has_one_list_only() -> None:
    body = write(Isolation("B", "landlock", ("UDP",), ("/tmp",)))
    del body["notAvailable"]
    assert read(Isolation, body) == Isolation("B", "landlock", ("UDP",))


def test_a_policy_is_a_word_or_an_object() -> None:
    assert parse_policy("require") == parse_policy({"enforce": "require"}) == Policy(Mode.REQUIRE)
    assert parse_policy({}) == Policy()
    body = {"read": ["~/data", "/srv"], "write": ["out"], "hide": ["/opt/x"], "ports": [443], "runAs": "agents"}
    assert parse_policy(body) == Policy(None, ("~/data", "/srv"), ("out",), ("/opt/x",), (443,), "agents")
    assert parse_policy({"ports": []}).ports == ()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("perhaps", "isolation is 'perhaps'; it can be: auto, require, off"),
        ({"enforce": "A"}, "isolation.enforce is 'A'"),
        (7, "isolation must be an object"),
        ({"reed": []}, "Unknown field 'reed' in isolation"),
        ({"read": "/x"}, "isolation.read must be a list"),
        ({"read": [7]}, "isolation.read[0] must be a path"),
        ({"write": [""]}, "isolation.write[0] is ''; it must be a path"),
        ({"write": ["a\0b"]}, "isolation.write[0] must not hold a NUL"),
        ({"hide": ["~root/x"]}, "isolation.hide[0] is '~root/x'; it must be a path, in which ~ is only your own home"),
        ({"ports": [0]}, "isolation.ports[0] must be a number from 1 to 65535"),
        ({"ports": [True]}, "isolation.ports[0] must be"),
        ({"ports": 443}, "isolation.ports must be a list"),
        ({"runAs": ""}, "isolation.runAs is ''; it must be the name of an account"),
    ],
)
def test_a_bad_policy_is_refused_by_the_name_of_its_field(body: object, words: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_policy(body)
    assert words in refused.value.message


def test_lists_of_policies_add_up_and_the_nearer_policy_decides() -> None:
    run = Policy(Mode.OFF, ("/a",), (), ("/h",), (80,), None)
    team = Policy(Mode.REQUIRE, ("/b", "/a"), ("/w",), (), None, "somebody")
    assert run.under(team) == Policy(Mode.OFF, ("/a", "/b"), ("/w",), ("/h",), (80,), "somebody")
    assert Policy().under(team) == team
    assert Policy(ports=()).under(run).ports == ()


def test_the_nearer_limit_decides_and_a_farther_one_fills_what_it_leaves_out() -> None:
    near = SessionLimits(Limits(memory=1, disk=5), Limits(processes=3))
    far = SessionLimits(Limits(memory=2, cpu=4.0), Limits(processes=9, files=7))
    assert near.under(far) == SessionLimits(Limits(memory=1, disk=5, cpu=4.0), Limits(processes=3, files=7))


def test_limits_are_sizes_and_numbers() -> None:
    body = {"memory": "2GiB", "processes": 64, "cpu": 1.5, "files": 1024, "fileSize": 4096, "disk": "10GiB"}
    limits = parse_session_limits(body | {"agent": {"memory": "512MiB"}})
    assert limits == SessionLimits(Limits(2 * GIB, 64, 1.5, 1024, 4096, 10 * GIB), Limits(512 << 20))
    assert parse_session_limits({"cpu": 2}).session.cpu == 2.0


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"memory": "2GB"}, "limits.memory is '2GB'; it must be a number of bytes or a size such as 512MiB or 2GiB"),
        ({"memory": 0}, "limits.memory must be a number of bytes"),
        ({"memory": True}, "limits.memory must be"),
        ({"disk": "much"}, "limits.disk is 'much'"),
        ({"fileSize": -1}, "limits.fileSize must be"),
        ({"processes": 0}, "limits.processes must be a whole number from 1 on"),
        ({"files": "64"}, "limits.files is '64'; it must be a whole number from 1 on"),
        ({"cpu": 0}, "limits.cpu must be a number of cores"),
        ({"agent": {"disk": "1GiB"}}, "Unknown field 'disk' in limits.agent"),
        ({"agent": {"memory": "x"}}, "limits.agent.memory is 'x'"),
        ({"ram": 1}, "Unknown field 'ram' in limits"),
        ([], "limits must be an object"),
    ],
)
def test_bad_limits_are_refused_by_the_name_of_their_field(body: object, words: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_session_limits(body)
    assert words in refused.value.message


@pytest.mark.parametrize(
    ("size", "words"),
    [(1, "1 B"), (4096, "4 KiB"), (2 * GIB, "2 GiB"), (3 * GIB // 2, "1536 MiB"), (2 * GIB + 1, "2.0 GiB")],
)
def test_sizes_are_shown_as_people_write_them(size: int, words: str) -> None:
    assert shown_size(size) == words
    assert "." in words or parse_size(words) == size


def test_limits_and_policies_are_shown_in_one_line() -> None:
    assert shown_limits(Limits()) == shown_policy(Policy(Mode.REQUIRE)) == ""
    limits = Limits(2 * GIB, 64, 0.5, 1024, 1 << 20, 10 * GIB)
    assert shown_limits(limits) == "memory 2 GiB, processes 64, cpu 0.5, files 1024, file size 1 MiB, disk 10 GiB"
    assert shown_policy(Policy(read=("~/a", "/b"), hide=("/c",), ports=())) == "read ~/a, /b; hide /c; ports none"
    assert write(Limits(2 * GIB, cpu=0.5)) == {"memory": "2GiB", "cpu": 0.5}
