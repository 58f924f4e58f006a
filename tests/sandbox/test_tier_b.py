"""Tier B, which has Landlock and a filter only: what it closes around other processes, and what it leaves open."""

from __future__ import annotations

import ctypes
import os
import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from mas.runtime.sandbox.probe import landlock_abi
from tests.ports import free_port
from tests.sandbox.house import REFUSED, House
from tests.sandbox.test_escapes import foreign_process
from tests.site import REPOSITORY

IO_CLASS = 3 << 13
IOPRIO_SET = 30 if os.uname().machine == "aarch64" else 251
LIBC = ctypes.CDLL(None, use_errno=True)


@contextmanager
def segment(text: bytes) -> Iterator[int]:
    """System V's shared memory of a process outside, with something in it."""
    found = LIBC.shmget(0, 4096, 0o1600)
    assert found >= 0
    LIBC.shmat.restype = ctypes.c_void_p
    address = LIBC.shmat(found, None, 0)
    try:
        ctypes.memmove(address, text + b"\0", len(text) + 1)
        yield found
    finally:
        LIBC.shmdt(ctypes.c_void_p(address))
        LIBC.shmctl(found, 0, None)


def test_limits_and_priorities_of_other_processes_cannot_be_changed(house: House) -> None:
    with foreign_process() as pid:
        there = psutil.Process(int(pid))
        before = there.nice(), resource.prlimit(int(pid), resource.RLIMIT_CPU), there.ionice()
        tries = [f"{verb}:{pid}" for verb in ("cpu", "priority", "affinity", "scheduler")]
        tries += ["priorities:", f"call:{IOPRIO_SET} 1 {pid} {IO_CLASS}", f"call:{IOPRIO_SET} 3 0 {IO_CLASS}"]
        own = ["cpu:0", "priority:0", "affinity:0", "scheduler:0"]
        found = house.attempts([*own, *tries])
        assert (there.nice(), resource.prlimit(int(pid), resource.RLIMIT_CPU), there.ionice()) == before
    assert {one: found[one] for one in own if one != "cpu:0"} == dict.fromkeys(own[1:], "ok")
    assert found["cpu:0"] == list(before[1])
    if house.tier == "B":
        assert {one: found[one] for one in tries} == dict.fromkeys(tries, "EPERM")
    else:
        # Nobody has that number there; all processes of the user are those of the namespace.
        refused = [one for one in tries if pid in one]
        assert {one: found[one] for one in refused if found[one] not in REFUSED} == {}


def test_shared_memory_of_processes_outside_is_not_there(house: House) -> None:
    with segment(b"a secret") as outside:
        # A control: any other process of the user can read it.
        assert ctypes.string_at(LIBC.shmat(outside, None, 0o10000)) == b"a secret"
        found = house.attempts([f"shared:{outside}"])
    assert found[f"shared:{outside}"] in ("EPERM", "EINVAL", "EIDRM")


def test_terminals_of_others_cannot_be_opened(house: House) -> None:
    master, slave = os.openpty()
    try:
        there = os.ttyname(slave)
        found = house.attempts([f"open:{there}", "open:/dev/tty", "run:tty"])
        own = str(found["run:tty"]).strip()
        assert found["open:/dev/tty"] == "ok"
        assert found[f"open:{there}"] in REFUSED or (house.tier == "A" and own != there)
        os.write(master, b"a password\n")
        assert os.read(slave, 100) == b"a password\n"
    finally:
        os.close(master)
        os.close(slave)


def test_in_tier_b_the_own_terminal_has_a_name_and_there_are_no_new_ones(bare_landlock: House) -> None:
    found = bare_landlock.attempts(["run:exec 3<>$(tty) && echo yes", "pty:"])
    assert found == {"run:exec 3<>$(tty) && echo yes": "yes\n", "pty:": "out of pty devices"}
    rules = bare_landlock.rules()
    opened = rules.but(write=(*rules.write, *map(os.path.realpath, ("/dev/ptmx", "/dev/pts"))))
    assert bare_landlock.attempts(["pty:"], rules=opened)["pty:"].startswith("/dev/pts/")


def test_in_tier_b_no_port_can_be_listened_at_without_a_policy(bare_landlock: House) -> None:
    if landlock_abi() < 4:
        pytest.skip("ports cannot be restricted by this kernel's Landlock")
    with socket.create_server(("127.0.0.1", 0)) as one, free_port() as free:
        port = one.getsockname()[1]
        tries = [f"tcp:{port}", "bind:0", "unbound:", f"bind:{free}"]
        assert bare_landlock.attempts(tries) == {
            f"tcp:{port}": "ok", "bind:0": "EACCES", "unbound:": "EPERM", f"bind:{free}": "EACCES",
        }  # fmt: skip


def test_the_port_of_mas_can_be_connected_to_and_not_taken(house: House) -> None:
    if landlock_abi() < 4:
        pytest.skip("ports cannot be restricted by this kernel's Landlock")
    with socket.create_server(("127.0.0.1", 0)) as one, free_port() as free:
        mas = one.getsockname()[1]
        rules = house.rules(ports=(free,), connect=(mas,))
        assert house.attempts([f"tcp:{mas}", f"bind:{free}"], rules=rules) == {f"tcp:{mas}": "ok", f"bind:{free}": "ok"}
    assert house.attempts([f"bind:{mas}"], rules=rules) == {f"bind:{mas}": "EACCES"}


def test_owners_and_attributes_of_files_cannot_be_changed_in_tier_b(bare_landlock: House) -> None:
    plain, own = bare_landlock.path("plain/file"), bare_landlock.path("session/unit/00/own")
    bare_landlock.put("session/unit/00/own")
    found = bare_landlock.attempts([f"chown:{plain}", f"setxattr:{plain}", f"chown:{own}", f"setxattr:{own}"])
    assert list(found.values()) == ["EPERM", "ENOTSUP"] * 2


def chmods(house: House) -> bool:
    path = house.path("plain/file")
    os.chmod(path, 0o600)
    house.attempts([f"run:chmod 644 {path}"])
    return os.stat(path).st_mode & 0o777 == 0o644


def changes_times(house: House) -> bool:
    path = house.path("plain/file")
    house.attempts([f"utime:{path}"])
    return os.stat(path).st_mtime == 1


def sees_that_a_file_is_there(house: House) -> bool:
    path = house.path("hidden/file")
    found = house.attempts([f"stat:{path}", f"read:{path}"])
    return (found[f"stat:{path}"], found[f"read:{path}"]) == (len("as it was"), "EACCES")


def sees_changes(house: House) -> bool:
    path = house.path("hidden/names")
    return house.attempts([f"watch:{path}"]) == {f"watch:{path}": "ok"}


def reads_links(house: House) -> bool:
    link = house.path("hidden/link")
    os.symlink("/a/secret/place", link)
    return house.attempts([f"readlink:{link}"]) == {f"readlink:{link}": "/a/secret/place"}


def sees_processes(house: House) -> bool:
    with foreign_process() as pid:
        path = f"/proc/{pid}/cmdline"
        return "sleep" in str(house.attempts([f"read:{path}"])[f"read:{path}"])


def sees_sockets(house: House) -> bool:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(house.path("hidden/socket"))
        return one.getsockname() in str(house.attempts(["run:cat /proc/net/unix"])["run:cat /proc/net/unix"])


def sees_accounts(house: House) -> bool:
    with open("/etc/passwd", encoding="utf-8") as file:
        return bool(house.attempts(["read:/etc/passwd"])["read:/etc/passwd"] == file.read(4096))


def uses_udp(house: House) -> bool:
    return house.attempts(["udp:"]) == {"udp:": "ok"}


def connects_anywhere(house: House) -> bool:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
        return house.attempts([f"tcp:{port}"]) == {f"tcp:{port}": "ok"}


def listens_unbound(house: House) -> bool:
    return int(house.attempts(["unbound:"], rules=house.rules(ports=(47719,)))["unbound:"]) > 1024


# Each line of the table in the documentation, by its first words, and how it is shown.
LEFT_OPEN: dict[str, Callable[[House], bool]] = {
    "mode of your files outside": chmods,
    "times of your files outside": changes_times,
    "that a file outside exists": sees_that_a_file_is_there,
    "changes in directories outside": sees_changes,
    "where links outside lead": reads_links,
    "other processes": sees_processes,
    "sockets and connections": sees_sockets,
    "accounts of the machine": sees_accounts,
    "UDP": uses_udp,
    "TCP connections": connects_anywhere,
    "a port that nobody chose": listens_unbound,
}


def test_the_table_of_what_tier_b_leaves_open_is_complete() -> None:
    page = Path(REPOSITORY, "docs", "explanation", "isolation.md").read_text("utf-8")
    table = page.partition("## What tier B leaves open")[2].partition("\n## ")[0]
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")][1:]
    always = [row for row in rows if not row.startswith("before Landlock")]
    assert always == list(LEFT_OPEN)


@pytest.mark.parametrize("line", LEFT_OPEN)
def test_what_the_table_says_is_open_is_open(bare_landlock: House, line: str) -> None:
    if landlock_abi() < 4 and line == "a port that nobody chose":
        pytest.skip("ports cannot be restricted by this kernel's Landlock")
    assert LEFT_OPEN[line](bare_landlock), f"{line}: closed here, so the table is not true"


@pytest.mark.parametrize("line", list(LEFT_OPEN)[2:6])
def test_the_same_attempts_fail_in_tier_a(viewed: House, line: str) -> None:
    assert not LEFT_OPEN[line](viewed)
