"""A short round is played whole, and what the faults are made of does what it says."""

from __future__ import annotations

import os
import sys
from contextlib import closing

import pytest

from tests.seed import SEED
from tests.served import Served
from tests.site import Site
from tests.torture.doors import Client, CommandLine, Http, Wish
from tests.torture.faults import Fault, Shared
from tests.torture.report import put, torture_text
from tests.torture.round import DOORS, INJECTED, Size, faults_of, play, prepare

SHORT = Size(clients=1, wishes=4, seconds=6.0)


def test_a_short_round_of_another_seed_in_every_run_ends_with_nothing_wrong(tmp_path: os.PathLike[str]) -> None:
    seed = int(os.environ[SEED])
    result = play(seed, SHORT, faults_of(seed), os.fspath(tmp_path))
    again = f"--seed {seed} --rounds 1 --clients {SHORT.clients} --wishes {SHORT.wishes}"
    assert result.problems == [], f'kept in {result.kept}; again: make torture TORTURE="{again}"'
    assert result.kept is None
    assert {entry.door for entry in result.entries} >= {"command", "http", "client"}
    assert f"seeds {result.seed} to {result.seed}" in torture_text([result])


def test_a_round_in_which_clients_are_killed_ends_once_all_is_asked_for(tmp_path: os.PathLike[str]) -> None:
    size = Size(clients=1, wishes=2)
    result = play(11927286, size, (Fault.CLIENTS,), os.fspath(tmp_path))
    assert result.problems == []
    # One for each client and one for the command that it runs, for every wish.
    assert result.faults[Fault.CLIENTS] <= 2 * size.wishes * len(DOORS)


def test_a_clone_that_was_left_stopped_is_known_through_every_door(bare: Site) -> None:
    prepare(bare)
    source = bare.start("--team", "solo", "--provider", "keeper")
    with closing(Served(bare)) as served:
        os.unlink(bare.path("providers", "keeper.toml"))
        doors = (CommandLine(bare.root, bare.env), Http(served.url, served.token), Client(served.socket))
        outcomes = []
        for door in doors:
            with closing(door):
                outcomes.append(door.ask(Wish("clone", source, flag=True)))
    assert {outcome.end for outcome in outcomes} == {"refused"}
    assert sorted(str(outcome.made) for outcome in outcomes) == sorted(set(bare.statuses()) - {source})


def test_rounds_in_a_row_have_every_fault_and_a_seed_always_the_same() -> None:
    assert {fault for seed in range(len(Fault)) for fault in faults_of(seed)} == set(Fault)
    assert faults_of(5) == faults_of(5)


@pytest.mark.parametrize("jump", [-1e8, 1e8])
def test_the_clock_of_a_program_jumps_while_it_runs(bare: Site, jump: float) -> None:
    shared = Shared(os.path.join(bare.directory, "shared"))
    program = (
        "import struct, sys, time\n"
        "before = time.time()\n"
        f"open(sys.argv[1], 'r+b').write(struct.pack('=dd', {jump}, 0))\n"
        "print(round((time.time() - before) / 1e7), round((time.time_ns() / 1e9 - before) / 1e7))"
    )
    env = {"MAS_TORTURE": shared.path, "PYTHONPATH": INJECTED}
    done = bare.run([sys.executable, "-c", program, shared.path], env=env)
    assert done.stdout.split() == [str(round(jump / 1e7))] * 2, done.stderr


def test_a_slow_disk_makes_opening_and_syncing_wait(bare: Site) -> None:
    shared = Shared(os.path.join(bare.directory, "shared"))
    program = (
        "import os, sys, time\n"
        "waited = []\n"
        "time.sleep = waited.append\n"
        "file = open(sys.argv[1], 'wb'); os.fsync(file.fileno()); os.rename(sys.argv[1], sys.argv[1] + '2')\n"
        "print(len(waited), all(0 <= one <= 0.05 for one in waited))"
    )
    shared.set(slow=0.05)
    env = {"MAS_TORTURE": shared.path, "PYTHONPATH": INJECTED}
    done = bare.run([sys.executable, "-c", program, os.path.join(bare.directory, "file")], env=env)
    assert done.stdout.split() == ["3", "True"], done.stderr


def test_a_part_of_the_document_is_replaced_and_the_other_left(tmp_path: os.PathLike[str]) -> None:
    path = os.path.join(tmp_path, "torture.md")
    put(path, "torture", "one")
    put(path, "soak", "two")
    put(path, "torture", "three")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert "one" not in text
    assert text.index("three") < text.index("two")
