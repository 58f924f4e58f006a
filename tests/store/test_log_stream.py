"""An agent's log as one stream: it grows, starts again, does not exist yet, and is never what an agent made of it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mas.pane import logs
from mas.pane.logs import AgentLogs
from mas.store.agent.log_stream import Recording


@pytest.fixture
def session(tmp_path: Path) -> str:
    path = tmp_path / "session"
    (path / "logs").mkdir(parents=True)
    return str(path)


@pytest.fixture
def recording(session: str) -> Iterator[Recording]:
    made = Recording(log(session))
    yield made
    made.close()


def log(session: str) -> str:
    return os.path.join(session, "logs", "agent-00.log")


def write(session: str, data: bytes) -> None:
    with open(log(session), "ab") as file:
        file.write(data)


def rotate(session: str) -> None:
    os.replace(log(session), f"{log(session)}.1")


def rest(recording: Recording, position: int, most: int = 1 << 20) -> tuple[bytes, int]:
    """Everything from a position on."""
    found = b""
    while True:
        data, position = recording.read(position, most)
        if not data:
            return found, position
        found += data


def test_a_log_that_does_not_exist_yet_is_empty_until_it_does(session: str, recording: Recording) -> None:
    assert (recording.end(), recording.read(0, 10)) == (0, (b"", 0))
    write(session, b"hello")
    assert recording.read(0, 3) == (b"hel", 3)
    assert recording.read(3, 10) == (b"lo", 5)
    assert recording.read(5, 10) == (b"", 5)
    assert recording.end() == 5


def test_what_was_written_before_the_log_started_again_is_read_first(session: str, recording: Recording) -> None:
    write(session, b"one ")
    assert recording.read(0, 2) == (b"on", 2)
    write(session, b"two ")
    rotate(session)
    assert rest(recording, 2) == (b"e two ", 8)
    write(session, b"three ")
    assert recording.end() == 14
    assert rest(recording, 2) == (b"e two three ", 14)
    rotate(session)
    write(session, b"four")
    assert rest(recording, 14) == (b"four", 18)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=40) | st.sampled_from(["rotate", "read"]), max_size=40), st.integers(1, 50))
def test_whatever_is_written_between_reads_comes_in_its_order_and_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[bytes | str], most: int
) -> None:
    session = str(tmp_path_factory.mktemp("s"))
    os.mkdir(os.path.join(session, "logs"))
    recording = Recording(log(session))
    written, read, position = b"", b"", 0
    for step in steps:
        if isinstance(step, bytes):
            write(session, step)
            written += step
        elif step == "rotate" and os.path.exists(log(session)):
            # A reader keeps up with the files, if not with the bytes.
            recording.end()
            rotate(session)
        data, position = recording.read(position, most)
        read += data
    read += rest(recording, position)[0]
    assert read == written
    recording.close()


def test_the_launchers_own_change_of_files_loses_nothing(
    session: str, recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "_LARGEST_LOG", 1000)
    os.makedirs(os.path.join(os.path.dirname(session), ".mas", "events"), exist_ok=True)
    launcher = AgentLogs(session, "00")
    written, read, position = b"", b"", 0
    for number in range(500):
        data = b"%06d " % number * 10
        launcher.output(data)
        written += data
        data, position = recording.read(position, 50)
        more, position = rest(recording, position) if number % 10 == 0 else (b"", position)
        read += data + more
    read += rest(recording, position)[0]
    assert read == written
    assert os.path.exists(f"{log(session)}.1")


def test_a_reader_too_far_behind_is_marked_so_and_goes_on_with_what_exists(session: str, recording: Recording) -> None:
    write(session, b"first")
    assert recording.end() == 5
    for word in (b"second", b"third"):
        rotate(session)
        write(session, word)
    assert recording.end() - 5 > 1 << 20
    assert rest(recording, 0)[0] == b"firstthird"


def test_a_log_that_was_cut_short_goes_on_at_its_end(session: str, recording: Recording) -> None:
    write(session, b"0123456789")
    assert rest(recording, 0) == (b"0123456789", 10)
    os.truncate(log(session), 4)
    assert recording.read(10, 10) == (b"", 4)
    write(session, b"ab")
    assert recording.read(4, 10) == (b"ab", 6)


def test_a_link_or_a_pipe_in_place_of_the_log_is_not_read(session: str, recording: Recording) -> None:
    secret = os.path.join(session, "secret")
    with open(secret, "w", encoding="utf-8") as file:
        file.write("secret")
    os.symlink(secret, log(session))
    assert (recording.end(), recording.read(0, 100)) == (0, (b"", 0))
    os.unlink(log(session))
    os.mkfifo(log(session))
    assert (recording.end(), recording.read(0, 100)) == (0, (b"", 0))
    os.unlink(log(session))
    write(session, b"log")
    assert recording.read(0, 100) == (b"log", 3)


def test_the_last_of_several_patterns_is_found_however_far_back(session: str, recording: Recording) -> None:
    words = (b"<on>", b"<off>")
    write(session, b"<on>" + b"x" * (1 << 20) + b"<off>" + b"y" * ((1 << 20) - 2) + b"<on>" + b"z" * 10)
    end = recording.end()
    assert recording.last_of(words, end, 8 << 20) == b"<on>"
    assert recording.last_of(words, end - 12, 8 << 20) == b"<off>"
    assert recording.last_of(words, (1 << 20), 8 << 20) == b"<on>"
    assert recording.last_of(words, end - 20, 1000) is None
    assert recording.last_of((b"<none>",), end, 8 << 20) is None


def test_a_closed_recording_holds_no_files(session: str) -> None:
    recording = Recording(log(session))
    write(session, b"one")
    recording.end()
    rotate(session)
    write(session, b"two")
    recording.end()
    before = len(os.listdir("/proc/self/fd"))
    recording.close()
    recording.close()
    assert len(os.listdir("/proc/self/fd")) == before - 2
    assert (recording.end(), recording.read(0, 10)) == (0, (b"", 0))
    assert len(os.listdir("/proc/self/fd")) == before - 2


def test_a_log_is_ahead_until_the_launcher_has_drawn_what_it_wrote(session: str, recording: Recording) -> None:
    assert not recording.is_ahead()
    # In another process: what one holds itself does not count.
    with launcher(session) as (written, go_on):
        written.recv()
        assert recording.is_ahead()
        go_on.send("draw")
        written.recv()
        assert not recording.is_ahead()
        go_on.send("write past the largest size")
        written.recv()
        assert recording.is_ahead()


def test_an_agent_that_locks_its_log_does_not_stop_it(session: str, recording: Recording) -> None:
    write(session, b"")
    with open(log(session), "r+b") as held:
        fcntl.lockf(held, fcntl.LOCK_EX)
        with launcher(session) as (written, _):
            written.recv()
            assert recording.read(0, 10) == (b"hello", 5)


@contextmanager
def launcher(session: str) -> Iterator[tuple[Connection, Connection]]:
    """A process that writes, draws, and begins another file, each on request."""
    written, tell = Pipe(duplex=False)
    hear, go_on = Pipe(duplex=False)
    process = get_context("fork").Process(target=_launch, args=(session, tell, hear))
    process.start()
    try:
        yield written, go_on
    finally:
        process.kill()
        process.join()


def _launch(session: str, tell: Connection, hear: Connection) -> None:
    kept = AgentLogs(session, "00")
    kept.output(b"hello")
    tell.send("written")
    hear.recv()
    kept.drawn()
    tell.send("drawn")
    hear.recv()
    logs._LARGEST_LOG = 4
    kept.output(b"hello again")
    tell.send("written")
    hear.recv()
