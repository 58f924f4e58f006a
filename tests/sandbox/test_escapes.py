"""What a hostile agent would try: other processes, sockets, mounts, capabilities, and the kernel's side doors."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from mas.runtime.sandbox.probe import landlock_abi
from tests.sandbox.house import REFUSED, House

X86 = os.uname().machine == "x86_64"


@contextmanager
def foreign_process() -> Iterator[str]:
    """A process of the same user that holds a secret in its environment."""
    with subprocess.Popen(["sleep", "1000"], env={**os.environ, "SECRET": "x"}) as process:
        try:
            yield str(process.pid)
        finally:
            process.kill()


def test_a_foreign_process_cannot_be_reached(house: House) -> None:
    if landlock_abi() < 6 and house.tier == "B":
        pytest.skip("signals are open to this kernel's Landlock")
    with foreign_process() as pid:
        tries = [f"kill:{pid}", f"ptrace:{pid}", f"read:/proc/{pid}/environ", f"list:/proc/{pid}/root", "pids:"]
        tries += [f"list:/proc/{pid}/cwd", f"readlink:/proc/{pid}/fd/0"]
        found = house.attempts(tries)
        pids = found.pop("pids:")
        assert {one: answer for one, answer in found.items() if answer not in REFUSED} == {}
        if house.tier == "A":
            assert len(pids) == 2
            assert int(pid) not in pids


def test_its_namespaces_are_its_own(viewed: House) -> None:
    links = [f"/proc/self/ns/{name}" for name in ("mnt", "ipc", "pid")]
    found = viewed.attempts([f"readlink:{link}" for link in links])
    assert {os.readlink(link) for link in links}.isdisjoint(found.values())


def test_its_own_keeper_is_no_way_out(viewed: House) -> None:
    tries = ["ptrace:1", "read:/proc/1/environ", "list:/proc/1/root", "list:/proc/1/cwd", "kill:1"]
    found = viewed.attempts([*tries, "run:kill -9 1; kill -STOP 1; kill -INT 1; kill -TERM 1; echo here"])
    assert {one: found[one] for one in tries[:-1] if found[one] not in REFUSED} == {}
    assert found["run:kill -9 1; kill -STOP 1; kill -INT 1; kill -TERM 1; echo here"] == "here\n"


def test_sockets_outside_are_out_of_reach(house: House) -> None:
    path, name = house.path("hidden/socket"), f"mas-{os.path.basename(house.site.directory)}"
    with ExitStack() as stack:
        stream, datagram, abstract = (
            stack.enter_context(socket.socket(socket.AF_UNIX, kind))
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_STREAM)
        )
        stream.bind(path)
        datagram.bind(path + "2")
        abstract.bind(f"\0{name}")
        for one in (stream, abstract):
            one.listen()
        found = house.attempts([f"unix:{path}", f"dgram:{path}2", f"abstract:{name}", "socketpair:"])
    assert found.pop("socketpair:") == 2
    if landlock_abi() < 6 and house.tier == "A":
        del found[f"abstract:{name}"]
    assert {one: answer for one, answer in found.items() if answer not in REFUSED} == {}


def test_its_own_sockets_work_where_others_are_not_seen(viewed: House) -> None:
    assert viewed.attempts(["listen:socket", "listen:/tmp/socket"]) == {
        "listen:socket": "ok",
        "listen:/tmp/socket": "ok",
    }


def test_without_a_view_of_its_own_there_are_no_unix_sockets(bare_landlock: House) -> None:
    assert bare_landlock.attempts(["listen:socket"]) == {"listen:socket": "EPERM"}


def test_no_wall_can_be_taken_down(house: House) -> None:
    hidden, plain = house.path("hidden"), house.path("plain")
    tries = [f"umount:{hidden}", "umount:/tmp", "umount:/proc", "remount:/", f"remount:{plain}", "mount:."]
    tries += ["unshare:", "clone:", "setns:self", "setns:1", f"mknod:{house.path('session/unit/00/disk')}", "handle:"]
    tries += ["uring:", "keyctl:", "setuid:65534", *(["x32:"] if X86 else [])]
    if os.getuid() == 65534:
        tries.remove("setuid:65534")
    found = house.attempts(tries)
    assert {one: answer for one, answer in found.items() if answer not in REFUSED | {"EINVAL", "ENOSYS"}} == {}
    assert {found["unshare:"], found["clone:"], found["uring:"], found["keyctl:"]} == {"EPERM"}


def test_there_is_no_capability_and_no_way_to_one(house: House) -> None:
    names = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")
    found = house.attempts([f"status:{name}" for name in names])
    if house.tier == "B" and os.getuid():
        # It takes a capability to give the bounding set up; without new privileges it is worth nothing.
        del found["status:CapBnd"]
    assert found.pop("status:NoNewPrivs") == "1"
    assert found.pop("status:Seccomp") == "2"
    assert {name for name, value in found.items() if int(value, 16)} == set()


def test_exotic_sockets_are_refused(house: House) -> None:
    # AF_ALG and AF_VSOCK; AF_INET stays.
    assert house.attempts(["family:38", "family:40", "family:2"]) == {
        "family:38": "EAFNOSUPPORT",
        "family:40": "EAFNOSUPPORT",
        "family:2": "ok",
    }


def test_of_the_ports_only_those_that_are_allowed_can_be_used(house: House) -> None:
    if landlock_abi() < 4:
        pytest.skip("ports cannot be restricted by this kernel's Landlock")
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        open_, closed = one.getsockname()[1], other.getsockname()[1]
        tries = [f"tcp:{open_}", f"tcp:{closed}", f"bind:{closed}", "mptcp:"]
        found = house.attempts(tries, rules=house.rules(ports=(open_,)))
        assert found == {f"tcp:{open_}": "ok", f"tcp:{closed}": "EACCES", f"bind:{closed}": "EACCES", "mptcp:": "EPERM"}
        assert house.attempts([f"tcp:{closed}"]) == {f"tcp:{closed}": "ok"}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another")
def test_root_can_run_an_agent_as_another_user(house: House) -> None:
    account = (65534, 65534)
    for place in ("", "session", "session/unit", "session/unit/00", "tmp", "tmp2"):
        os.chown(house.path(place), *account)
    os.chmod(house.path("plain"), 0o700)
    rules = house.rules(account=account)
    # Not Python: root's own may be where no other user can go.
    argv = ["sh", "-c", "id -u; id -G; echo x > mine && echo wrote; ls ../../../plain || true; echo y > /dev/tty"]
    with house.pane(*argv, rules=rules) as one:
        assert one.wait() == 0, one.output
        assert one.output.startswith(b"65534\r\n65534\r\nwrote\r\n")
        assert b"Permission denied" in one.output
        assert b"y\r\n" in one.output
    assert os.stat(house.path("session/unit/00/mine")).st_uid == account[0]


@pytest.mark.skipif(os.getuid() != 0, reason="only root owns it")
def test_root_without_capabilities_cannot_use_what_it_owns(house: House) -> None:
    tries = ["read:/etc/shadow", "write:/sys/kernel/mm/ksm/run", "write:/proc/sysrq-trigger", "read:/dev/vda"]
    tries += ["write:/sys/fs/cgroup/cgroup.procs", "list:/sys/kernel/debug", "read:/proc/kmsg", "read:/dev/kmsg"]
    tries = [one for one in tries if os.path.exists(one.partition(":")[2])]
    found = house.attempts(tries)
    assert {one: answer for one, answer in found.items() if answer != [] and answer not in REFUSED} == {}
