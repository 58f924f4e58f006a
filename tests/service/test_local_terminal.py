"""Terminals as the product gives them: screens that fit the stream, and looks that are shared."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import partial
from typing import Any
from uuid import uuid4

import pytest

from mas.model.errors import AgentExited, NoAgent, NoSession
from mas.model.ids import SessionId
from mas.runtime.control import Connections
from mas.service.agents import local_terminal
from mas.service.agents.terminal import Terminal
from mas.service.local import LocalMas
from mas.settings import ServerMode
from tests.http.terminals import agent, log_of
from tests.site import Site, until


@pytest.fixture
def mas(site: Site) -> Iterator[LocalMas]:
    connections = Connections()
    try:
        yield LocalMas(site.world(ServerMode.DEFAULT, connections))
    finally:
        connections.close()


def start(site: Site, command: str, **options: Any) -> SessionId:
    return SessionId(site.start("--team", "solo", "--command", command, **options))


@pytest.fixture
def session_id(site: Site) -> SessionId:
    made = start(site, agent("pane_echo", "100000"))
    until(lambda: b"<ready>" in log_of(site, made), "the agent")
    return made


@pytest.fixture
def terminal(mas: LocalMas, session_id: SessionId) -> Iterator[Terminal]:
    made = mas.terminal(session_id, "00")
    yield made
    made.close()


def stream(terminal: Terminal, position: int) -> bytes:
    """All that is there after a position."""
    found = b""
    while (piece := terminal.read(position, 100)).data:
        found, position = found + piece.data, piece.position
    assert piece.lag == 0
    return found


def test_the_screen_of_a_quiet_agent_is_exact_and_the_stream_goes_on_after_it(
    site: Site, session_id: SessionId, terminal: Terminal
) -> None:
    until(lambda: terminal.snapshot().exact, "a quiet moment")
    screen = terminal.snapshot()
    assert b"<ready>" in screen.data
    assert (screen.columns, screen.rows) == (101, 30)
    assert stream(terminal, screen.position) == b""
    terminal.type(b"typed")
    until(lambda: b"typed" in log_of(site, session_id), "the echo")
    assert stream(terminal, screen.position) == b"typed"
    assert log_of(site, session_id)[: screen.position].endswith(b"<ready>")


def test_of_an_agent_that_never_stops_printing_no_byte_is_missed(site: Site, mas: LocalMas) -> None:
    session_id = start(site, "seq 1 1000000000")
    terminal = mas.terminal(session_id, "00")
    until(lambda: len(log_of(site, session_id)) > 1 << 20, "many numbers")
    inexact = 0

    def three_taken_while_it_prints() -> bool:
        nonlocal inexact
        screen = terminal.snapshot()
        # What is written down is far ahead of what is drawn; the stream must not begin after the screen's end.
        drawn = max(int(line) for line in screen.data.split(b"\x1b[0m")[0].split(b"\r\n")[1:-2])
        before = int(terminal.read(screen.position - 40, 40).data.split(b"\r\n")[-2])
        assert before <= drawn
        # A busy machine may halt the agent for longer than a quiet moment takes.
        inexact += not screen.exact
        return inexact == 3

    until(three_taken_while_it_prints, "three screens of an agent that prints")
    terminal.close()


def _is_ready(site: Site, session_id: str) -> bool:
    return b"ready" in log_of(site, session_id)


def test_brackets_for_pastes_are_found_though_tmux_does_not_report_them(site: Site, mas: LocalMas) -> None:
    for mode, wanted in (("h", True), ("l", False)):
        asks = f"printf '\\033[?2004h\\033[?2004{mode}ready'; sleep 1000"
        session_id = start(site, shlex.join(["sh", "-c", asks]))
        until(partial(_is_ready, site, session_id), "the agent")
        terminal = mas.terminal(session_id, "00")
        assert (b"\x1b[?2004h" in terminal.snapshot().data) is wanted
        terminal.close()


def test_a_stopped_session_shows_the_end_of_what_was_written_down(
    site: Site, session_id: SessionId, terminal: Terminal
) -> None:
    before = terminal.look()
    assert before.run
    assert not before.ended
    site.mas("stop", session_id)
    look = terminal.look(fresh=True)
    assert (look.run, look.ended, look.exit_status) == ("", True, None)
    screen = terminal.snapshot()
    assert b"<ready>" in screen.data
    assert stream(terminal, screen.position) == b""
    with pytest.raises(AgentExited):
        terminal.type(b"x")
    with pytest.raises(AgentExited):
        terminal.resize(100, 30)
    site.mas("restore", session_id)
    until(lambda: terminal.look(fresh=True).run, "the new run")
    assert terminal.look().run != before.run


def test_a_dead_agent_is_reported_with_its_status(site: Site, mas: LocalMas) -> None:
    session_id = start(site, "sh -c 'echo bye; exit 3'")
    terminal = mas.terminal(session_id, "00")
    until(lambda: terminal.look(fresh=True).exit_status == 3, "its end")
    assert terminal.look().ended
    assert b"bye" in terminal.snapshot().data
    with pytest.raises(AgentExited):
        terminal.type(b"x")
    terminal.close()


def test_terminals_of_one_session_share_their_looks(site: Site, mas: LocalMas, monkeypatch: pytest.MonkeyPatch) -> None:
    session_id = SessionId(site.start("--command", "cat"))
    agents = [one.id for one in mas.show(session_id).agents]
    terminals = [mas.terminal(session_id, one) for one in agents]
    runtime = mas._world.runtime
    looks: list[Any] = []
    sizes = runtime.sizes

    def counted(place: Any) -> Any:
        looks.append(place)
        return sizes(place)

    monkeypatch.setattr(runtime, "sizes", counted)
    # However slow the machine is, the first look is fresh for all of them.
    monkeypatch.setattr(local_terminal, "_FRESH", 60.0)
    assert len({one.look().run for one in terminals}) == 13
    assert len(looks) == 1
    for one in terminals:
        one.close()
        one.close()


def test_an_unknown_session_or_agent_has_no_terminal(mas: LocalMas, session_id: SessionId) -> None:
    with pytest.raises(NoSession):
        mas.terminal(SessionId(str(uuid4())), "00")
    with pytest.raises(NoAgent):
        mas.terminal(session_id, "99")
