"""What a tier leaves open and what agents in it do without are two lists."""

from __future__ import annotations

import pytest

from mas.runtime.sandbox.gaps import not_available, not_enforced


def test_every_tier_says_what_it_leaves_open() -> None:
    assert not_enforced("A", 7) == ()
    assert not_enforced("A", 7, "why") == ("names and arguments of other processes can be seen: why",)
    assert any("abstract" in line for line in not_enforced("A", 5))
    newest, oldest = not_enforced("B", 7), not_enforced("B", 1)
    assert set(newest) < set(oldest)
    assert any("mode and times" in line for line in newest)
    assert any("truncate" in line for line in oldest)
    assert any("signals" in line for line in oldest)
    assert len(not_enforced("D", 7)) == 1


def test_what_agents_do_without_is_not_among_what_they_can_do() -> None:
    assert (not_available("A", 7), not_available("D", 7), not_available("D", 1)) == ((), (), ())
    lost = not_available("B", 7)
    assert set(lost) == {
        "new terminals", "Unix sockets", "shared memory", "/tmp", "listening on TCP ports other than those in `ports`",
    }  # fmt: skip
    for abi in range(1, 9):
        assert not [line for line in not_enforced("B", abi) if "not there" in line or "cannot be moved" in line]


@pytest.mark.parametrize("tier", ["A", "B"])
def test_the_first_landlock_moves_no_file_to_another_directory(tier: str) -> None:
    moving = {abi: "moving files between directories" in not_available(tier, abi) for abi in range(8)}
    assert moving == dict.fromkeys(range(8), False) | {1: True}
