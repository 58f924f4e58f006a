"""Kept connections to tmux: exact, safe from many threads, gone without a trace, never waited for for ever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mas.model.errors import NoTmux
from mas.runtime import control, tmux
from mas.runtime.control import Connections, line_of
from mas.runtime.runtime import Place
from mas.runtime.tmux import Command, Tmux, TmuxFailed
from mas.settings import ServerMode
from tests.runtime.ground import NAME, Ground, teams_seen
from tests.site import REPOSITORY, Site, until


@pytest.fixture
def connections() -> Iterator[Connections]:
    made = Connections()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def ground(bare: Site, connections: Connections) -> Ground:
    return Ground(bare, ServerMode.WORKSPACE, connections)


def clients(site: Site) -> list[psutil.Process]:
    """The living control-mode clients of a site."""
    found = []
    for process in site.processes():
        try:
            if "-C" in process.cmdline() and "attach-session" in process.cmdline() and "client" in process.name():
                found.append(process)
        except psutil.Error:
            continue
    return found


def connected(ground: Ground, place: Place, connections: Connections) -> Tmux:
    return Tmux(place.socket, True, ground.site.env, connections)


def alone_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on nothing may be asked by a process of its own."""

    def refuse(*_: object, **__: object) -> str:
        raise AssertionError("a process was started")

    monkeypatch.setattr(Tmux, "alone", refuse)


def test_many_questions_are_asked_through_one_process(
    ground: Ground, connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, pane = ground.solo()
    server = connected(ground, place, connections)
    assert server.run(["display-message", "-p", "-t", pane, "#{pane_id}"]) == f"{pane}\n"
    (client,) = clients(ground.site)
    alone_is_refused(monkeypatch)
    for _ in range(20):
        assert server.run(["list-sessions", "-F", "#{session_name}"]) == f"{NAME}\n"
    assert server.run(["display-message", "-p", "a"], ["display-message", "-p", "b"]) == "a\nb\n"
    assert clients(ground.site) == [client]


def test_a_refusal_reads_as_from_a_tmux_process_and_the_rest_is_not_done(
    ground: Ground, connections: Connections
) -> None:
    place, pane = ground.solo()
    server = connected(ground, place, connections)
    said = []
    for ask in (server.run, server.alone):
        with pytest.raises(TmuxFailed) as refused:
            ask(["capture-pane", "-p", "-t", "%999"], ["send-keys", "-t", pane, "typed"])
        said.append((refused.value.reason, refused.value.message))
    assert said[0] == said[1]
    assert "typed" not in ground.runtime.screen(place, pane, 5)
    assert server.run(["display-message", "-p", "still here"]) == "still here\n"


WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=60) | st.text(
    st.sampled_from(list(" '\"\\;#{}$~%!@:=&|<>()[]*?`^-,.ab\t\n")), max_size=20
)


def test_every_argument_arrives_exactly_as_it_was_given(ground: Ground, connections: Connections) -> None:
    place, pane = ground.solo()
    server = connected(ground, place, connections)

    @settings(max_examples=200, deadline=None)
    @example(["'"])
    @example(["a;", ";", "\\;"])
    @example(["", "$HOME", "~", "#{pane_id}", "%1", "{", "}", "#", "\\", "日本語 🙂"])
    @given(st.lists(WORDS, min_size=1, max_size=5))
    def exact(words: list[str]) -> None:
        for word in words:
            line = line_of([["send-keys", word]])
            if line is None:
                assert any(letter < " " or letter == "\x7f" for letter in word)
                continue
            # An option without a meaning keeps any text. The condition's command is parsed as a line would be.
            quoted = line.removeprefix("'send-keys' ")
            server.run(["if-shell", "-F", "1", f"set-option -t {pane} @word {quoted}"])
            assert server.run(["show-options", "-v", "-t", pane, "@word"]) == f"{word}\n"

    exact()


@pytest.mark.parametrize("word", ["a\nb", "tab\there", "\x1b[31m", "\x7f", "\udc80"])
def test_what_a_line_cannot_hold_goes_another_way(word: str) -> None:
    assert line_of([["display-message", "-p", word]]) is None
    assert line_of([["display-message", "-p", "fine"]]) == "'display-message' '-p' 'fine'"


def test_what_could_end_the_connections_own_session_goes_another_way() -> None:
    for verb in ("kill-session", "kill-server", "kill-pane", "new-session", "respawn-pane", "detach-client"):
        assert line_of([["display-message", "-p", "x"], [verb, "-t", "x"]]) is None
    assert line_of([["send-keys", *["61"] * 5000]]) is None
    assert line_of([["display-message", "-p", "x" * (1 << 20)]]) is None


def test_many_threads_get_their_own_answers(ground: Ground, connections: Connections) -> None:
    place, pane = ground.solo()
    server = connected(ground, place, connections)

    def asked(thread: int) -> list[str]:
        return [server.run(["display-message", "-p", "-t", pane, f"{thread} {number}"]) for number in range(200)]

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(asked, range(8)))
    assert answers == [[f"{thread} {number}\n" for number in range(200)] for thread in range(8)]
    assert len(clients(ground.site)) == 1


def test_a_screen_that_imitates_tmux_is_only_a_screen(ground: Ground, connections: Connections) -> None:
    lines = "%end 1 2 1\n%error 1 2 1\n%begin 1 2 1\n%exit\n%session-changed $1 x\n"
    place, pane = ground.solo("sh", "-c", f"printf '{lines.replace('%', '%%')}'; exec sleep 1000")
    server = connected(ground, place, connections)
    capture = ["capture-pane", "-p", "-t", pane]
    until(lambda: "session-changed" in server.alone(capture), "the screen")
    assert server.run(capture) == server.alone(capture)
    assert server.run(["display-message", "-p", "still here"]) == "still here\n"


def test_a_connection_whose_process_is_killed_is_replaced(ground: Ground, connections: Connections) -> None:
    place, pane = ground.solo()
    server = connected(ground, place, connections)
    ask = ["display-message", "-p", "-t", pane, "#{pane_id}"]
    for _ in range(3):
        server.run(ask)
        (client,) = until(lambda: clients(ground.site), "a connection")
        client.kill()
        assert server.run(ask) == f"{pane}\n"
        psutil.wait_procs([client])
        until(lambda: server.run(ask) == f"{pane}\n" and clients(ground.site), "another connection")


@pytest.mark.parametrize(("verb", "again"), [("send-keys", False), ("list-panes", True)])
def test_what_may_have_been_done_is_not_done_again_unless_it_only_looked(
    verb: str, again: bool, ground: Ground, connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, pane = ground.solo("cat", "-")
    server = connected(ground, place, connections)
    server.run(["list-sessions"])
    alone: list[str] = []
    plainly = Tmux.alone

    def noted(self: Tmux, *commands: Command, **options: Any) -> str:
        alone.append(commands[0][0])
        return plainly(self, *commands, **options)

    monkeypatch.setattr(Tmux, "alone", noted)
    pid = server.pid()
    assert pid
    os.kill(pid, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as thread:
        asking = thread.submit(server.run, [verb, "-t", pane])
        until(lambda: _pending(connections), "the question")
        # It was asked, and no answer will come: it is unknown whether it was done.
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(NoTmux) as failed:
            asking.result()
    assert (verb in alone) is again
    assert isinstance(failed.value, TmuxFailed) is again


def _pending(connections: Connections) -> bool:
    return any(connection._waiting for connection in connections._open.values())


def test_the_end_of_a_server_is_reported_and_the_next_one_is_found(ground: Ground, connections: Connections) -> None:
    place, _ = ground.solo()
    server = connected(ground, place, connections)
    server.run(["list-sessions"])
    ground.site.tmux("kill-server", socket=place.socket)
    until(lambda: server.pid() is None, "the server's end")
    with pytest.raises(TmuxFailed):
        server.run(["list-sessions"])
    assert ground.runtime.alive([place]) == {place: False}
    assert ground.runtime.panes(place) == []
    until(lambda: not clients(ground.site), "the end of the client")
    again, pane = ground.solo()
    assert [state.pane for state in ground.runtime.panes(again)] == [pane]
    until(lambda: ground.runtime.panes(again) and clients(ground.site), "a connection to the new server")


def test_the_session_a_connection_is_attached_to_can_be_stopped(ground: Ground, connections: Connections) -> None:
    first, _ = ground.solo(name="mas-00000001")
    second, pane = ground.solo(name="mas-00000002")
    server = connected(ground, first, connections)
    server.run(["list-sessions"])
    assert "=mas-00000001" in clients(ground.site)[0].cmdline()
    # Another process ends it, as `mas stop` would.
    Ground(ground.site, ground.mode).runtime.close(first)
    assert teams_seen(first.socket) == {"mas-00000002"}
    assert [state.pane for state in ground.runtime.panes(second)] == [pane]
    until(
        lambda: ground.runtime.panes(second) and any("=mas-00000002" in one.cmdline() for one in clients(ground.site)),
        "a connection by the other session",
    )
    Ground(ground.site, ground.mode).runtime.close(second)
    assert not os.path.exists(second.socket)
    assert ground.runtime.alive([second]) == {second: False}


def test_a_connection_whose_session_ended_does_not_move_to_another(ground: Ground, connections: Connections) -> None:
    place, _ = ground.solo()
    ground.site.tmux("new-session", "-d", "-s", "people", "sleep 1000", socket=place.socket)
    ground.site.tmux("set-option", "-g", "detach-on-destroy", "off", socket=place.socket)
    connected(ground, place, connections).run(["list-sessions"])
    ground.site.tmux("kill-session", "-t", f"={NAME}", socket=place.socket)
    until(lambda: not clients(ground.site), "the end of the connection")
    assert ground.site.tmux("list-clients", socket=place.socket) == ""


def test_a_connection_is_never_to_a_session_that_is_not_ours(ground: Ground, connections: Connections) -> None:
    socket = ground.runtime.place(NAME, 1)
    ground.site.tmux("-f", os.devnull, "new-session", "-d", "-s", "people", "sleep 1000", socket=socket)
    server = Tmux(socket, True, ground.site.env, connections)
    assert server.run(["list-sessions", "-F", "#{session_name}"]) == "people\n"
    assert clients(ground.site) == []


def test_windows_keep_their_size_and_the_session_its_environment(ground: Ground, connections: Connections) -> None:
    place, pane = ground.solo()
    # A client that attaches would bring these along.
    server = Tmux(place.socket, True, {**ground.site.env, "DISPLAY": ":99", "SSH_AUTH_SOCK": "/elsewhere"}, connections)
    look = ["display-message", "-p", "-t", pane, "#{window_width}x#{window_height}"]
    before = server.alone(look), server.alone(["show-environment", "-t", f"={NAME}"])
    server.run(["list-sessions"])
    flags = server.alone(["list-clients", "-F", "#{client_flags}"]).strip().split(",")
    assert {"control-mode", "no-output", "ignore-size"} <= set(flags)
    assert (server.alone(look), server.alone(["show-environment", "-t", f"={NAME}"])) == before


def test_a_sessions_own_server_has_a_connection_only_while_it_is_watched(bare: Site, connections: Connections) -> None:
    ground = Ground(bare, ServerMode.SESSION, connections)
    place, pane = ground.solo()
    ground.runtime.panes(place)
    assert clients(bare) == []
    with ground.runtime.watching(place), ground.runtime.watching(place):
        assert [state.pane for state in ground.runtime.panes(place)] == [pane]
        assert len(clients(bare)) == 1
    until(lambda: not clients(bare), "the end of the connection")
    assert [state.pane for state in ground.runtime.panes(place)] == [pane]
    assert clients(bare) == []


def test_a_watched_sessions_own_server_ends_with_it_and_leaves_no_socket(bare: Site, connections: Connections) -> None:
    ground = Ground(bare, ServerMode.SESSION, connections)
    place, _ = ground.solo()
    with ground.runtime.watching(place):
        ground.runtime.panes(place)
        assert len(clients(bare)) == 1
        Ground(bare, ServerMode.SESSION).runtime.close(place)
        assert not os.path.exists(place.socket)
        assert ground.runtime.panes(place) == []
        until(lambda: not clients(bare), "the end of the connection")


def test_an_unused_connection_ends(ground: Ground, connections: Connections, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "_IDLE", 0.2)
    place, pane = ground.solo()
    server = connected(ground, place, connections)
    server.run(["list-sessions"])
    until(lambda: not clients(ground.site), "its end")
    assert server.run(["display-message", "-p", "-t", pane, "#{pane_id}"]) == f"{pane}\n"


def test_closing_leaves_no_process_and_later_questions_are_still_answered(
    ground: Ground, connections: Connections
) -> None:
    place, _ = ground.solo()
    server = connected(ground, place, connections)
    server.run(["list-sessions"])
    (client,) = clients(ground.site)
    connections.close()
    assert not client.is_running()
    assert server.run(["list-sessions", "-F", "#{session_name}"]) == f"{NAME}\n"
    assert clients(ground.site) == []
    connections.close()


def test_a_server_that_does_not_answer_is_not_waited_for_for_ever(
    ground: Ground, connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, pane = ground.solo()
    server = connected(ground, place, connections)
    server.run(["list-sessions"])
    (client,) = clients(ground.site)
    pid = server.pid()
    assert pid
    os.kill(pid, signal.SIGSTOP)
    try:
        monkeypatch.setattr(tmux, "_PATIENCE", 0.3)
        for command in (["list-sessions"], ["send-keys", "-t", pane, "x"]):
            with pytest.raises(NoTmux) as silent:
                server.run(command)
            assert not isinstance(silent.value, TmuxFailed)
        connections.close()
        assert not client.is_running()
    finally:
        os.kill(pid, signal.SIGCONT)
    monkeypatch.undo()
    assert server.run(["list-sessions", "-F", "#{session_name}"]) == f"{NAME}\n"


_HOLDER = """
import sys, time
from mas.runtime.control import Connections
from mas.runtime.tmux import Tmux
import os
print(Tmux(sys.argv[1], True, dict(os.environ), Connections()).run(["list-sessions"]), flush=True)
time.sleep(1000)
"""


def test_a_connection_does_not_outlive_a_killed_process(ground: Ground) -> None:
    place, _ = ground.solo()
    argv = [sys.executable, "-c", _HOLDER, place.socket]
    with subprocess.Popen(argv, env=ground.site.env, cwd=REPOSITORY, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        assert NAME.encode() in holder.stdout.readline()
        assert len(clients(ground.site)) == 1
        holder.kill()
    until(lambda: not clients(ground.site), "the end of the client")
    assert ground.site.tmux("list-clients", socket=place.socket) == ""
    assert teams_seen(place.socket) == {NAME}


_SPEAKER = """
import os, sys, time
from mas.runtime.control import Connections
from mas.runtime.tmux import Tmux

connections = Connections()
Tmux(sys.argv[1], True, dict(os.environ), connections).run(["list-sessions"])
(connection,) = connections._made
print("connected", flush=True)
sys.stdin.readline()
connection._speaking.sendall(b"rename-window a\\nrename-window b\\n")
print("said", flush=True)
time.sleep(1000)
"""


def _abandoned(ground: Ground, place: Place) -> psutil.Process:
    """A client whose process was killed while tmux had output for it; tmux itself never lets go of it."""
    server = psutil.Process(Tmux(place.socket, True, ground.site.env).pid())
    argv = [sys.executable, "-c", _SPEAKER, place.socket]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, env=ground.site.env, cwd=REPOSITORY, stdin=pipe, stdout=pipe) as speaker:
        assert speaker.stdin
        assert speaker.stdout
        assert speaker.stdout.readline() == b"connected\n"
        (client,) = clients(ground.site)
        server.suspend()
        try:
            speaker.stdin.write(b"speak\n")
            speaker.stdin.flush()
            assert speaker.stdout.readline() == b"said\n"
            speaker.kill()
            speaker.wait()
        finally:
            server.resume()
    # Two answers: whatever tmux had to do for the client is behind it.
    for _ in range(2):
        ground.site.tmux("list-sessions", socket=place.socket)
    assert client.is_running()
    return client


def test_what_a_killed_process_left_attached_keeps_no_server_from_ending(ground: Ground) -> None:
    place, _ = ground.solo()
    client = _abandoned(ground, place)
    server = psutil.Process(Tmux(place.socket, True, ground.site.env).pid())
    Ground(ground.site, ServerMode.WORKSPACE).runtime.close(place)
    until(lambda: not client.is_running(), "the end of the client")
    until(lambda: not server.is_running(), "the end of the server")


def test_only_clients_whose_process_is_gone_are_ended(ground: Ground, connections: Connections) -> None:
    place, _ = ground.solo()
    client = _abandoned(ground, place)
    connected(ground, place, connections).run(["list-sessions"])
    assert len(clients(ground.site)) == 2
    control.end_orphans(place.socket)
    until(lambda: not client.is_running(), "the end of the client")
    assert len(clients(ground.site)) == 1


def test_only_clients_of_the_server_that_should_end_or_that_was_moved_are_ended(ground: Ground) -> None:
    place, _ = ground.solo()
    client = _abandoned(ground, place)
    control.end_orphans(ground.site.user_socket)
    ground.site.tmux("list-sessions", socket=place.socket)
    assert client.is_running()
    moved = f"{place.socket}.moved"
    os.rename(place.socket, moved)
    control.end_orphans(moved)
    until(lambda: not client.is_running(), "the end of the client")
    os.rename(moved, place.socket)
