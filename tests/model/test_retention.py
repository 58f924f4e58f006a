"""A retention policy is read as it is written, or refused by the field that is wrong."""

from __future__ import annotations

import pytest

from mas.model.errors import BadInput
from mas.model.retention import Retention, parse_age, shown_age
from mas.model.shapes import read


def parse_retention(body: object) -> Retention:
    return read(Retention, body, "retention")


def test_a_policy_is_read_with_its_units() -> None:
    body = {"maxAge": "30d", "maxCount": 0, "maxDisk": "2GiB", "moveTo": "trash", "archiveAge": "1w", "trashAge": "12h"}
    assert parse_retention(body) == Retention(30 * 86400, 0, 2 << 30, "trash", 7 * 86400, 12 * 3600)
    assert parse_retention({}) == Retention()


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ([], "retention must be an object"),
        ({"maxage": "1d"}, "Unknown field 'maxage' in retention"),
        ({"maxAge": 30}, "retention.maxAge must be an age"),
        ({"maxAge": "30 days"}, "retention.maxAge is '30 days'; it must be an age"),
        ({"maxAge": "-1d"}, "must be an age"),
        ({"trashAge": "9" * 30 + "w"}, "must be an age"),
        ({"maxCount": -1}, "maxCount"),
        ({"maxCount": True}, "maxCount"),
        ({"maxDisk": "much"}, "maxDisk"),
        ({"moveTo": "remove"}, "moveTo"),
        ({"moveTo": ["trash"]}, "moveTo"),
        ({"lost": "yes"}, "lost"),
    ],
)
def test_what_is_no_policy_is_refused_by_the_field_that_is_wrong(body: object, complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        parse_retention(body)


@pytest.mark.parametrize("age", ["0w", "1s", "90m", "36h", "30d", "2w"])
def test_an_age_is_shown_so_that_it_reads_back_as_the_same(age: str) -> None:
    assert parse_age(shown_age(parse_age(age))) == parse_age(age)
