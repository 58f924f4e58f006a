"""Answers that a hook waits for: the first counts, and what killed ones left is known for it."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from mas.store.agent.answers import ALLOW, DENY, Request, give, waiting


@pytest.fixture
def session(tmp_path: os.PathLike[str]) -> str:
    os.mkdir(os.path.join(tmp_path, ".mas"))
    return os.fspath(tmp_path)


def left(session: str) -> list[str]:
    return os.listdir(os.path.join(session, ".mas", "answers"))


def test_a_request_waits_until_it_is_answered(session: str) -> None:
    assert waiting(session, "00") == {}
    request = Request(session, "00", "now")
    (name,) = waiting(session, "00")
    assert waiting(session, "00") == {name: "now"}
    assert waiting(session, "01") == {}
    assert request.answer() == ""
    assert give(session, name, DENY)
    assert request.answer() == DENY
    assert not give(session, name, ALLOW)
    assert request.answer() == request.give_up() == DENY
    request.close()
    assert left(session) == []


def test_of_many_answers_one_counts(session: str) -> None:
    request = Request(session, "00", "now")
    (name,) = waiting(session, "00")
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda number: give(session, name, (ALLOW, DENY)[number % 2]), range(40)))
    assert taken.count(True) == 1
    assert request.answer() == (ALLOW, DENY)[taken.index(True) % 2]
    request.close()
    assert left(session) == []


def test_a_request_that_gave_up_takes_no_answer(session: str) -> None:
    request = Request(session, "00", "now")
    (name,) = waiting(session, "00")
    assert request.give_up() == ""
    assert not give(session, name, ALLOW)
    assert request.answer() == ""
    request.close()
    assert not give(session, name, ALLOW)
    assert left(session) == []


def test_what_a_killed_process_left_is_removed(session: str) -> None:
    child = os.fork()
    if child == 0:
        Request(session, "00", "then")
        os._exit(0)
    os.waitpid(child, 0)
    (name,) = left(session)
    assert not give(session, name, ALLOW)
    assert waiting(session, "00") == {}
    assert left(session) == []
