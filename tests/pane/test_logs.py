"""The record: whole lines, rotation, and a disk that is full."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from mas.pane import logs
from mas.pane.logs import AgentLogs
from tests.pane.pane import pane, stand_in
from tests.site import Site

# Runs in a process of its own, because a limit on the size of files is the whole process's.
LIMITED = """
import resource, sys
from mas.pane.logs import AgentLogs

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

made = AgentLogs(sys.argv[1], "00")
"""


@pytest.fixture
def session(bare: Site) -> str:
    path = os.path.join(bare.directory, "session")
    os.makedirs(os.path.join(path, "logs"))
    return path


def read(session: str, name: str) -> bytes:
    with open(os.path.join(session, "logs", name), "rb") as file:
        return file.read()


def run_limited(session: str, script: str) -> None:
    subprocess.run([sys.executable, "-c", LIMITED + script, session], check=True, timeout=90)


def test_a_log_past_its_largest_size_starts_again_and_keeps_its_predecessor(
    session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "_LARGEST_LOG", 1000)
    made = AgentLogs(session, "00")
    written = [f"{number:0100d}".encode() for number in range(50)]
    for data in written:
        made.output(data)
    kept = read(session, "agent-00.log.1") + read(session, "agent-00.log")
    assert b"".join(written).endswith(kept)
    assert 1000 < len(kept) <= 2200
    assert sorted(os.listdir(os.path.join(session, "logs"))) == ["agent-00.log", "agent-00.log.1"]


def test_a_log_is_private_and_goes_on_where_it_was(session: str) -> None:
    for text in (b"first ", b"second"):
        AgentLogs(session, "00").output(text)
    assert read(session, "agent-00.log") == b"first second"
    assert os.stat(os.path.join(session, "logs", "agent-00.log")).st_mode & 0o777 == 0o600


def test_a_log_that_is_a_link_is_not_followed(session: str) -> None:
    target = os.path.join(session, "target")
    for name in ("agent-00.log", "agent-00.events.jsonl"):
        os.symlink(target, os.path.join(session, "logs", name))
    made = AgentLogs(session, "00")
    made.output(b"x")
    made.event("start", pid=1)
    assert not os.path.exists(target)


def test_a_full_disk_is_noted_once_there_is_room_again(session: str) -> None:
    run_limited(
        session, "limit(10); made.output(b'0123456789abc'); made.output(b'lost'); limit(-1); made.output(b'on')"
    )
    note = b"\r\n[7 bytes of output could not be recorded]\r\n"
    assert read(session, "agent-00.log") == b"0123456789" + note + b"on"


def test_events_are_whole_lines_even_on_a_full_disk(session: str) -> None:
    run_limited(
        session,
        "made.event('start', pid=1); limit(100); made.event('exit', status=0, left=['x' * 60])\n"
        "limit(-1); made.event('exit', status=2)\n",
    )
    lines = read(session, "agent-00.events.jsonl").decode().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["start", "exit", "exit"]
    assert json.loads(lines[-1])["status"] == 2


def test_what_could_not_be_noted_is_noted_before_anything_later(session: str) -> None:
    run_limited(
        session,
        "limit(0); made.event('typed', id='m-1'); made.event('entered', id='m-1')\n"
        "limit(-1); made.event('mark', id='behind them')\n",
    )
    lines = read(session, "agent-00.events.jsonl").decode().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["typed", "entered", "mark"]


def test_what_could_not_be_noted_is_noted_by_itself_once_there_is_room(session: str) -> None:
    run_limited(
        session,
        "import time\n"
        "limit(0); made.event('taken', id='m-1'); limit(-1)\n"
        "while made.due is not None:\n"
        "    time.sleep(0.01)\n"
        "    made.look(time.monotonic())\n",
    )
    assert json.loads(read(session, "agent-00.events.jsonl"))["event"] == "taken"


def test_a_full_disk_does_not_stop_the_agent(bare: Site) -> None:
    size = 200_000
    with pane(bare, *stand_in("flood"), str(size), before="ulimit -f 16") as one:
        assert one.wait() == 0
        assert len(one.output) > size
        assert one.event("exit")["status"] == 0
        assert 0 < len(one.log()) < size


def test_logs_that_cannot_be_written_at_all_do_not_stop_the_agent(bare: Site) -> None:
    with pane(bare, "sh", "-c", "echo here", before="rmdir logs") as one:
        assert one.wait() == 0
        assert b"here" in one.output
        assert one.events() == []
