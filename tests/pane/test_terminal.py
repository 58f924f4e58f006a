"""The agent's terminal: its size follows the pane, and keys that mean signals reach the agent alone."""

from __future__ import annotations

import os

import psutil

from tests.pane.pane import pane, stand_in
from tests.site import Site, until


def test_the_agent_starts_with_the_size_of_the_pane_and_follows_it(bare: Site) -> None:
    with pane(bare, *stand_in("size")) as one:
        one.expect(b"[100x30]")
        for width, height in ((80, 24), (301, 99), (1, 1), (100, 30)):
            one.resize(width, height)
            until(
                lambda wanted=b"[%dx%d]" % (width, height): one.output.endswith(wanted),  # type: ignore[misc]
                f"{width}x{height}",
            )


def test_ctrl_c_interrupts_the_agent_and_not_the_launcher(bare: Site) -> None:
    script = "trap 'echo interrupted' INT; trap 'echo quitted' QUIT; echo ready; while :; do sleep 0.02; done"
    with pane(bare, "sh", "-c", script) as one:
        one.expect(b"ready")
        one.send(b"\x03")
        one.expect(b"interrupted")
        one.send(b"\x1c")
        one.expect(b"quitted")
        assert one.process.poll() is None


def test_job_control_works_in_a_shell(bare: Site) -> None:
    with pane(bare, "sh", "-i", agent_env={"PS1": "", "ENV": ""}) as one:
        one.send(b"echo rea''dy; sleep 1000\r")
        one.expect(b"ready\r\n")
        shell = psutil.Process(one.event("start")["pid"])
        until(lambda: [child.name() for child in shell.children()] == ["sleep"], "the job")
        one.send(b"\x1a")
        until(lambda: [child.status() for child in shell.children()] == [psutil.STATUS_STOPPED], "the job stopped")
        one.send(b"fg\r")
        until(lambda: [child.status() for child in shell.children()] == [psutil.STATUS_SLEEPING], "the job again")
        one.send(b"\x03")
        until(lambda: not shell.children(), "the end of the job")
        one.send(b"echo still he''re; exit 4\r")
        assert one.wait() == 4
        assert b"still here" in one.output


def test_an_agent_cannot_stop_itself_for_ever_with_ctrl_z(bare: Site) -> None:
    with pane(bare, "sh", "-c", "echo ready; read line; echo got $line") as one:
        one.expect(b"ready")
        one.send(b"\x1a")
        one.send(b"hello\r")
        one.expect(b"got hello")
        assert one.wait() == 0


def test_a_terminal_that_the_agent_closed_and_opened_again_still_works(bare: Site) -> None:
    script = (
        "exec </dev/null >/dev/null 2>&1; touch closed; while [ ! -e go ]; do sleep 0.01; done\n"
        "read line </dev/tty; echo got $line >/dev/tty"
    )
    with pane(bare, "sh", "-c", script) as one:
        until(lambda: os.path.exists(one.path("closed")), "the closed terminal")
        launcher = psutil.Process(one.process.pid)
        until(lambda: launcher.status() == psutil.STATUS_SLEEPING, "the launcher at rest")
        with open(one.path("go"), "w", encoding="ascii"):
            pass
        one.send(b"hello\r")
        one.expect(b"got hello")
        assert one.wait() == 0


def test_end_of_input_reaches_the_agent(bare: Site) -> None:
    with pane(bare, "sh", "-c", "echo ready; cat; echo end") as one:
        one.expect(b"ready")
        one.send(b"line\r\x04")
        one.expect(b"end")
        assert one.wait() == 0
