"""What every caller may rely on of a runtime, whichever server it puts its teams on."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

import psutil
import pytest

from mas.model.errors import AgentExited, AlreadyThere, NoTmux
from mas.runtime import teams, tmux
from mas.runtime.control import Connections
from mas.runtime.runtime import Place
from mas.runtime.tmux import Command, PreparedClient, Tmux
from mas.settings import ServerMode
from tests.runtime.ground import DEFAULT_TEAM, NAME, SLEEPER, Ground, seen, started_by, teams_seen
from tests.site import AGENTS, Site, until
from tests.store.samples import next_line, program

PAIR = {"meta": "00", "design": "10 11"}


@pytest.fixture(params=[*ServerMode, "connected"])
def ground(bare: Site, request: pytest.FixtureRequest) -> Iterator[Ground]:
    """Every kind of server, and a shared one spoken to through a kept connection."""
    if request.param != "connected":
        yield Ground(bare, request.param)
        return
    connections = Connections()
    try:
        yield Ground(bare, ServerMode.WORKSPACE, connections)
    finally:
        connections.close()


def test_a_team_opens_with_one_pane_per_agent_in_the_windows_of_its_plan(ground: Ground) -> None:
    place, panes = ground.open(ground.plan(DEFAULT_TEAM))
    wanted = [(unit, panes[agent]) for unit, agents in DEFAULT_TEAM.items() for agent in agents.split()]
    assert [(pane.window, pane.pane) for pane in seen(place)] == wanted
    assert [(state.agent, state.pane) for state in ground.runtime.panes(place)] == list(panes.items())
    assert all(pane.width >= 100 and pane.height >= 30 for pane in seen(place))


def test_every_pane_runs_the_program_it_was_given_and_starts_in_the_directory_of_the_plan(ground: Ground) -> None:
    place, _ = ground.open(ground.plan(PAIR))
    states = ground.runtime.panes(place)
    until(lambda: [psutil.Process(state.pid).cmdline() for state in states] == [list(SLEEPER)] * 3, "three sleepers")
    assert {psutil.Process(state.pid).cwd() for state in states} == {ground.site.directory}
    assert not any(state.dead for state in states)


def test_a_name_that_is_taken_is_refused_and_its_owner_stays_untouched(ground: Ground) -> None:
    place, panes = ground.open(ground.plan(PAIR))
    with pytest.raises(AlreadyThere):
        ground.runtime.open(place.socket, ground.plan({"other": "20"}))
    assert [pane.pane for pane in seen(place)] == list(panes.values())


def test_a_team_that_cannot_be_opened_whole_leaves_nothing(ground: Ground) -> None:
    other, _ = ground.solo(name="mas-00000000")
    team = ground.plan({"meta": "00", "not.a-target": "10"})
    socket = ground.runtime.place(team.name, team.size)
    with pytest.raises(NoTmux):
        ground.runtime.open(socket, team)
    assert ground.runtime.alive([Place(socket, NAME)]) == {Place(socket, NAME): False}
    assert NAME not in teams_seen(socket)
    assert ground.runtime.alive([other]) == {other: True}
    until(lambda: started_by(ground.site, "sleep") == ["sleep"], "only the other team")


def test_closing_ends_the_programs_and_closing_twice_is_fine(ground: Ground) -> None:
    place, _ = ground.open(ground.plan(PAIR))
    pids = [state.pid for state in ground.runtime.panes(place)]
    ground.runtime.close(place)
    assert ground.runtime.alive([place]) == {place: False}
    assert ground.runtime.panes(place) == []
    until(lambda: not started_by(ground.site, "sleep"), f"the end of {pids}")
    ground.runtime.close(place)


def test_a_pane_that_a_person_opens_while_a_team_is_closed_stays(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, panes = ground.open(ground.plan(PAIR))
    own: list[str] = []

    def look_and_split(server: Tmux, listing: Command) -> str:
        listed = server.run(listing)
        if not own:
            split = ("split-window", "-t", panes["11"], "-P", "-F", "#{pane_id}", *SLEEPER)
            own.append(ground.site.tmux(*split, socket=place.socket))
        return listed

    with monkeypatch.context() as patched:
        patched.setattr(teams, "look", look_and_split)
        ground.runtime.close(place)
    assert ground.site.tmux("list-panes", "-a", "-F", "#{pane_id}", socket=place.socket).split() == own
    # The name is free again.
    assert ground.open(ground.plan(PAIR))[0] == place


def test_a_team_that_is_still_there_is_never_reported_as_closed(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, _ = ground.open(ground.plan(PAIR))
    with monkeypatch.context() as patched:
        patched.setattr(teams, "look", lambda *_: "")
        with pytest.raises(NoTmux):
            ground.runtime.close(place)
    assert ground.runtime.alive([place]) == {place: True}
    ground.runtime.close(place)
    assert ground.runtime.alive([place]) == {place: False}


def test_a_closed_team_is_not_alive_though_a_person_has_a_pane_on_its_server(ground: Ground) -> None:
    place, panes = ground.open(ground.plan(PAIR))
    split = ("split-window", "-t", panes["11"], "-P", "-F", "#{pane_id}", *SLEEPER)
    own = ground.site.tmux(*split, socket=place.socket)
    ground.runtime.close(place)
    assert ground.runtime.alive([place]) == {place: False}
    assert ground.open(ground.plan(PAIR))[0] == place
    assert ground.runtime.alive([place]) == {place: True}
    ground.site.tmux("kill-pane", "-t", own, socket=place.socket)
    assert ground.runtime.alive([place]) == {place: True}
    ground.runtime.close(place)
    assert ground.runtime.alive([place]) == {place: False}
    assert os.listdir(ground.world.layout.sockets) == []


def test_a_team_with_more_agents_than_fit_into_one_message_is_closed(bare: Site) -> None:
    ground = Ground(bare, ServerMode.SESSION)
    units = {unit: " ".join(f"{unit}{number:02d}" for number in range(50)) for unit in ("a", "b", "c")}
    place, panes = ground.open(ground.plan(units))
    assert len(panes) == 150
    ground.runtime.close(place)
    assert ground.runtime.alive([place]) == {place: False}
    until(lambda: not started_by(bare, "sleep"), "the end of them all")


def test_no_message_is_longer_than_the_newest_tmux_reads(bare: Site) -> None:
    ground = Ground(bare, ServerMode.SESSION)
    large = ground.plan({"meta": "00", "large": " ".join(f"{number:02}" for number in range(1, 100))})
    for plan in (ground.plan(DEFAULT_TEAM), large):
        for message in teams._batches(teams._opening(plan)):
            assert sum(len(command) + 1 for command in message) <= 1000
            assert sum(len(os.fsencode(word)) + 1 for command in message for word in (*command, ";")) < 16 << 10


@pytest.mark.parametrize("done", range(2, 8))
def test_a_team_whose_opening_was_cut_off_anywhere_is_closed(bare: Site, done: int) -> None:
    ground = Ground(bare, ServerMode.DEFAULT)
    other, _ = ground.solo(name="mas-00000000")
    team = ground.plan(PAIR)
    place = Place(other.socket, team.name, team.home)
    Tmux(place.socket, False, bare.env).alone(*islice(teams._opening(team), done))
    assert teams_seen(place.socket) == {other.name, NAME}
    ground.runtime.close(place)
    assert teams_seen(place.socket) == {other.name}


def test_many_teams_are_read_by_one_look_at_each_server(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    teams = [ground.open(ground.plan(PAIR, name=f"mas-0000000{number}")) for number in range(3)]
    places = [place for place, _ in teams]
    # A stranger's session, named and marked to be taken for one of ours.
    ground.site.tmux("new-session", "-d", "-s", "mas-00000001 x", *SLEEPER, socket=places[1].socket)
    ground.site.tmux("set-option", "-p", "-t", "=mas-00000001 x:", "@mas_agent", "99 99 1", socket=places[1].socket)
    calls: list[tuple[str, str]] = []
    run = Tmux.run

    def counted(self: Tmux, *commands: Command, **options: Any) -> str:
        calls.append((self.socket, commands[0][0]))
        return run(self, *commands, **options)

    monkeypatch.setattr(Tmux, "run", counted)
    gone = Place(places[0].socket, "mas-0000000f")
    found = ground.runtime.panes_of([*places, gone])
    assert sorted(calls) == sorted({(place.socket, "list-panes") for place in places})
    assert found.pop(gone) == []
    assert {place: {pane.agent: pane.pane for pane in panes or ()} for place, panes in found.items()} == dict(teams)


def test_a_server_that_cannot_be_looked_at_hides_only_its_own_teams(ground: Ground) -> None:
    place, panes = ground.open(ground.plan(PAIR))
    # A socket's address has its limit: beyond it no process can know whether a server is there.
    unreachable = Place(f"/tmp/{'x' * 200}", NAME)
    found = ground.runtime.panes_of([unreachable, place])
    assert found[unreachable] is None
    assert [pane.pane for pane in found[place] or ()] == list(panes.values())


def test_a_look_that_is_broken_off_leaves_no_client_though_its_server_hangs(bare: Site) -> None:
    ground = Ground(bare, ServerMode.DEFAULT)
    places = [ground.solo(name=f"mas-0000000{number}")[0] for number in range(2)]
    server = Tmux(places[0].socket, False, bare.env).pid() or 0

    def asks() -> bool:
        return any("list-sessions" in words for words in bare.commands())

    os.kill(server, signal.SIGSTOP)
    try:
        with ground.runtime.looking(places):
            until(asks, "a client that asks")
        assert not asks()
    finally:
        os.kill(server, signal.SIGCONT)
    with ground.runtime.looking(places) as found:
        assert found() == dict.fromkeys(places, True)


def test_a_team_on_its_own_server_is_alive_only_where_its_socket_leads_there(bare: Site) -> None:
    ground = Ground(bare, ServerMode.SESSION)
    place, _ = ground.solo()
    aside = f"{place.socket}.aside"
    os.rename(place.socket, aside)
    assert ground.runtime.alive([place]) == {place: False}
    os.symlink("nowhere", place.socket)
    assert ground.runtime.alive([place]) == {place: False}
    os.unlink(place.socket)
    os.symlink(aside, place.socket)
    assert ground.runtime.alive([place]) == {place: True}
    os.replace(aside, place.socket)
    assert ground.runtime.alive([place]) == {place: True}


def test_closing_one_team_leaves_the_others(ground: Ground) -> None:
    first, _ = ground.solo(name="mas-00000001")
    second, _ = ground.solo(name="mas-00000002")
    ground.runtime.close(first)
    assert ground.runtime.alive([first, second]) == {first: False, second: True}
    assert len(seen(second)) == 1


def test_a_team_can_be_opened_the_moment_another_was_closed(ground: Ground) -> None:
    for number in range(12):
        place, _ = ground.solo(name=f"mas-{number:08x}")
        assert ground.runtime.alive([place]) == {place: True}
        ground.runtime.close(place)
        assert ground.runtime.alive([place]) == {place: False}


def test_a_server_of_ours_that_ended_leaves_no_socket(ground: Ground) -> None:
    place, _ = ground.solo()
    ground.runtime.close(place)
    assert [path for path in ground.site.sockets() if path.endswith(".sock")] == []


def test_what_was_never_there_is_not_alive(ground: Ground) -> None:
    nowhere = Place(os.path.join(ground.site.directory, "no", "such.sock"), NAME)
    assert ground.runtime.alive([nowhere]) == {nowhere: False}
    assert ground.runtime.panes(nowhere) == []
    ground.runtime.close(nowhere)
    place, _ = ground.solo()
    stranger = Place(place.socket, "mas-ffffffff")
    assert ground.runtime.alive([place, stranger]) == {place: True, stranger: False}
    assert ground.runtime.panes(stranger) == []


def test_what_could_not_be_looked_at_is_unknown_and_never_gone(ground: Ground) -> None:
    unreachable = Place("/" + "x" * 200, NAME)
    assert ground.runtime.alive([unreachable]) == {unreachable: None}
    with pytest.raises(NoTmux):
        ground.runtime.panes(unreachable)


def test_a_server_that_does_not_answer_is_never_taken_for_gone(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    place, _ = ground.solo()
    server = int(ground.site.tmux("display-message", "-p", "#{pid}", socket=place.socket))
    os.kill(server, signal.SIGSTOP)
    try:
        monkeypatch.setattr(tmux, "_PATIENCE", 0.3)
        assert ground.runtime.alive([place])[place] is not False
        with pytest.raises(NoTmux):
            ground.runtime.panes(place)
    finally:
        os.kill(server, signal.SIGCONT)
    monkeypatch.undo()
    assert ground.runtime.alive([place]) == {place: True}


def test_a_program_that_ended_leaves_a_dead_pane_with_its_status(ground: Ground) -> None:
    place, pane = ground.solo("sh", "-c", "exit 7")
    until(lambda: ground.runtime.panes(place)[0].exit_status is not None, "the end of the program")
    (state,) = ground.runtime.panes(place)
    assert (state.pane, state.agent, state.dead, state.exit_status) == (pane, "00", True, 7)
    assert ground.runtime.alive([place]) == {place: True}


def test_what_is_typed_to_a_dead_pane_is_refused_and_never_executed(ground: Ground) -> None:
    marker = os.path.join(ground.site.directory, "executed")
    place, pane = ground.solo("sh", "-c", "exit 0")
    until(lambda: ground.runtime.panes(place)[0].dead, "the end of the program")
    for enter in (True, False):
        with pytest.raises(AgentExited):
            ground.runtime.paste(place, pane, f"touch {marker}", enter)
    with pytest.raises(AgentExited):
        ground.runtime.enter(place, pane)
    (state,) = ground.runtime.panes(place)
    assert state.dead
    assert started_by(ground.site, "sh") == []
    assert not os.path.exists(marker)
    assert ground.site.tmux("list-buffers", socket=place.socket) == ""


TEXTS = {
    "one line": "hello",
    "many lines": "first\n\tsecond  \n\nlast\n",
    "other scripts": "日本語 한국어 العربية — “quotes” 🙂 é",
    "what shells and tmux would expand": "$(id) `id` #{pane_id} %7 ; \\; ~ ! -- Enter C-c 'x' \"y\"",
    "one mebibyte": "".join(f"{number:07d} ü\n" for number in range(104858))[: 1 << 20],
}


@pytest.mark.parametrize("text", list(TEXTS.values()), ids=list(TEXTS))
@pytest.mark.parametrize("bracketed", [True, False], ids=["bracketed", "plain"])
def test_a_paste_arrives_byte_for_byte_with_enter_after_it(bare: Site, text: str, bracketed: bool) -> None:
    ground = Ground(bare, ServerMode.SESSION)
    file = os.path.join(bare.directory, "typed")
    mode = ["bracketed"] if bracketed else []
    place, pane = ground.solo(sys.executable, os.path.join(AGENTS, "pane_catcher.py"), file, *mode)
    until(lambda: "ready" in ground.runtime.screen(place, pane, 5), "the program")
    ground.runtime.paste(place, pane, text, enter=True)
    wanted = text.encode()
    wanted = b"\x1b[200~" + wanted + b"\x1b[201~\r" if bracketed else wanted + b"\r"
    until(lambda: os.path.getsize(file) >= len(wanted), "all of the text")
    with open(file, "rb") as typed:
        assert typed.read() == wanted
    assert bare.tmux("list-buffers", socket=place.socket) == ""


_BEGINS_AND_WAITS = """
import sys
from mas.runtime.runtime import Place
from tests.site import Site
prepared = Site(sys.argv[1]).world().runtime.prepare_paste(Place(*sys.argv[2:4]), sys.argv[4], enter=True)
print("begun", flush=True)
sys.stdin.read()
"""


def test_a_prepared_paste_types_its_text_once_it_has_it_and_nothing_without(bare: Site) -> None:
    ground = Ground(bare, ServerMode.SESSION)
    file = os.path.join(bare.directory, "typed")
    place, pane = ground.solo(sys.executable, os.path.join(AGENTS, "pane_catcher.py"), file)
    until(lambda: "ready" in ground.runtime.screen(place, pane, 5), "the program")
    with program(_BEGINS_AND_WAITS, bare.directory, *place, pane) as killed:
        assert next_line(killed) == "begun"
    cancelled = ground.runtime.prepare_paste(place, pane, enter=True)
    cancelled.cancel()
    cancelled.cancel()
    until(lambda: not any("load-buffer" in words for words in bare.commands()), "the end of both clients")
    texts = "hello", "ü" * (PreparedClient.MOST // 2), TEXTS["one mebibyte"]
    for text in texts:
        prepared = ground.runtime.prepare_paste(place, pane, enter=True)
        prepared.type(text)
        prepared.cancel()
    wanted = b"".join(text.encode() + b"\r" for text in texts)
    until(lambda: os.path.getsize(file) >= len(wanted), "all of the texts")
    with open(file, "rb") as typed:
        assert typed.read() == wanted
    assert bare.tmux("list-buffers", socket=place.socket) == ""


def test_a_prepared_paste_is_refused_if_no_program_would_get_it(ground: Ground) -> None:
    place, pane = ground.solo("sh", "-c", "exit 0")
    until(lambda: ground.runtime.panes(place)[0].dead, "the end of the program")
    for there in (pane, "%999"):
        with pytest.raises(AgentExited):
            ground.runtime.prepare_paste(place, there, enter=True).type("secret")
    assert ground.site.tmux("list-buffers", socket=place.socket) == ""


def test_typing_to_a_pane_that_is_gone_says_so_and_keeps_no_copy(ground: Ground) -> None:
    place, _ = ground.solo()
    with pytest.raises(AgentExited):
        ground.runtime.paste(place, "%999", "secret", enter=True)
    assert ground.site.tmux("list-buffers", socket=place.socket) == ""


def test_a_pane_that_a_person_scrolled_back_still_takes_text(ground: Ground) -> None:
    file = os.path.join(ground.site.directory, "typed")
    place, pane = ground.solo(sys.executable, os.path.join(AGENTS, "pane_catcher.py"), file)
    until(lambda: "ready" in ground.runtime.screen(place, pane, 5), "the program")
    ground.site.tmux("copy-mode", "-t", pane, socket=place.socket)
    ground.runtime.paste(place, pane, "hello", enter=True)
    until(lambda: os.path.getsize(file) >= len(b"hello\r"), "the text")
    with open(file, "rb") as typed:
        assert typed.read() == b"hello\r"


def test_a_paste_and_its_enter_can_be_two_steps(ground: Ground) -> None:
    file = os.path.join(ground.site.directory, "typed")
    place, pane = ground.solo(sys.executable, os.path.join(AGENTS, "pane_catcher.py"), file)
    until(lambda: "ready" in ground.runtime.screen(place, pane, 5), "the program")
    ground.runtime.paste(place, pane, "hello", enter=False)
    until(lambda: os.path.getsize(file) >= len(b"hello"), "the text")
    ground.runtime.enter(place, pane)
    until(lambda: os.path.getsize(file) >= len(b"hello\r"), "Enter")
    with open(file, "rb") as typed:
        assert typed.read() == b"hello\r"


def test_the_screen_is_the_last_lines_scroll_back_included(ground: Ground) -> None:
    place, pane = ground.solo("sh", "-c", "seq 1 200; exec sleep 1000")
    until(lambda: ground.runtime.screen(place, pane, 1) == "200", "the last line")
    assert ground.runtime.screen(place, pane, 150) == "\n".join(str(number) for number in range(51, 201))
    assert ground.runtime.screen(place, pane, 3) == "198\n199\n200"


def test_teams_whose_names_begin_alike_are_never_confused(ground: Ground) -> None:
    longer, _ = ground.solo(name=f"{NAME}e")
    same_socket = Place(longer.socket, NAME)
    assert ground.runtime.panes(same_socket) == []
    ground.runtime.close(same_socket)
    assert teams_seen(longer.socket) == {f"{NAME}e"}
    place, panes = ground.open(ground.plan({"meta": "00"}))
    assert [state.pane for state in ground.runtime.panes(place)] == [panes["00"]]
    ground.runtime.close(place)
    assert f"{NAME}e" in teams_seen(longer.socket)


def test_windows_called_like_numbers_and_sessions_confuse_nothing(ground: Ground) -> None:
    other, _ = ground.solo(name="mas-00000000")
    ground.site.tmux("new-window", "-d", "-t", "mas-00000000:10", "-n", "a10", "sleep 1000", socket=other.socket)
    ground.site.tmux("new-window", "-d", "-t", "mas-00000000:", "-n", NAME, "sleep 1000", socket=other.socket)
    before = seen(other)
    place, panes = ground.open(ground.plan({"a10": "10 11", "a1": "12", NAME: "13"}))
    assert [(pane.window, pane.pane) for pane in seen(place)] == [
        ("a10", panes["10"]),
        ("a10", panes["11"]),
        ("a1", panes["12"]),
        (NAME, panes["13"]),
    ]
    assert [pane.pane for pane in seen(other)] == [pane.pane for pane in before]


@pytest.mark.parametrize("agents", [1, 3, 7, 40, 99])
def test_every_agent_of_a_large_unit_gets_a_whole_terminal(bare: Site, agents: int) -> None:
    ground = Ground(bare, ServerMode.SESSION)
    place, panes = ground.open(ground.plan({"crowd": " ".join(f"{number:02d}" for number in range(agents))}))
    assert sorted(pane.pane for pane in seen(place)) == sorted(panes.values())
    assert len(panes) == agents
    assert [pane for pane in seen(place) if pane.width < 100 or pane.height < 30] == []


def test_a_team_opens_whole_however_long_the_paths_of_its_programs_are(bare: Site) -> None:
    ground = Ground(bare, ServerMode.SESSION)
    place, panes = ground.open(ground.plan(DEFAULT_TEAM, argv=("sh", "-c", "exec sleep 1000", "x" * 3000)))
    assert [state.agent for state in ground.runtime.panes(place)] == list(panes)
    assert len(seen(place)) == 13
