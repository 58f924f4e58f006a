"""Use: what stats say of processor, memory and processes is what the machine says, by every door."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from typing import Any

import psutil
import pytest

from tests.e2e.standin import ASLEEP, command, pane_pids, start_body
from tests.served import Served
from tests.site import Site, until

MIB = 1 << 20
# Seconds of a processor: several times what a launcher and two small programs need.
_BURNT = 0.5


def start_hog(site: Site, *words: object) -> str:
    program = " ".join([command("hog"), *map(str, words)])
    session = start_body(site, {"team": "solo"}, "--command", program)
    until(lambda: os.path.exists(site.session(session, "unit", "00", "up")), "the agent")
    return session


def truth(site: Site, session: str) -> int:
    """The memory of a session's processes, by another's count."""
    (launcher,) = pane_pids(site, session)
    process = psutil.Process(launcher)
    return sum(one.memory_full_info().pss for one in (process, *process.children(recursive=True)))


def use(site: Site, session: str) -> dict[str, Any]:
    (found,) = site.json("stats", session)["sessions"]
    return dict(found)


@pytest.mark.parametrize(
    ("words", "least", "processes"),
    [
        (("memory", 200 * MIB), 200 * MIB, 2),
        (("memory", 100 * MIB, 5), 100 * MIB, 7),
        (("shared", 100 * MIB), 100 * MIB, 2),
        # Many small ones that share most of what they have.
        (("forks", 20), MIB, 22),
    ],
)
def test_memory_is_within_a_tenth_of_the_truth(site: Site, words: tuple[Any, ...], least: int, processes: int) -> None:
    session = start_hog(site, *words)
    found = use(site, session)
    assert found["memory"] == pytest.approx(truth(site, session), rel=0.1)
    assert least <= found["memory"] < 1.25 * least + 40 * MIB
    assert found["processes"] == processes
    (one,) = found["each"]
    assert (one["id"], one["memory"], one["processes"]) == ("00", found["memory"], processes)


def test_a_busy_agent_and_an_idle_one_are_distinguished(site: Site) -> None:
    busy, idle = start_hog(site, "spin"), site.start(*ASLEEP)
    found: dict[str, dict[str, Any]] = {}

    def distinguished() -> bool:
        found.update({one["sessionId"]: one for one in site.json("stats")["sessions"]})
        # What a busy one gets is little where others are busy too; an idle one needs nothing.
        return bool(found[busy]["cpu"] > 5 * found[idle]["cpu"] and found[busy]["cpu"] > 0.01)

    until(distinguished, "the busy one has more")
    assert found[busy]["cpuSeconds"] > 0
    later = use(site, busy)
    assert later["cpuSeconds"] > found[busy]["cpuSeconds"]


def test_time_of_processes_that_have_ended_still_counts(site: Site) -> None:
    burn = f"{sys.executable} -c 'import time\nwhile time.process_time() < {_BURNT}: pass'"
    script = f'sh -c "{burn}; touch up; exec sleep 1000"'
    session = start_body(site, {"team": "solo"}, "--command", script)
    until(lambda: os.path.exists(site.session(session, "unit", "00", "up")), "the end of the child")
    assert use(site, session)["cpuSeconds"] > _BURNT - 0.05
    assert use(site, session)["processes"] == 2


def test_totals_and_the_machine_are_shown_too(site: Site) -> None:
    sessions = [site.start(*ASLEEP) for _ in range(2)]
    found = site.json("stats")
    for key in ("memory", "processes", "disk"):
        assert found[key] == sum(one[key] for one in found["sessions"]) > 0
    host = found["host"]
    assert host["cores"] == psutil.cpu_count()
    assert host["memory"] == psutil.virtual_memory().total
    assert 0 <= host["cpu"] <= host["cores"] * 1.1
    assert 0 < host["diskFree"] < host["disk"]
    text = site.mas("stats").stdout
    assert all(session[:8] in text for session in sessions)
    assert "\nAGENT " not in text
    assert "\nAGENT " in site.mas("stats", sessions[0]).stdout


def test_a_stopped_session_takes_nothing_but_disk(site: Site) -> None:
    session = site.start(*ASLEEP)
    site.mas("stop", session)
    found = use(site, session)
    assert (found["cpu"], found["memory"], found["processes"], found["each"]) == (0, 0, 0, [])
    assert found["disk"] > 0


def test_watching_looks_again_until_interrupted(site: Site) -> None:
    site.start(*ASLEEP)
    argv = [sys.executable, "-m", "mas", "stats", "--watch", "0.5"]
    with subprocess.Popen(argv, env=site.env, cwd=site.root, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout
        seen = 0
        while seen < 2:
            seen += "1 active" in watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        rest, _ = watching.communicate(timeout=60)
    assert watching.returncode == 130
    assert "\x1b" not in rest


def test_a_server_returns_the_same_and_what_was_used_since_the_last_look(served: Served) -> None:
    site = served.site
    session = start_hog(site, "spin")
    client = served.client()
    began = time.monotonic()
    client.get(f"/sessions/{session}/stats").raise_for_status()
    (hog,) = psutil.Process(pane_pids(site, session)[0]).children()
    before = hog.cpu_times().user
    until(lambda: hog.cpu_times().user > before + 0.5, "half a second of work")
    found = client.get(f"/sessions/{session}/stats").raise_for_status().json()
    # Half a second within no more than this long; the system counts in hundredths.
    assert found["cpu"] > 0.45 / (time.monotonic() - began) - 0.01
    assert found["memory"] == pytest.approx(truth(site, session), rel=0.1)
    assert client.get("/stats").raise_for_status().json()["host"]["cores"] == psutil.cpu_count()
    metrics = client.get("/metrics").raise_for_status().text
    assert f'mas_session_memory_bytes{{session="{session}"}}' in metrics
    assert "mas_session_cpu_cores" in metrics
    there = served.mas("stats", "--json")
    assert f'"{session}"' in there.stdout


def test_if_the_system_shows_no_processes_tmux_says_which_agents_run(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = site.start(*ASLEEP)
    monkeypatch.setattr("mas.runtime.usage._processes", dict)
    (found,) = site.local().stats().sessions
    assert (found.session_id, found.live_agents, found.processes) == (session, 1, 0)


def test_what_an_agent_starts_cannot_pass_for_the_launcher_of_another(site: Site) -> None:
    victim = site.start(*ASLEEP)
    words = psutil.Process(pane_pids(site, victim)[0]).cmdline()[-3:]
    # A program may be called with any words; these make it wait.
    liar = "import sys, time; open('up', 'w'); time.sleep(1000)"
    argv = shlex.join([sys.executable, "-c", liar, *words])
    session = start_body(site, {"team": "solo"}, "--command", argv)
    until(lambda: os.path.exists(site.session(session, "unit", "00", "up")), "the agent")
    found = {one["sessionId"]: one["processes"] for one in site.json("stats")["sessions"]}
    assert found == {victim: 2, session: 2}
