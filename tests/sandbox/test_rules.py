"""The steps by which rules are laid over the file system, and the filter of system calls on both machines."""

from __future__ import annotations

import pytest

from mas.model.launch import Rules
from mas.runtime.sandbox import seccomp
from mas.runtime.sandbox.view import steps

ALLOW = 0x7FFF0000
MACHINES = {"x86_64": 0, "aarch64": 1}


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
    given = {0: number, 4: architecture} | {
        16 + 8 * place: value for place, value in enumerate((*arguments, 0, 0, 0, 0))
    }
    loaded = at = 0
    while True:
        code, yes, no, value = program[at]
        at += 1
        if code == 0x06:
            return value if value == ALLOW else value & 0xFFFF
        if code == 0x20:
            loaded = given[value]
        else:
            at += yes if (loaded == value if code == 0x15 else loaded & value) else no


@pytest.mark.parametrize(
    ("machine", "architecture", "clone", "socket", "sendto", "keyctl", "openat"),
    [("x86_64", 0xC000003E, 56, 41, 44, 250, 257), ("aarch64", 0xC00000B7, 220, 198, 206, 219, 56)],
)
def test_the_filter_refuses_the_same_on_both_machines(
    machine: str, architecture: int, clone: int, socket: int, sendto: int, keyctl: int, openat: int
) -> None:
    wide = seccomp.program(MACHINES[machine], unix_sockets=True, all_ports=True)
    narrow = seccomp.program(MACHINES[machine], unix_sockets=False, all_ports=False)
    for program in (wide, narrow):
        assert answer(program, architecture, openat) == ALLOW
        assert answer(program, 0x40000003, 1) == 1
        assert answer(program, architecture, clone, 17) == ALLOW
        assert answer(program, architecture, clone, 0x10000011) == 1
        assert answer(program, architecture, 435) == 38
        assert answer(program, architecture, 425) == answer(program, architecture, keyctl) == 1
        assert answer(program, architecture, socket, 2, 1, 6) == ALLOW
        assert answer(program, architecture, socket, 40, 1) == 97
    assert answer(wide, architecture, socket, 1, 1) == ALLOW
    assert answer(narrow, architecture, socket, 1, 1) == 1
    assert (
        answer(wide, architecture, socket, 2, 1, 262)
        == answer(wide, architecture, sendto, 3, 0, 0, 0x20000000)
        == ALLOW
    )
    assert (
        answer(narrow, architecture, socket, 2, 1, 262)
        == answer(narrow, architecture, sendto, 3, 0, 0, 0x20000000)
        == 1
    )
