"""How agents end: what is on record of it, and that nothing of them stays."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import time

import psutil
import pytest

from mas.pane.home import Home
from mas.store.agent.log_stream import Recording
from tests.pane.pane import Pane, pane, stand_in
from tests.site import Site, until

# Ignores every polite signal, and so do the children it waits with.
STUBBORN = "trap '' HUP TERM INT QUIT; echo ready; while :; do sleep 0.1; done"


def last_line(one: Pane) -> str:
    return one.output.decode(errors="replace").rstrip("\r\n").split("\n")[-1]


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize("status", [0, 1, 7, 127, 255])
def test_an_exit_status_is_the_panes_is_on_record_and_is_shown(bare: Site, status: int) -> None:
    with pane(bare, "sh", "-c", f"exit {status}") as one:
        assert one.wait() == status
        start, end = one.events()
        assert (start["event"], start["launcher"]) == ("start", one.process.pid)
        assert start["program"] == "sh"
        assert (end["event"], end["status"], end["left"], end["undying"]) == ("exit", status, [], [])
        assert last_line(one) == f"[agent 00 exited: exit status {status}]"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_death_by_a_signal_is_reported_as_such(bare: Site, number: signal.Signals) -> None:
    with pane(bare, "sh", "-c", f"kill -{int(number)} $$") as one:
        assert one.wait() == 128 + number
        assert one.event("exit")["status"] == -number
        assert last_line(one) == f"[agent 00 exited: signal {int(number)}]"


def test_the_terminal_is_put_back_in_order_for_the_last_line(bare: Site) -> None:
    with pane(bare, "printf", "\\033[?1049h\\033[?25l\\033[31mfull screen") as one:
        assert one.wait() == 0
        end = one.output[one.output.index(b"full screen") :]
        assert end.index(b"\x1b[?1049l") < end.index(b"[agent 00 exited")
        assert b"\x1b[?25h" in end
        assert b"\x1b[0m" in end


def test_what_the_agent_leaves_behind_is_ended_and_named(bare: Site) -> None:
    wait = "exec sleep 1000"
    script = (
        f"setsid sh -c 'echo $$ > new-session; {wait}' &\n"
        f"(setsid sh -c 'echo $$ > orphan; {wait}' &)\n"
        f"(trap '' HUP; sh -c 'echo $$ > deaf; {wait}' &)\n"
        "until [ -s new-session ] && [ -s orphan ] && [ -s deaf ]; do sleep 0.01; done; exit 5"
    )
    with pane(bare, "sh", "-c", script) as one:
        assert one.wait() == 5
        left = {int(entry.split(" ")[0]) for entry in one.event("exit")["left"]}
        for name in ("new-session", "orphan", "deaf"):
            with open(one.path(name), encoding="ascii") as file:
                assert int(file.read()) in left
        assert all(is_gone(pid) for pid in left)
        assert bare.processes() == []


def test_a_child_with_a_misleading_name_is_named_as_it_is(bare: Site) -> None:
    name = 'a) R 1 ("\\é'
    program = os.path.join(bare.directory, name)
    os.symlink("/bin/sleep", program)
    with pane(bare, "sh", "-c", 'setsid "$0" 1000 & until grep -q 1 /proc/$!/comm; do :; done', program) as one:
        assert one.wait() == 0
        (left,) = one.event("exit")["left"]
        assert left.split(" ", 1)[1] == name
        assert bare.processes() == []


def test_a_process_that_keeps_the_terminal_open_does_not_hold_the_launcher(bare: Site) -> None:
    with pane(bare, "sh", "-c", "(trap '' HUP; exec sleep 1000) & echo bye") as one:
        assert one.wait() == 0
        assert b"bye" in one.output


def test_a_process_that_goes_on_writing_does_not_hold_the_launcher(bare: Site) -> None:
    with pane(bare, "sh", "-c", "(trap '' HUP; while :; do echo noise; done) & sleep 0.1; exit 6") as one:
        assert one.wait() == 6
        assert bare.processes() == []


def test_an_agent_that_is_asked_to_end_may_save_its_work_first(bare: Site) -> None:
    script = "trap 'echo saved > work; exit 0' TERM; trap '' HUP; echo ready; while :; do sleep 0.02; done"
    with pane(bare, "sh", "-c", script) as one:
        one.expect(b"ready")
        one.process.terminate()
        assert one.wait() == 0
        with open(one.path("work"), encoding="ascii") as file:
            assert file.read() == "saved\n"


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_an_agent_that_ignores_every_polite_signal_is_killed_in_the_end(bare: Site, number: signal.Signals) -> None:
    with pane(bare, "sh", "-c", STUBBORN) as one:
        one.expect(b"ready")
        one.process.send_signal(number)
        assert one.wait() == 128 + signal.SIGKILL
        assert one.event("exit")["status"] == -signal.SIGKILL
        assert bare.processes() == []


def test_the_end_of_tmux_is_the_end_of_everything(bare: Site) -> None:
    with pane(bare, "sh", "-c", "setsid sleep 1000 & echo ready; sleep 1000") as one:
        one.expect(b"ready")
        one.hang_up()
        one.process.wait(timeout=60)
        assert one.event("exit")["status"] < 0
        assert bare.processes() == []


def test_a_stopped_agent_ends_with_tmux_too(bare: Site) -> None:
    with pane(bare, "sh", "-c", "echo ready; exec sleep 1000") as one:
        one.expect(b"ready")
        os.kill(one.event("start")["pid"], signal.SIGSTOP)
        one.hang_up()
        one.process.wait(timeout=60)
        assert bare.processes() == []


def test_a_launcher_that_is_killed_takes_the_agent_with_it(bare: Site) -> None:
    with pane(bare, "sh", "-c", STUBBORN) as one:
        one.expect(b"ready")
        agent = one.event("start")["pid"]
        one.process.kill()
        until(lambda: is_gone(agent), "the end of the agent")
        until(lambda: not bare.processes(), "the end of its child")


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("no-such-program", "No such file or directory"),
        ("/", "Permission denied"),
        ("/no/such/program", "No such file or directory"),
    ],
)
def test_a_program_that_cannot_be_run_is_a_sentence_and_a_status(bare: Site, program: str, why: str) -> None:
    with pane(bare, program, "--flag", agent_env={"PATH": "/usr/bin:/bin"}) as one:
        assert one.wait() == 127
        (event,) = one.events()
        assert (event["event"], event["status"]) == ("exit", 127)
        assert why in event["reason"]
        assert last_line(one) == f"[agent 00 did not start: cannot run {program}: {why}]"


def test_a_file_without_permission_to_run_is_refused(bare: Site) -> None:
    path = os.path.join(bare.directory, "text")
    with open(path, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\n")
    with pane(bare, path) as one:
        assert one.wait() == 127
        assert "Permission denied" in last_line(one)


def test_a_missing_unit_directory_is_refused_in_a_sentence(bare: Site) -> None:
    made = Pane(bare, ["sh"], {}, {})
    os.rmdir(made.path())
    made.start()
    try:
        assert made.wait() == 127
        assert "cannot enter its unit directory" in made.event("exit")["reason"]
        assert "did not start" in last_line(made)
    finally:
        made.close()


@pytest.mark.parametrize(
    "name",
    ['quo"te', "back\\slash", "new\nline", "tab\tand\x1bescape", "ünïcödé 🙂", "not utf-8 \udcff\udc80", "a)b(c"],
)
def test_events_are_json_whatever_the_program_is_called(bare: Site, name: str) -> None:
    path = os.path.join(bare.directory, name)
    os.symlink("/bin/true", path)
    with pane(bare, path) as one:
        assert one.wait() == 0
        assert one.event("start")["program"] == path


def test_a_dead_pane_in_tmux_has_the_status_the_last_line_and_no_shell(site: Site) -> None:
    session = site.start("--team", "solo", "--command", "sh -c 'exit 9'")
    place = f"=mas-{session[:8]}:"

    def pane_state() -> str:
        return site.tmux("list-panes", "-s", "-t", place, "-F", "#{pane_dead} #{pane_dead_status}")

    until(lambda: site.json("show", session)["agents"][0]["exitStatus"] == 9, "the exit status")
    assert pane_state() == "1 9"
    screen = site.tmux("capture-pane", "-p", "-t", place)
    assert "[agent 00 exited: exit status 9]" in screen
    site.tmux("send-keys", "-t", place, f"touch {site.directory}/executed", "Enter")
    assert pane_state() == "1 9"
    assert not os.path.exists(f"{site.directory}/executed")
    (agent,) = site.json("show", session)["agents"]
    assert (agent["state"], agent["exitStatus"]) == ("exited", 9)


def test_a_tmux_that_hangs_loses_nothing_of_the_log(site: Site) -> None:
    program, path = stand_in("flood")
    command = f"sh -c 'while [ ! -e go ]; do sleep 0.01; done; exec {program} {path} 3000000'"
    session = site.start("--team", "solo", "--command", command)
    log = site.session(session, "logs", "agent-00.log")
    recording = Recording(log)
    server = int(site.tmux("list-sessions", "-F", "#{pid}"))
    os.kill(server, signal.SIGSTOP)
    try:
        with open(site.session(session, "unit", "00", "go"), "w", encoding="ascii"):
            pass
        until(lambda: os.path.exists(log) and os.path.getsize(log) > 100_000, "the log to grow")
        assert recording.is_ahead()
    finally:
        os.kill(server, signal.SIGCONT)
    until(lambda: os.path.getsize(log) == 3_000_000, "all of it in the log")
    until(lambda: not recording.is_ahead(), "all of it on the screen")
    recording.close()
    until(lambda: "exited: exit status 0" in site.tmux("capture-pane", "-p", "-t", f"=mas-{session[:8]}:"), "the end")


def test_an_agent_ends_when_the_directory_of_its_session_is_removed_and_is_not_started_again(bare: Site) -> None:
    with pane(bare, "sh", "-c", STUBBORN, plan={"restart": "always", "restart_limit": 5}) as one:
        one.expect(b"ready")
        agent = one.event("start")["pid"]
        shutil.rmtree(one.session)
        one.process.wait(60)
        assert is_gone(agent)
        one.expect(b"the session's directory is gone")
        assert not os.path.exists(one.session)


def test_an_agent_goes_on_when_its_session_is_moved(bare: Site) -> None:
    with pane(bare, "sh", "-c", "echo ready; exec cat") as one:
        one.expect(b"ready")
        moved = f"{one.session}-moved"
        os.rename(one.session, moved)
        looks = Home(moved)
        until(lambda: time.monotonic() > looks.due, "the launcher's next look")
        one.send(b"still here\n")
        one.expect(b"still here\r\nstill here")
        os.rename(moved, one.session)


def test_a_directory_on_a_disk_that_counts_no_links_is_not_taken_for_removed(bare: Site) -> None:
    path = os.path.join(bare.directory, "uncounted")
    os.mkdir(path)
    fd = os.open(path, os.O_RDONLY)
    # An open directory without a name has no links from the start, as every one on such a file system.
    os.rmdir(path)
    home = Home(f"/proc/self/fd/{fd}")
    os.close(fd)
    home.look(time.monotonic())
    assert not home.is_gone


@pytest.mark.parametrize("is_there", [True, False])
def test_a_stale_handle_means_removed_only_if_the_path_is_gone_too(
    bare: Site, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    path = os.path.join(bare.directory, "remote")
    os.mkdir(path)
    home = Home(path)
    if not is_there:
        os.rmdir(path)

    def stale(_: int) -> os.stat_result:
        raise OSError(errno.ESTALE, "Stale file handle")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fstat", stale)
        home.look(time.monotonic())
    assert home.is_gone is not is_there
