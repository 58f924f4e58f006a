"""An agent that looks for gaps between the walls finds none in tiers A and B; without walls it finds its way."""

from __future__ import annotations

import ctypes
import json
import os
import pwd
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from mas.model.ids import SessionId
from tests.isolation.tiers import start_in
from tests.served import Served
from tests.site import AGENTS, Site, short_directory, until

LIBC = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == "x86_64"
BANNER = b"of the machine"
CANARY = "canary-of-the-environment"
# What tier B leaves open, as the documentation says.
OPEN_IN_B = {
    "machine_by_other_addresses", "machine_by_ipv6", "machine_by_odd_names", "machine_by_udp",
    "the_server_as_somebody_else", "a_second_request_behind_a_first", "sockets_of_others", "accounts_of_others",
}  # fmt: skip
# What works for any program of the user's: a probe that is refused inside was not just wrong.
OPEN_IN_D = {
    "machine_by_other_addresses", "machine_by_ipv6", "machine_by_odd_names", "machine_by_udp",
    "files_of_the_egress", "socket_of_the_egress", "log_of_the_network", "leases", "files_of_processes",
    "limits_of_processes", "own_mark", "signals_by_files", "signals_by_descriptors", "sockets_of_others",
    "accounts_of_others", "temporary_files_of_colleagues", "terminals_of_others", "languages_of_netlink",
    "large_parts_of_the_kernel", "personalities", "program_without_a_file", "queues_of_others",
    "the_server_as_somebody_else", "a_second_request_behind_a_first", "variables_that_came_along",
}  # fmt: skip


class Machine:
    """What a machine has that agents must not reach: services, processes, a terminal, queues."""

    def __init__(self, site: Site, stack: ExitStack) -> None:
        self._stack = stack
        port = 0
        for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "127.0.0.2"), (socket.AF_INET6, "::1")):
            port = self._serve(socket.create_server((host, port), family=family))
        self.port = port
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        self.udp_port = udp.getsockname()[1]
        threading.Thread(target=self._answer, args=(udp,), daemon=True).start()
        master, slave = os.openpty()
        stack.callback(os.close, master)
        stack.callback(os.close, slave)
        self.terminal = os.ttyname(slave)
        os.write(master, b"a password\n")
        self.victim = subprocess.Popen(["sleep", "1000"])
        stack.callback(self.victim.wait)
        stack.callback(self.victim.kill)
        self.queue = LIBC.msgget(0, 0o1600)
        stack.callback(LIBC.msgctl, self.queue, 0, None)
        for _ in range(3):
            LIBC.msgsnd(self.queue, (1).to_bytes(8, "little") + b"a secret", 8, 0)
        self.posix_queue = f"/mas-test-{os.getpid()}-{os.path.basename(site.directory)}"
        name = self.posix_queue[1:].encode()
        os.close(LIBC.syscall(240 if X86 else 180, name, os.O_CREAT | os.O_RDWR, 0o600, None))
        stack.callback(LIBC.syscall, 241 if X86 else 181, name)

    def _serve(self, listener: socket.socket) -> int:
        self._stack.enter_context(listener)

        def serve() -> None:
            while True:
                try:
                    one, _ = listener.accept()
                except OSError:
                    return
                with one:
                    one.sendall(BANNER)

        threading.Thread(target=serve, daemon=True).start()
        return int(listener.getsockname()[1])

    @staticmethod
    def _answer(one: socket.socket) -> None:
        while True:
            try:
                one.sendto(BANNER, one.recvfrom(100)[1])
            except OSError:
                return

    def stand_in(self, path: str) -> str:
        """A socket like that of an egress process."""
        one = self._stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        one.bind(path)
        one.listen()

        def serve() -> None:
            while True:
                try:
                    other, _ = one.accept()
                except OSError:
                    return
                with other:
                    other.send(b"sockets")

        threading.Thread(target=serve, daemon=True).start()
        return path


class Prowl:
    """One session with the prowler, and what it finds."""

    def __init__(self, site: Site, served: Served, machine: Machine, tier: str) -> None:
        self.site = site
        env = {"AWS_SECRET_ACCESS_KEY": CANARY, "SSH_AUTH_SOCK": f"/{CANARY}", "GITHUB_TOKEN": CANARY}
        sleeper = ["-c", "import time; time.sleep(1000)"]
        self.sibling = start_in(site, tier, sleeper, {"team": "solo"}, env)
        self.own = start_in(site, tier, [os.path.join(AGENTS, "prowler.py")], {"team": "pair"}, env)
        self.targets = self._targets(served, machine)

    def _targets(self, served: Served, machine: Machine) -> dict[str, Any]:
        site, own = self.site, self.own
        log = site.session(own, "logs", "network.jsonl")
        if not os.path.exists(log):
            with open(log, "w", encoding="utf-8") as file:
                file.write("{}\n")
        private = site.session(own, ".mas")
        sockets = [machine.stand_in(os.path.join(private, "stand-in"))]
        launcher = self._launcher("21")
        space = os.path.join(private, "network", "space")
        if os.path.islink(space):
            sockets.append(os.path.join(private, "network", "egress.sock"))
            egress = int(os.readlink(space).split()[0])
        else:
            egress = launcher
            os.makedirs(os.path.join(private, "network"))
            with open(os.path.join(private, "network", "rules.json"), "w", encoding="ascii") as file:
                file.write("{}")
        access = site.world().access()
        colleague_file = site.session(own, ".tmp", "23", "file")
        os.makedirs(os.path.dirname(colleague_file), exist_ok=True)
        with open(colleague_file, "w", encoding="ascii") as file:
            file.write("a colleague's")
        usual = {"root", "nobody", pwd.getpwuid(os.getuid()).pw_name}
        return {
            "port": machine.port, "port6": machine.port, "udp_port": machine.udp_port, "door": 7717, "addresses": [],
            "hostname": socket.gethostname(), "own": site.session(own), "own_id": own, "sibling_id": self.sibling,
            "colleague": "23", "colleague_file": colleague_file, "log": log, "sockets": sockets,
            "pids": {"egress": egress, "launcher": launcher, "outside": os.getpid(), "victim": machine.victim.pid},
            "addresses_of": {}, "variables": [CANARY], "terminal": machine.terminal, "queue": machine.queue,
            "accounts": [one.pw_name for one in pwd.getpwall() if one.pw_name not in usual],
            "posix_queue": machine.posix_queue, "template": site.path("unit", "00", "README.md"), "url": served.url,
            "tokens": {
                "owner": served.token, "nobody": "", "forged": "mas1.x.y",
                "sibling": access.agent_token(SessionId(self.sibling), "00"),
                "colleague": access.agent_token(SessionId(own), "23"),
            },
        }  # fmt: skip

    def _launcher(self, agent: str) -> int:
        path = self.site.session(self.own, "logs", f"agent-{agent}.events.jsonl")
        until(lambda: os.path.exists(path) and os.path.getsize(path), "its start")
        with open(path, encoding="utf-8") as file:
            return int(json.loads(file.readline())["launcher"])

    def report(self) -> dict[str, dict[str, str]]:
        unit = self.site.session(self.own, "unit", "21")
        with open(os.path.join(unit, "targets.tmp"), "w", encoding="utf-8") as file:
            json.dump(self.targets, file)
        os.chmod(file.name, 0o644)
        os.rename(file.name, os.path.join(unit, "targets.json"))
        path = os.path.join(unit, "report.json")
        until(lambda: os.path.exists(path), "the report", 150)
        with open(path, encoding="utf-8") as file:
            found: dict[str, dict[str, str]] = json.load(file)
        return found


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with short_directory() as directory, ExitStack() as stack:
        site = Site(directory)
        site.mas("init", site.root, "--provider", "shell")
        stack.callback(site.close)
        one = Served(site)
        stack.callback(one.close)
        yield one


@pytest.fixture
def machine(served: Served) -> Iterator[Machine]:
    with ExitStack() as stack:
        yield Machine(served.site, stack)


def told(report: dict[str, dict[str, str]], names: set[str]) -> str:
    return "\n".join(f"{name}: {report.get(name)}" for name in sorted(names))


@pytest.mark.parametrize(("tier", "expected"), [("A", set()), ("B", OPEN_IN_B)])
def test_nothing_is_open_but_what_is_documented(
    served: Served, machine: Machine, tier: str, expected: set[str]
) -> None:
    prowl = Prowl(served.site, served, machine, tier)
    report = prowl.report()
    found = {name for name, one in report.items() if one["result"] == "hole"}
    assert found == expected, told(report, found ^ expected)
    assert machine.victim.poll() is None
    served.site.mas("stop", prowl.own, prowl.sibling)


def test_without_walls_the_same_agent_finds_its_way(served: Served, machine: Machine) -> None:
    prowl = Prowl(served.site, served, machine, "D")
    report = prowl.report()
    found = {name for name, one in report.items() if one["result"] == "hole"}
    assert not OPEN_IN_D - found, told(report, OPEN_IN_D - found)
    machine.victim.wait()
    # It has started a session of its own, with the owner's token.
    served.site.mas("stop", "--all", "--yes")
