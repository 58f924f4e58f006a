"""Killed: `kill -9` at every single step of every verb, and the next command finds a whole world."""

from __future__ import annotations

import pytest

from mas.settings import ServerMode
from tests.faults.driver import Cut, Driver, Ended
from tests.faults.field import SCENES, Field, cut_at_every_step
from tests.site import Site

pytestmark = pytest.mark.timeout(300)
ONE_IN = 4
WRITE_NOTHING = {"restore of an active session"}


def was_killed(ended: Ended) -> None:
    assert ended.killed


@pytest.mark.parametrize("scene", SCENES)
def test_a_verb_killed_at_any_step_leaves_nothing_half_done(field: Field, driver: Driver, scene: str) -> None:
    assert cut_at_every_step(field, driver, scene, Cut.KILL, was_killed, ONE_IN) > 0


@pytest.mark.parametrize("scene", ["start", "stop", "restore"])
def test_a_verb_killed_at_any_step_leaves_no_server_of_a_session_behind(site: Site, scene: str) -> None:
    with Driver(site, ServerMode.SESSION) as driver:
        field = Field(site, ServerMode.SESSION)
        assert cut_at_every_step(field, driver, scene, Cut.KILL, was_killed, ONE_IN) > 0


@pytest.mark.parametrize("scene", [scene for scene in SCENES if scene not in WRITE_NOTHING])
def test_a_verb_killed_in_the_middle_of_a_write_leaves_nothing_torn(field: Field, driver: Driver, scene: str) -> None:
    assert cut_at_every_step(field, driver, scene, Cut.TEAR, was_killed, ONE_IN) > 0
