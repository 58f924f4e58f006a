"""Tiers: how well this machine can isolate agents, found by trying and kept until it reboots."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from shutil import which
from typing import NamedTuple

from mas import __version__
from mas.model.errors import NotIsolated
from mas.model.isolation import Isolation, Mode, Policy, Tier, TierView, shown_gaps
from mas.runtime.sandbox.gaps import not_available, not_enforced
from mas.runtime.sandbox.probe import NotTried
from mas.store.workspace.machine import Probed

# The ways into each tier, the better first.
WAYS = {Tier.A: ("namespaces", "bwrap"), Tier.B: ("landlock",), Tier.D: ("",)}
NAMES = {
    "namespaces": "namespaces and Landlock",
    "bwrap": "bubblewrap and Landlock",
    "landlock": "Landlock and seccomp",
    "": "file modes only",
}
_ABI = "abi"
_PORTS_SINCE = 4
_NAMESPACES = ("user", "mnt")
_TUN = "/dev/net/tun"
# What a service may have less of than its user's shell.
_POWERS = ("CapEff:", "NoNewPrivs:", "Seccomp")


class Machine(NamedTuple):
    """What can be asked of the machine: why a way fails (empty: it works; or `NotTried`), and Landlock's version."""

    probe: Callable[[str], str]
    landlock_abi: Callable[[], int]


class Tiers:
    """The tiers there are here, and which of them a session gets."""

    def __init__(self, machine: Machine, kept: Probed, forced: Tier | None = None) -> None:
        self._machine = machine
        self._kept = kept
        self._forced = forced
        self._found: dict[str, str] | None = None

    def why_not(self, how: str) -> str:
        """Why agents cannot be isolated that way; empty where they can. What came to no result is tried again."""
        try:
            return self._known(how, lambda: self._machine.probe(how)) if how else ""
        except NotTried as error:
            return str(error)

    def forget(self) -> None:
        """Forget the results; everything is tried again from here on."""
        self._found = {}

    def best(self) -> tuple[Tier, str]:
        """The best tier of this machine, and the way into it; `NotIsolated` if a forced one does not work."""
        for tier in (self._forced,) if self._forced else Tier:
            for how in WAYS[tier]:
                if not self.why_not(how):
                    return tier, how
        raise NotIsolated(
            f"This machine cannot isolate agents in tier {self._forced} (MAS_ISOLATION): {self._why(self._forced)}",
            "mas doctor",
        )

    def choose(self, policy: Policy) -> Isolation:
        """What a session with this policy gets; `NotIsolated` if that is less than it requires."""
        if policy.enforce is Mode.OFF:
            return Isolation(Tier.D, policy=policy)
        tier, how = self.best()
        if policy.enforce is Mode.REQUIRE and tier is not Tier.A:
            raise NotIsolated(
                f"Isolation is required, but this machine offers only tier {tier} ({NAMES[how]}): {self.reason()}",
                "mas doctor; to accept less: mas start --isolation auto",
            )
        if policy.ports is not None and how and self._abi() < _PORTS_SINCE:
            raise NotIsolated(
                f"This kernel cannot restrict ports: it has Landlock {self._abi()}, but ports need {_PORTS_SINCE}",
                "leave ports out of the policy, or: mas start --isolation off",
            )
        seen = self.why_not("proc") if how == "namespaces" else ""
        abi = self._abi()
        return Isolation(tier, how, not_enforced(tier, abi, seen), not_available(tier, abi), policy=policy)

    def view(self, policy: Policy) -> TierView:
        """The same for who only wants to know."""
        try:
            found = self.choose(policy)
        except NotIsolated as error:
            return TierView(None, problem=error.message)
        return TierView(found.tier, found.how, found.not_enforced, found.not_available)

    def reason(self) -> str:
        """Why it is not the best tier."""
        if self._forced:
            return f"MAS_ISOLATION is {self._forced}"
        return self._why(Tier.A)

    def _abi(self) -> int:
        return int(self._known(_ABI, lambda: str(self._machine.landlock_abi())))

    def _why(self, tier: Tier | None) -> str:
        return "; ".join(f"{how}: {self.why_not(how)}" for how in WAYS[tier or Tier.A])

    def _known(self, name: str, find: Callable[[], str]) -> str:
        if self._found is None:
            self._found = self._kept.read()
        if name not in self._found:
            self._found[name] = find()
            self._kept.write(self._found)
        return self._found[name]


def circumstances(environ: Mapping[str, str]) -> str:
    """Everything the results depend on and MAS does not control: the boot, the kernel, the user, the place and what
    this process may do."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
        where = [os.readlink(f"/proc/self/ns/{name}") for name in _NAMESPACES] + _powers()
    except OSError:
        boot, where = "", []
    programs = [which(name, path=environ.get("PATH")) or "" for name in ("bwrap", "pasta")]
    return " ".join((boot, *where, str(os.getuid()), os.uname().release, __version__, *programs, _mode_of(_TUN)))


def _powers() -> list[str]:
    """What this process may do: its capabilities, its filters of system calls, its profile of AppArmor."""
    with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
        found = ["".join(line.split()) for line in file if line.startswith(_POWERS)]
    try:
        with open("/proc/self/attr/current", encoding="utf-8", errors="replace") as file:
            return [*found, file.read().strip("\0\n")]
    except OSError:
        # Without such a module there are no profiles.
        return found


def _mode_of(path: str) -> str:
    try:
        return f"{os.stat(path).st_mode:o}"
    except OSError:
        return ""


def warning(isolation: Isolation, reason: str) -> tuple[str, ...]:
    """What people should know of a tier lower than the best, in one line; nothing where they chose to have none."""
    if isolation.tier == Tier.A or isolation.policy.enforce is Mode.OFF:
        return ()
    gaps = (words[0].upper() + words[1:] for words in shown_gaps(isolation))
    return (". ".join((f"Isolation is only tier {isolation.tier} ({reason})", *gaps)),)
