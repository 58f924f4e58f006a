"""Which tier a session gets: the best that a machine of any kind can give, or a refusal before anything is made."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from mas.model.errors import NotIsolated
from mas.model.isolation import Isolation, Mode, Policy, Tier, TierView
from mas.runtime.sandbox.gaps import not_available, not_enforced
from mas.runtime.sandbox.probe import NotTried
from mas.service.isolation.tiers import Machine, Tiers, circumstances, warning
from mas.store.layout import Layout
from mas.store.workspace.machine import Probed
from tests.site import short_directory

ALL = ("namespaces", "bwrap", "landlock", "proc")


@pytest.fixture
def layout() -> Iterator[Layout]:
    with short_directory() as directory:
        os.makedirs(os.path.join(directory, "sessions", ".mas"))
        yield Layout(directory)


class Kernel:
    """A machine that can do some things and not others, and counts how often it was tried."""

    def __init__(self, *can: str, abi: int = 7) -> None:
        self.can = can
        self.abi = abi
        self.tried: list[str] = []

    def probe(self, how: str) -> str:
        self.tried.append(how)
        return "" if how in self.can else f"no {how} here"

    def tiers(self, layout: Layout, forced: Tier | None = None, key: str = "this boot") -> Tiers:
        return Tiers(Machine(self.probe, lambda: self.abi), Probed(layout, key), forced)


class Crowded(Kernel):
    """One on which nothing can be tried just now."""

    def probe(self, how: str) -> str:
        self.tried.append(how)
        raise NotTried("no room")


@pytest.mark.parametrize(
    ("can", "tier", "how"),
    [
        (ALL, Tier.A, "namespaces"),
        (("bwrap", "landlock"), Tier.A, "bwrap"),
        (("landlock",), Tier.B, "landlock"),
        ((), Tier.D, ""),
    ],
)
def test_a_session_gets_the_best_there_is(layout: Layout, can: tuple[str, ...], tier: Tier, how: str) -> None:
    found = Kernel(*can).tiers(layout).choose(Policy(read=("/x",)))
    assert found == Isolation(tier, how, not_enforced(tier, 7), not_available(tier, 7), policy=Policy(read=("/x",)))
    assert bool(found.not_enforced) is (tier is not Tier.A)


def test_processes_that_can_be_seen_are_not_enforced_in_namespaces_only(layout: Layout) -> None:
    (line,) = Kernel("namespaces").tiers(layout).choose(Policy()).not_enforced
    assert line == "names and arguments of other processes can be seen: no proc here"
    assert Kernel("bwrap").tiers(layout, key="another").choose(Policy()).not_enforced == ()


def test_with_off_nothing_is_tried_and_nothing_reported(layout: Layout) -> None:
    kernel = Kernel(*ALL)
    found = kernel.tiers(layout).choose(Policy(Mode.OFF))
    assert (found.tier, found.how, kernel.tried, warning(found, "")) == (Tier.D, "", [], ())


@pytest.mark.parametrize("can", [("landlock",), ()])
def test_require_refuses_anything_less_and_says_why(layout: Layout, can: tuple[str, ...]) -> None:
    with pytest.raises(NotIsolated, match="namespaces: no namespaces here; bwrap: no bwrap here"):
        Kernel(*can).tiers(layout).choose(Policy(Mode.REQUIRE))
    assert Kernel(*ALL).tiers(layout, key="another boot").choose(Policy(Mode.REQUIRE)).tier == Tier.A


@pytest.mark.parametrize(
    ("forced", "tier", "how"), [(Tier.A, Tier.A, "bwrap"), (Tier.B, Tier.B, "landlock"), (Tier.D, Tier.D, "")]
)
def test_a_forced_tier_is_had_whatever_better_there_is(layout: Layout, forced: Tier, tier: Tier, how: str) -> None:
    found = Kernel("bwrap", "landlock").tiers(layout, forced).choose(Policy())
    assert (found.tier, found.how) == (tier, how)


def test_a_forced_tier_that_cannot_be_had_is_refused(layout: Layout) -> None:
    with pytest.raises(NotIsolated, match=r"in tier B .MAS_ISOLATION.: landlock: no landlock here"):
        Kernel("namespaces").tiers(layout, Tier.B).choose(Policy())
    with pytest.raises(NotIsolated, match=r"required, but this machine offers only tier D.*MAS_ISOLATION is D"):
        Kernel(*ALL).tiers(layout, Tier.D).choose(Policy(Mode.REQUIRE))


def test_ports_that_the_kernel_cannot_restrict_are_refused(layout: Layout) -> None:
    with pytest.raises(NotIsolated, match="cannot restrict ports: it has Landlock 3"):
        Kernel(*ALL, abi=3).tiers(layout).choose(Policy(ports=(443,)))
    assert Kernel(*ALL, abi=4).tiers(layout, key="newer kernel").choose(Policy(ports=(443,))).tier == Tier.A


@pytest.mark.parametrize("tier", [Tier.B, Tier.D])
def test_a_lower_tier_is_one_line_that_names_what_is_not_enforced(layout: Layout, tier: Tier) -> None:
    tiers = Kernel("landlock").tiers(layout, None if tier is Tier.B else Tier.D)
    (line,) = warning(tiers.choose(Policy()), tiers.reason())
    assert line.startswith(f"Isolation is only tier {tier} (")
    holes, _, losses = line.partition(". Not available: ")
    assert holes.endswith(f". Not enforced: {'; '.join(not_enforced(tier, 7))}")
    assert losses == "; ".join(not_available(tier, 7))
    assert bool(losses) is (tier is Tier.B)
    assert "\n" not in line


def test_each_way_is_tried_once_until_the_circumstances_change(layout: Layout) -> None:
    first, second, third = Kernel("landlock"), Kernel(*ALL), Kernel(*ALL)
    assert first.tiers(layout).choose(Policy()).tier == Tier.B
    assert second.tiers(layout).choose(Policy()).tier == Tier.B
    assert (first.tried, second.tried) == (["namespaces", "bwrap", "landlock"], [])
    assert third.tiers(layout, key="the next boot").choose(Policy()).tier == Tier.A
    assert third.tried == ["namespaces", "proc"]


def test_what_could_not_be_tried_is_never_kept(layout: Layout) -> None:
    crowded = Crowded()
    tiers = crowded.tiers(layout)
    assert tiers.choose(Policy()).tier == Tier.D
    assert tiers.why_not("namespaces") == "no room"
    assert crowded.tried == ["namespaces", "bwrap", "landlock", "namespaces"]
    assert Kernel(*ALL).tiers(layout).choose(Policy()).tier == Tier.A
    # What is kept needs no trial.
    assert Crowded().tiers(layout).choose(Policy()).tier == Tier.A


def test_that_processes_can_be_seen_is_not_believed_of_an_earlier_version(layout: Layout) -> None:
    """It kept what only the directory of its caller had made so."""
    wrong = "names and arguments of other processes can be seen: a new /proc is refused here"
    Probed(layout, "this boot").write({"namespaces": "", "abi": "7", "A namespaces": wrong})
    kernel = Kernel(*ALL)
    assert kernel.tiers(layout).choose(Policy()).not_enforced == ()
    assert kernel.tried == ["proc"]


def test_what_was_found_can_be_forgotten(layout: Layout) -> None:
    assert Kernel().tiers(layout).choose(Policy()).tier == Tier.D
    mended = Kernel(*ALL).tiers(layout)
    mended.forget()
    assert mended.choose(Policy()).tier == Tier.A
    # Whoever asks next profits.
    assert Kernel().tiers(layout).choose(Policy()).tier == Tier.A


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"key": "this boot"}', b'{"key": "this boot", "found": 7}'])
def test_a_damaged_note_of_what_was_found_only_means_trying_again(layout: Layout, damage: bytes) -> None:
    with open(os.path.join(layout.private, "isolation.json"), "wb") as file:
        file.write(damage)
    kernel = Kernel(*ALL)
    assert kernel.tiers(layout).choose(Policy()).tier == Tier.A
    assert kernel.tried


def test_a_caller_that_only_asks_is_never_refused(layout: Layout) -> None:
    tiers = Kernel("landlock").tiers(layout)
    assert tiers.view(Policy()) == TierView("B", "landlock", not_enforced("B", 7), not_available("B", 7))
    refused = tiers.view(Policy(Mode.REQUIRE))
    assert refused.tier is None
    assert "required" in refused.problem


def test_the_circumstances_name_the_user_and_the_installed_bubblewrap() -> None:
    with short_directory() as directory:
        before = circumstances({"PATH": directory})
        program = os.path.join(directory, "bwrap")
        with open(program, "w", encoding="ascii"):
            os.chmod(program, 0o755)
        after = circumstances({"PATH": directory})
        assert [word for word in after.split(" ") if word not in before.split(" ")] == [program]
    assert f" {os.getuid()} {os.uname().release} " in before


def test_a_process_that_may_do_less_has_other_circumstances() -> None:
    ask = "from mas.service.isolation.tiers import circumstances; print(circumstances({}))"
    lessen = "import ctypes; ctypes.CDLL(None).prctl(38, 1, 0, 0, 0); "
    now, again, less = (
        subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout
        for code in (ask, ask, lessen + ask)
    )
    assert now == again != less
    assert less == now.replace("NoNewPrivs:0", "NoNewPrivs:1")
