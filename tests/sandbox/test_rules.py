"""The steps by which rules are laid over the file system, and the filter of system calls on both machines."""

from __future__ import annotations

from typing import Any

import pytest

from mas.model.launch import Rules
from mas.model.system_calls import ALLOWED, NEVER, OPENABLE
from mas.runtime.sandbox import seccomp
from mas.runtime.sandbox.view import steps

ALLOW = 0x7FFF0000
EPERM, ENOSYS, EPROTONOSUPPORT, EOPNOTSUPP, EAFNOSUPPORT = 1, 38, 93, 95, 97
MACHINES = {"x86_64": 0, "aarch64": 1}
ARCHITECTURES = (0xC000003E, 0xC00000B7)
CLONE3, OPENAT2 = 435, 437
PID_ARGUMENTS = {
    "prlimit64": 0, "sched_setaffinity": 0, "sched_setscheduler": 0, "sched_setparam": 0, "sched_setattr": 0,
    "setpriority": 1, "ioprio_set": 1,
}  # fmt: skip


def test_steps_go_from_the_top_down_and_leave_out_what_changes_nothing() -> None:
    rules = Rules(
        tier="A",
        how="namespaces",
        write=("/h/u/w", "/h/u/w/x", "/s/own"),
        read=("/usr", "/h/u/r", "/t/back"),
        hide=("/h/u/r/key", "/h", "/h/u/other", "/t/gone"),
        binds=(("/s/tmp", "/t"),),
    )
    assert steps(rules) == [
        ("hide", "/h", "/h"),
        ("bind", "/t", "/s/tmp"),
        ("write", "/s/own", "/s/own"),
        ("read", "/t/back", "/t/back"),
        ("read", "/h/u/r", "/h/u/r"),
        ("write", "/h/u/w", "/h/u/w"),
        ("hide", "/h/u/r/key", "/h/u/r/key"),
    ]


def answer(program: list[tuple[int, int, int, int]], architecture: int, number: int, *arguments: int) -> int:
    """What the kernel would answer by this filter."""
    given = {0: number, 4: architecture}
    for place, value in enumerate((*arguments, 0, 0, 0, 0)):
        given |= {16 + 8 * place: value & 0xFFFFFFFF, 20 + 8 * place: value >> 32 & 0xFFFFFFFF}
    loaded = at = 0
    while True:
        code, yes, no, value = program[at]
        at += 1
        if code == 0x06:
            return value if value == ALLOW else value & 0xFFFF
        if code == 0x20:
            loaded = given[value]
        elif code == 0x54:
            loaded &= value
        else:
            met = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[code]
            at += yes if met else no


def both(name: str) -> tuple[int, int]:
    found = {one: pair for group in ALLOWED.values() for one, pair in group.items()} | OPENABLE | NEVER
    return found[name]


def rules(tier: str, **more: Any) -> Rules:
    return Rules(tier=tier, how="landlock" if tier == "B" else "namespaces", **more)


class Filter:
    """The filter of one machine, and what it answers to a call by its name."""

    def __init__(self, machine: str, its_rules: Rules, own_processes: bool) -> None:
        self.machine = MACHINES[machine]
        self.steps = seccomp.program(self.machine, its_rules, own_processes)
        assert all(yes < 256 and no < 256 for _, yes, no, _ in self.steps)

    def __call__(self, name: str | int, *arguments: int) -> int:
        number = name if isinstance(name, int) else both(name)[self.machine]
        return answer(self.steps, ARCHITECTURES[self.machine], number, *arguments)


@pytest.mark.parametrize("machine", MACHINES)
def test_the_filter_refuses_the_same_on_both_machines(machine: str) -> None:
    wide = Filter(machine, rules("A"), own_processes=True)
    narrow = Filter(machine, rules("B", ports=(443,)), own_processes=False)
    for its in (wide, narrow):
        assert its("openat") == its("read") == its("futex") == ALLOW
        assert answer(its.steps, 0x40000003, 1) == EPERM
        assert its("clone", 17) == its("unshare", 0x400) == ALLOW
        assert its("clone", 0x10000011) == its("unshare", 0x10000000) == EPERM
        assert its("io_uring_setup") == its("keyctl") == its("bpf") == its("setns") == its("mount") == EPERM
        assert its("userfaultfd") == its("perf_event_open") == EPERM
        assert its(CLONE3) == its(OPENAT2) == ENOSYS
        assert {its(number) for number in range(470, 600)} == {ENOSYS}
        assert its("socket", 2, 1, 6) == its("socket", 16, 3, 0) == ALLOW
        assert its("socket", 40, 1) == EAFNOSUPPORT
        assert its("socket", 16, 3, 4) == its("socket", 16, 2, 15) == EPROTONOSUPPORT
        assert its("fchmodat", 0, 0, 0o755) == its("openat", 0, 0, 0, 0o4755) == ALLOW
        assert its("fchmodat", 0, 0, 0o4755) == its("fchmod", 0, 0o2755) == EPERM
        assert its("openat", 0, 0, 0o100, 0o4755) == its("mknodat", 0, 0, 0o4755) == EPERM
        assert its("personality", 0xFFFFFFFF) == its("personality", 0x40000) == ALLOW
        assert its("personality", 0x400000) == EPERM
        assert its("socketpair", 1, 1) == its("fcntl", 3, 4) == ALLOW
        assert {its("socketpair", family, 1) for family in (2, 16, 30, 38, 40)} == {EAFNOSUPPORT}
        assert its("fcntl", 3, 1024) == its("fcntl", 3, 1024, 1) == EPERM
        assert its("setrlimit", 7) == its("prlimit64", 0, 10, 0) == its("prlimit64", 0, 7, 1 << 40) == ALLOW
        assert its("setrlimit", 10) == its("prlimit64", 0, 10, 8) == its("prlimit64", 0, 10, 1 << 40) == EPERM
    assert wide("socket", 1, 5) == wide("socket", 2, 5) == wide("socket", 2, 1, 262) == ALLOW
    assert wide("sendto", 3, 0, 0, 0x20000000) == wide("listen") == ALLOW
    assert narrow("socket", 1, 1) == narrow("socket", 2, 0x80005) == narrow("socket", 2, 1, 262) == EPERM
    assert narrow("socket", 2, 0x80801, 0) == narrow("listen") == ALLOW
    assert narrow("sendto", 3, 0, 0, 0x20000000) == EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_other_processes_are_left_alone_where_they_can_be_named(machine: str) -> None:
    inside = Filter(machine, rules("A"), own_processes=True)
    for beside in (
        Filter(machine, rules("B"), own_processes=False),
        Filter(machine, rules("A"), own_processes=False),
    ):
        for name, place in PID_ARGUMENTS.items():
            kind = (1,) * place
            assert beside(name, *kind, 0) == ALLOW
            assert beside(name, *kind, 77) == EPERM
            assert inside(name, *kind, 77) == ALLOW
        assert beside("setpriority", 2, 0) == beside("ioprio_set", 3, 0) == EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_tier_b_has_no_shared_memory_no_attributes_and_no_listeners(machine: str) -> None:
    a, b = Filter(machine, rules("A"), True), Filter(machine, rules("B"), False)
    for name in ("shmget", "shmat", "msgrcv", "semctl", "mq_open", "fchown", "listen"):
        assert (a(name), b(name)) == (ALLOW, EPERM)
    for name in ("setxattr", "fremovexattr"):
        assert (a(name), b(name)) == (ALLOW, EOPNOTSUPP)
    assert b("fgetxattr") == ALLOW


@pytest.mark.parametrize("tier", ["A", "B"])
def test_a_provider_opens_what_can_be_opened_and_nothing_else(tier: str) -> None:
    opened = Filter("x86_64", rules(tier, system_calls=("perf_event_open", "bpf")), own_processes=False)
    assert opened("perf_event_open") == ALLOW
    assert opened("userfaultfd") == EPERM
    assert opened("bpf") != ALLOW
