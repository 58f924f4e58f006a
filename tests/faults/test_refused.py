"""Refused: a disk that says no at any single step, once or from then on, and a person who presses Ctrl-C."""

from __future__ import annotations

import os

import pytest

from tests.faults.driver import ASIDE, Cut, Driver, Ended, Fault
from tests.faults.field import RUN, SCENES, Field, cut_at_every_step

pytestmark = pytest.mark.timeout(300)
# The others go the way of one of these.
VERBS = [
    "start", "stop", "restore", "clone", "archive", "unarchive", "delete", "undelete",
    "prune of the trash", "prune of archives", "list after tmux ended", "send of the first message",
    "restart of an agent",
]  # fmt: skip
ONE_IN = 6
# What a verb may say when the disk, or tmux, would not let it do its work.
EXPECTED = {"DiskFull", "DiskRefused", "Unavailable", "Corrupt"}


def was_told_or_did_without(ended: Ended) -> None:
    """An error in the product's own words; or none, if the step was one that the work does not hang on."""
    assert not ended.killed
    if ended.error is not None:
        assert ended.refused, "an error that nobody can read"
        assert EXPECTED & set(ended.kinds), ended.kinds
        assert ended.error


def was_interrupted(ended: Ended) -> None:
    assert "KeyboardInterrupt" in ended.kinds


@pytest.mark.parametrize("scene", VERBS)
@pytest.mark.parametrize("cut", [Cut.FULL, Cut.REFUSED], ids=lambda cut: cut.name)
def test_a_refusal_at_any_step_is_reported_and_leaves_nothing_half_done(
    field: Field, driver: Driver, scene: str, cut: Cut
) -> None:
    assert cut_at_every_step(field, driver, scene, cut, was_told_or_did_without, ONE_IN) > 0


@pytest.mark.parametrize("scene", VERBS)
@pytest.mark.parametrize("cut", [Cut.STAYS_FULL, Cut.READ_ONLY], ids=lambda cut: cut.name)
def test_a_disk_that_refuses_from_any_step_on_is_reported_and_all_works_once_it_works_again(
    field: Field, driver: Driver, scene: str, cut: Cut
) -> None:
    assert cut_at_every_step(field, driver, scene, cut, was_told_or_did_without, ONE_IN) > 0


@pytest.mark.parametrize("scene", VERBS)
def test_a_verb_interrupted_at_any_step_leaves_nothing_half_done(field: Field, driver: Driver, scene: str) -> None:
    assert cut_at_every_step(field, driver, scene, Cut.INTERRUPT, was_interrupted, ONE_IN) > 0


def test_a_start_whose_files_cannot_be_brought_to_the_disk_is_undone(field: Field, driver: Driver) -> None:
    before = field.check()
    ended = driver.call("start", RUN, fault=Fault(Cut.FULL, ASIDE))
    assert ended.what is not None
    assert "DiskFull" in ended.kinds
    assert field.settled().directories == before.directories


@pytest.mark.parametrize("scene", ["start", "clone", "archive", "unarchive", "migrate"])
def test_a_disk_that_takes_only_small_pieces_gets_everything(field: Field, driver: Driver, scene: str) -> None:
    act = SCENES[scene].ready(field)
    args = act.again()
    sources = {"start": field.site.root, "clone": field.site.session(str(args[0])), "migrate": str(args[0])}
    before = field.check().directories
    ended = driver.call(SCENES[scene].verb, *args, fault=Fault(Cut.SHORT, 1))
    assert ended.what is not None
    assert ended.error is None, ended.trace
    act.settle()
    if scene in sources:
        (made,) = field.check().directories - before
        assert _contents(field.site.session(made, "unit")) == _contents(os.path.join(sources[scene], "unit"))


def _contents(root: str) -> dict[str, bytes]:
    found = {}
    for directory, _, names in os.walk(root):
        for name in names:
            path = os.path.join(directory, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, root)] = file.read()
    return found
