"""How agents behind walls live and end: as those without do, and all that they leave ends with them."""

from __future__ import annotations

import os
import signal

import psutil
import pytest

from mas.model.launch import StatePlan
from tests.pane.pane import stand_in
from tests.pane.test_end import STUBBORN, is_gone, last_line
from tests.pane.test_surroundings import SLOW
from tests.sandbox.house import House
from tests.site import until


@pytest.mark.parametrize(
    ("script", "status"), [("exit 0", 0), ("exit 137", 137), ("kill -9 $$", -9), ("kill -TERM $$", -15)]
)
def test_the_exit_is_reported_exactly(house: House, script: str, status: int) -> None:
    with house.pane("sh", "-c", script) as one:
        assert one.wait() == (status if status >= 0 else 128 - status)
        end = one.event("exit")
        assert (end["status"], end["left"], end["undying"]) == (status, [], [])
        assert last_line(one) == f"[agent 00 exited: {f'exit status {status}' if status >= 0 else f'signal {-status}'}]"


def test_ctrl_c_and_the_size_reach_the_agent(house: House) -> None:
    with house.pane(*stand_in("size")) as one:
        one.expect(b"[100x30]")
        one.resize(81, 25)
        one.expect(b"[81x25]")
        one.send(b"\x03")
        assert one.wait() == 128 + signal.SIGINT or one.event("exit")["status"] == 1


def test_job_control_works_and_the_foreground_is_seen(house: House) -> None:
    plan = {"states": StatePlan(sources=("foreground",))}

    def state() -> str:
        return ["", *(str(event["state"]) for event in one.events() if event["event"] == "state")][-1]

    with house.pane("sh", "-i", plan=plan, agent_env={"PS1": "", "ENV": ""}) as one:
        until(lambda: state() == "idle", "the idle shell")
        one.send(b"sleep 1000\r")
        until(lambda: state() == "working", "a job")
        shell = psutil.Process(one.event("start")["pid"])
        one.send(b"\x1a")
        until(lambda: [child.status() for child in shell.children()] == [psutil.STATUS_STOPPED], "the job stopped")
        until(lambda: state() == "idle", "the shell has the terminal")
        one.send(b"fg\r")
        until(lambda: state() == "working", "the job again")
        one.send(b"\x03")
        until(lambda: not shell.children(), "the end of the job")
        one.send(b"exit 4\r")
        assert one.wait() == 4


def test_what_the_agent_leaves_behind_is_ended_and_named(house: House) -> None:
    script = (
        "setsid sh -c 'echo $$ > one; exec sleep 1000' &\n"
        "(setsid sh -c 'echo $$ > two; exec sleep 1001' &)\n"
        'is_sleep() { [ "$(cat /proc/$(cat $1 2>/dev/null)/comm 2>/dev/null)" = sleep ]; }\n'
        "until is_sleep one && is_sleep two; do sleep 0.01; done; exit 5"
    )
    with house.pane("sh", "-c", script) as one:
        assert one.wait() == 5
        end = one.event("exit")
        assert [entry.split(" ")[1] for entry in end["left"]] == ["sleep", "sleep"]
        assert end["undying"] == []
        assert all(is_gone(int(entry.split(" ")[0])) for entry in end["left"])
        assert house.site.processes() == []


def test_orphans_that_end_are_collected(viewed: House) -> None:
    script = "(sh -c 'echo $$ > half; mv half orphan' &); until [ -e orphan ]; do sleep 0.01; done; "
    script += "while [ -e /proc/$(cat orphan) ]; do sleep 0.01; done; echo collected"
    with viewed.pane("sh", "-c", script) as one:
        one.expect(b"collected")
        assert one.wait() == 0


def test_an_agent_is_asked_to_end_and_then_killed(house: House) -> None:
    with house.pane("sh", "-c", "trap 'exit 3' TERM; trap '' HUP; echo ready; while :; do sleep 0.02; done") as one:
        one.expect(b"ready")
        one.process.terminate()
        assert one.wait() == 3
    with house.pane("sh", "-c", STUBBORN) as one:
        one.expect(b"ready")
        one.hang_up()
        one.process.wait(timeout=60)
        assert one.events()[-1]["status"] == -signal.SIGKILL
        assert house.site.processes() == []


def test_a_launcher_that_is_killed_takes_all_with_it(viewed: House) -> None:
    with viewed.pane("sh", "-c", "setsid sleep 1000 & (setsid sleep 1001 &); " + STUBBORN) as one:
        one.expect(b"ready")
        below = psutil.Process(one.process.pid).children(recursive=True)
        one.process.kill()
        until(lambda: not viewed.site.processes(), "the end of them all")
        assert len(below) >= 4
        until(lambda: all(is_gone(process.pid) for process in below), "the end of its keepers")


def test_a_keeper_that_is_killed_takes_the_agent_with_it(viewed: House) -> None:
    with viewed.pane("sh", "-c", "setsid sleep 1000 & " + STUBBORN) as one:
        one.expect(b"ready")
        agent = one.event("start")["pid"]
        (keeper,) = (child for child in psutil.Process(one.process.pid).children() if child.pid != agent)
        keeper.kill()
        assert one.wait() == 128 + signal.SIGKILL
        assert viewed.site.processes() == []


def test_an_agent_runs_again_behind_the_same_walls(house: House) -> None:
    plain = house.path("plain/file")
    script = f"echo x >> runs; echo y >> {plain} || echo refused; exit 1"
    with house.pane("sh", "-c", script, plan={"restart": "on-failure", "restart_limit": 1}) as one:
        assert one.wait() == 1
        assert one.output.count(b"refused") == 2
        assert [event["event"] for event in one.events()] == ["start", "exit"] * 2
    assert house.get("session/unit/00/runs") == "x\n" * 2
    assert house.get("plain/file") == "as it was"


def test_the_agent_finds_the_signals_as_any_program_does(house: House) -> None:
    with house.pane("sh", "-c", "grep -E '^Sig(Ign|Blk)' /proc/self/status", before="trap '' TERM INT") as one:
        assert one.wait() == 0
        shown = dict(line.split(":\t") for line in one.log().decode().split("\r\n") if ":" in line)
    assert {name: int(value, 16) & 0x7FFFFFFF for name, value in shown.items()} == {"SigBlk": 0, "SigIgn": 0}


def test_without_its_walls_no_agent_starts(house: House) -> None:
    gone = house.path("gone")
    with house.pane("touch", "started", rules=house.rules(write=(gone,))) as one:
        assert one.wait() == 127
        assert "did not start: cannot be isolated: " in last_line(one)
        assert f"{gone}: No such file or directory" in last_line(one)
        (event,) = one.events()
        assert event["reason"].startswith("cannot be isolated: ")
    assert not os.path.exists(house.path("session/unit/00/started"))


def test_a_link_put_in_place_of_a_path_is_refused(house: House) -> None:
    os.rename(house.path("hidden/inner/shown/own"), house.path("moved"))
    os.symlink(house.path("plain"), house.path("hidden/inner/shown/own"))
    with house.pane("true") as one:
        assert one.wait() == 127
        assert "cannot be isolated" in last_line(one)


def test_a_program_that_cannot_be_run_is_reported_as_such(house: House) -> None:
    for program, why in (("no-such-program", "No such file or directory"), ("/", "Permission denied")):
        with house.pane(program, agent_env={"PATH": "/usr/bin:/bin"}) as one:
            assert one.wait() == 127
            assert last_line(one) == f"[agent 00 did not start: cannot run {program}: {why}]"
        os.unlink(house.path("session/logs/agent-00.events.jsonl"))


def test_the_walls_cost_the_launcher_no_slow_import(house: House) -> None:
    with house.pane("true", flags=["-X", "importtime"]) as one:
        assert one.wait() == 0
        lines = [line for line in one.output.decode(errors="replace").splitlines() if line.startswith("import time:")]
    modules = {line.rsplit("|", 1)[1].strip() for line in lines[1:]}
    assert "mas.runtime.sandbox.enter" in modules
    assert modules & (SLOW | {"ctypes"}) == set()


def test_a_missing_bubblewrap_is_named(bare_landlock: House) -> None:
    bare_landlock.how, bare_landlock.tier = "bwrap", "A"
    os.mkdir(bare_landlock.path("bin"))
    os.symlink("/bin/sh", bare_landlock.path("bin/sh"))
    with bare_landlock.pane("true", env={"PATH": bare_landlock.path("bin")}) as one:
        assert one.wait() == 127
        assert last_line(one) == "[agent 00 did not start: cannot be isolated: bubblewrap (bwrap) is not installed]"
