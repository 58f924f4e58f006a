"""A root that launchers share: each agent has a copy, no agent has more or less than in a root built for it alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psutil
import pytest

from mas.model.launch import Rules
from mas.runtime.descriptors import note
from tests.pane.pane import TESTING, Pane
from tests.sandbox.house import PROBER, SHARED, House
from tests.site import ELSEWHERE, Site, fresh_site, until

DEVICE = "run:stat -c %d /"
MOUNTS = "run:cut -d' ' -f4-6,8- /proc/self/mountinfo"


class Flat(House):
    """A house for several agents of one session, each with a directory of its own where the others' are hidden."""

    def __init__(self, site: Site) -> None:
        super().__init__(site, SHARED)
        for agent in ("00", "01"):
            for name in ("hidden/own", "tmp", "session/unit"):
                os.makedirs(self.path(name, agent), exist_ok=True)
        self.note = self.path("root")

    def rules_of(self, agent: str, **more: Any) -> Rules:
        rules = self.rules()
        own = self.path("hidden/own", agent)
        return rules.but(
            own=(own,),
            write=(*rules.write, own),
            binds=((self.path("tmp", agent), "/tmp"), (self.path("tmp", agent), "/var/tmp")),
            **more,
        )

    @contextmanager
    def agent(self, agent: str, *argv: str, **plan: Any) -> Iterator[Pane]:
        """An agent that runs `argv`, by rules of its own unless others are given."""

        class One(Pane):
            pass

        One.agent = agent
        given = {"isolation": self.rules_of(agent), **plan}
        one = One(self.site, argv, {name: self.site.env[name] for name in ("PATH", *TESTING)}, given)
        one.start()
        try:
            yield one
        finally:
            one.close()

    def noted(self) -> int:
        """The launcher that has built the root."""
        with open(self.note, encoding="ascii") as file:
            return int(file.read().split()[0])

    def probe(self, agent: str, *tries: str, **plan: Any) -> dict[str, Any]:
        """How the attempts of an agent went."""
        report = self.path("session/unit", agent, "report.json")
        with self.agent(agent, sys.executable, PROBER, report, *tries, **plan) as one:
            assert one.wait() == 0, one.output
        with open(report, encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
        return found

    @contextmanager
    def first(self) -> Iterator[Pane]:
        """An agent that stays, and has put something everywhere it may."""
        places = f"/tmp/secret /dev/shm/secret {self.path('hidden/own/00/secret')}"
        with self.agent("00", "sh", "-c", f"stat -c '<%d>' /; touch {places} && echo ready; exec sleep 1000") as one:
            one.expect(b"ready")
            yield one


@pytest.fixture
def flat() -> Iterator[Flat]:
    # Each agent has a /tmp of its own, with all that is below it.
    with fresh_site(ELSEWHERE or "/tmp") as site:
        yield Flat(site)


def device(one: Pane) -> str:
    """That of an agent's root, as the agent sees it."""
    return bytes(one.output).partition(b"<")[2].partition(b">")[0].decode()


def test_agents_have_copies_of_one_root(flat: Flat) -> None:
    with flat.first() as one:
        assert flat.probe("01", DEVICE)[DEVICE].strip() == device(one)
        # Another file, another root.
        alone = flat.probe("01", DEVICE, isolation=flat.rules_of("01", shared_root=""))
        assert alone[DEVICE].strip() != device(one)


def test_nothing_of_one_agent_is_seen_by_another(flat: Flat) -> None:
    own = flat.path("hidden/own")
    places = ["list:/tmp", "list:/var/tmp", "list:/dev/shm"]
    with flat.first() as one:
        found = flat.probe("01", *places, "pids:", "list:/dev/pts", f"list:{own}")
        agent = one.event("start")["pid"]
        assert os.path.exists(flat.path("tmp/00/secret"))
        assert os.path.exists(f"/proc/{agent}/root/dev/shm/secret")
    assert not any("secret" in found[place] for place in places)
    assert found["list:/dev/pts"] == ["ptmx"]
    assert found[f"list:{own}"] == ["01"]
    assert len(found["pids:"]) == 2


def test_the_mounts_are_the_same_as_in_a_root_of_its_own(flat: Flat) -> None:
    with flat.first():
        shared = flat.probe("01", MOUNTS)[MOUNTS].splitlines()
    alone = flat.probe("01", MOUNTS, isolation=flat.rules_of("01", shared_root=""))[MOUNTS].splitlines()
    # An agent's own /proc lies over that of a process namespace in which no process is left.
    proc = next(line for line in alone if line.split()[1] == "/proc")
    assert sorted(shared) == sorted([*alone, proc])


def test_what_all_have_cannot_be_changed_or_uncovered(flat: Flat) -> None:
    tries = [
        "umount:/proc",
        "umount:/usr",
        "remount:/usr",
        "write:/new",
        "write:/dev/new",
        f"write:{flat.path('hidden/x')}",
    ]
    with flat.first():
        found = flat.probe("01", *tries)
    assert set(found.values()) <= {"EPERM", "EROFS", "EACCES", "ENOSYS", "EINVAL"}


def test_the_root_goes_with_the_launcher_that_built_it_and_the_next_builds_another(flat: Flat) -> None:
    with flat.first() as one:
        with flat.agent("01", "sh", "-c", "stat -c '<%d>' /; read line; ls /usr; stat -c 'again %d' /") as two:
            two.expect(b">")
            assert device(two) == device(one)
            one.process.kill()
            one.process.wait()
            two.send(b"\r")
            two.expect(f"again {device(two)}".encode())
            assert two.wait() == 0
        assert flat.noted() == one.process.pid
        with flat.first() as three:
            assert flat.noted() == three.process.pid


@pytest.mark.parametrize("words", [b"-", b"no note", b"1 2 3 4 5 6", b""])
def test_without_a_shared_root_an_agent_builds_its_own(flat: Flat, words: bytes) -> None:
    with open(flat.note, "wb") as file:
        file.write(words)
    found = flat.probe("00", "list:/", f"read:{flat.path('plain/key')}", "write:/usr/new")
    assert set(found["list:/"]) == set(
        flat.probe("00", "list:/", isolation=flat.rules_of("00", shared_root=""))["list:/"]
    )
    assert found["write:/usr/new"] in ("EROFS", "EACCES")
    assert found[f"read:{flat.path('plain/key')}"] in ("ENOENT", "EACCES", "ENXIO")


@pytest.mark.parametrize("space", ["net", "mnt"])
def test_what_is_no_root_of_ours_is_not_entered(flat: Flat, space: str) -> None:
    # Namespaces of this very process: the one of the network is no root at all, the other is that of the machine.
    held = [os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name in ("user", space)]
    with open(flat.note, "wb") as file:
        file.write(note(held))
    found = flat.probe("00", "list:/", "list:/run", "pids:", "status:CapEff")
    for fd in held:
        os.close(fd)
    alone = flat.probe("00", "list:/", isolation=flat.rules_of("00", shared_root=""))
    assert set(found["list:/"]) == set(alone["list:/"])
    assert found["list:/run"] == []
    assert len(found["pids:"]) == 2
    assert int(found["status:CapEff"], 16) == 0


def test_a_launcher_killed_while_others_wait_for_it_holds_up_none(flat: Flat) -> None:
    holder = subprocess.Popen(["flock", flat.note, "sleep", "1000"], env=flat.site.env, start_new_session=True)
    until(lambda: psutil.Process(holder.pid).children(), "its lock")
    with flat.agent("00", "sh", "-c", "echo ready; exec sleep 1000") as one:
        until(lambda: flat.note in {file.path for file in psutil.Process(one.process.pid).open_files()}, "it waits")
        for process in psutil.Process(holder.pid).children():
            process.kill()
        holder.wait()
        one.expect(b"ready")


def test_an_agent_that_is_started_again_later_builds_its_own(flat: Flat) -> None:
    script = "stat -c '<%d>' / >> devices; exit 1"
    with flat.first() as one:
        with flat.agent("01", "sh", "-c", script, restart="on-failure", restart_limit=1) as two:
            assert two.wait() == 1
        with open(two.path("devices"), encoding="ascii") as file:
            before, after = (line.strip("<>\n") for line in file)
        assert before == device(one) != after


def test_it_leaves_no_process_and_no_descriptor_for_agents(flat: Flat) -> None:
    with ExitStack() as stack:
        one = stack.enter_context(flat.first())
        below = psutil.Process(one.process.pid).children(recursive=True)
        until(lambda: [process.name() for process in below] == ["sleep"] * 2, "it is what its shell became")
        assert {int(fd) for fd in os.listdir(f"/proc/{one.event('start')['pid']}/fd")} == {0, 1, 2}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can have a mount that others follow")
def test_no_mount_of_an_agent_is_seen_outside(flat: Flat) -> None:
    # As with systemd, where all mounts are followed by copies of them.
    directory = flat.site.directory
    subprocess.run(["mount", "--bind", directory, directory], check=True)
    try:
        subprocess.run(["mount", "--make-shared", directory], check=True)
        before = mounts_in(directory)
        with flat.first():
            assert mounts_in(directory) == before
    finally:
        subprocess.run(["umount", "-l", directory], check=True)


def mounts_in(directory: str) -> set[str]:
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        return {line for line in file if directory in line}


def test_every_tmpfs_is_read_only_or_has_a_size(viewed: House) -> None:
    look = "run:grep ' - tmpfs ' /proc/self/mountinfo"
    for line in viewed.attempts([look])[look].splitlines():
        fields = line.split(" ")
        assert fields[5].startswith("ro,") or "size=" in fields[-1], line
