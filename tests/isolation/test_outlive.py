"""Nothing outlives the stop of its session: not what has shed its parents, terminal and variables, nor its launcher."""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress

import psutil
import pytest

from tests.isolation.tiers import start_in
from tests.site import AGENTS, Site, until

ESCAPER = os.path.join(AGENTS, "escaper.py")
TIERS = ("A", "B", "D")


def started(site: Site, tier: str, *more: str) -> str:
    """A session of one agent whose daemons have nothing left that shows where they are from."""
    return start_in(site, tier, [ESCAPER, *more], {"team": "solo"})


def daemons(site: Site, session: str) -> list[psutil.Process]:
    """The agent's daemons as they are seen from outside: each sleeps for its own strange time."""
    path = site.session(session, "unit", "00", "daemons.json")
    until(lambda: os.path.exists(path), "its daemons")
    with open(path, encoding="utf-8") as file:
        wanted = json.load(file)
    return [process for process in psutil.process_iter(["cmdline"]) if (process.info["cmdline"] or [])[1:2] == [wanted]]


def living(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [one for one in processes if _lives(one)]


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def kill_launcher(site: Site, session: str) -> None:
    with open(site.session(session, "logs", "agent-00.events.jsonl"), encoding="utf-8") as file:
        launcher = psutil.Process(json.loads(file.readline())["launcher"])
    launcher.kill()
    until(lambda: not living([launcher]), "the end of the launcher")


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("killed", [False, True], ids=["launcher lives", "launcher killed"])
def test_daemons_without_any_trace_end_with_their_session(site: Site, tier: str, killed: bool) -> None:
    session = started(site, tier)
    found = daemons(site, session)
    try:
        # A control: they are there, and would go on.
        assert len(living(found)) == 3
        assert not any("MAS_PANE" in one.environ() for one in found)
        if killed:
            kill_launcher(site, session)
            if tier != "A":
                assert len(living(found)) == 3
        site.mas("stop", session)
        assert living(found) == []
    finally:
        for one in living(found):
            one.kill()


@pytest.mark.parametrize("tier", ["A", "B"])
def test_a_storm_of_processes_ends_with_its_session_although_launcher_and_egress_were_killed(
    site: Site, tier: str
) -> None:
    """Each of them lives for milliseconds only: whoever lists them and then ends them comes too late."""
    # Recognised by what only they were started with.
    word = f"storm-{os.path.basename(site.directory)}"
    session = started(site, tier, "storm", word)
    until(lambda: os.path.exists(site.session(session, "unit", "00", "daemons.json")), "its daemons")
    try:
        # A control: at two looks they are others, and the agent itself is one of them.
        first = of_storm(word)
        until(lambda: len(of_storm(word) - first) > 1, "other processes than before")
        if tier == "A":
            space = os.readlink(site.session(session, ".mas", "network", "space"))
            psutil.Process(int(space.split()[0])).kill()
        kill_launcher(site, session)
        if tier == "B":
            until(lambda: of_storm(word), "the storm")
        site.mas("stop", session)
        assert set().union(*(of_storm(word) for _ in range(20))) == set()
    finally:
        while found := of_storm(word):
            for pid in found:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def of_storm(word: str) -> set[int]:
    """The processes whose last argument is that word, at this moment."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            if file.read().split(b"\0")[-2:-1] == [word.encode()]:
                found.add(int(pid))
    return found


@pytest.mark.parametrize("tier", ["A", "B"])
def test_an_isolated_agent_cannot_shed_the_mark(site: Site, tier: str) -> None:
    session = started(site, tier, "shed")
    found = daemons(site, session)
    with open(site.session(session, "unit", "00", "shed.json"), encoding="utf-8") as file:
        assert json.load(file) == ["EPERM", "EPERM", "EPERM"]
    site.mas("stop", session)
    assert living(found) == []


def test_what_another_session_left_is_not_touched(site: Site) -> None:
    one, other = started(site, "D"), started(site, "D")
    ours, theirs = daemons(site, one), daemons(site, other)
    site.mas("stop", one)
    assert (living(ours), len(living(theirs))) == ([], 3)
    site.mas("stop", other)
    assert living(theirs) == []


def test_a_restart_ends_what_a_killed_launcher_left_of_its_agent_alone(site: Site) -> None:
    session = started(site, "D")
    found = daemons(site, session)
    kill_launcher(site, session)
    os.unlink(site.session(session, "unit", "00", "daemons.json"))
    site.mas("restart-agent", f"{session}:00")
    assert living(found) == []
    assert len(living(daemons(site, session))) == 3
    site.mas("stop", session)
