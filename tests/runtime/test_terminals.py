"""A pane as a terminal: raw keys, sizes, and snapshots that a fresh terminal shows just so."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from mas.model.errors import AgentExited, BadInput, Conflict
from mas.runtime import teams
from mas.runtime.control import Connections
from mas.runtime.runtime import PanePlan, Place, Snapshot
from mas.settings import ServerMode
from tests.runtime.ground import Ground, seen, started_by
from tests.site import AGENTS, Site, until

ALL_BYTES = bytes(range(256))


@pytest.fixture(params=["plain", "connected"])
def ground(bare: Site, request: pytest.FixtureRequest) -> Iterator[Ground]:
    connections = Connections() if request.param == "connected" else None
    try:
        yield Ground(bare, ServerMode.WORKSPACE, connections)
    finally:
        if connections:
            connections.close()


@pytest.mark.parametrize(
    "data",
    [b"a", ALL_BYTES, ALL_BYTES * 7 + b"xyz", ALL_BYTES * 8, ALL_BYTES * 8 + b"!", ALL_BYTES * 256],
    ids=["one", "all", "several commands", "the most keys", "a buffer", "64 KiB"],
)
def test_keys_arrive_byte_for_byte(ground: Ground, data: bytes) -> None:
    file = os.path.join(ground.site.directory, "typed")
    place, pane = ground.solo(sys.executable, os.path.join(AGENTS, "pane_catcher.py"), file)
    until(lambda: "ready" in ground.runtime.screen(place, pane, 5), "the program")
    ground.site.tmux("copy-mode", "-t", pane, socket=place.socket)
    ground.runtime.keys(place, pane, data)
    until(lambda: os.path.getsize(file) >= len(data), "all of them")
    ground.runtime.keys(place, pane, b"")
    ground.runtime.keys(place, pane, b"end")
    until(lambda: os.path.getsize(file) >= len(data) + 3, "the last ones")
    with open(file, "rb") as typed:
        assert typed.read() == data + b"end"
    assert ground.site.tmux("list-buffers", socket=place.socket) == ""


@pytest.mark.parametrize("data", [b"touch executed\r", b"touch executed\r" * 500], ids=["few", "many"])
def test_keys_reach_no_dead_pane_no_missing_one_and_no_other_teams(ground: Ground, data: bytes) -> None:
    place, pane = ground.solo("sh", "-c", "exit 0")
    other, living = ground.solo("cat", "-", name="mas-00000000")
    until(lambda: ground.runtime.panes(place)[0].dead, "the end of the program")
    for target in (pane, "%999", living):
        with pytest.raises(AgentExited):
            ground.runtime.keys(place, target, data)
        with pytest.raises(AgentExited):
            ground.runtime.keys(Place(place.socket, "mas-ffffffff"), target, data)
    assert ground.runtime.screen(other, living, 5) == ""
    assert started_by(ground.site, "sh") == []
    assert ground.site.tmux("list-buffers", socket=place.socket) == ""


def test_a_key_is_pressed_by_its_name_and_only_in_the_process_that_was_seen(ground: Ground) -> None:
    file = os.path.join(ground.site.directory, "typed")
    place, pane = ground.solo(sys.executable, os.path.join(AGENTS, "pane_catcher.py"), file)
    until(lambda: "ready" in ground.runtime.screen(place, pane, 5), "the program")
    (state,) = ground.runtime.panes(place)
    ground.site.tmux("copy-mode", "-t", pane, socket=place.socket)
    for wrong in (state._replace(pid=1), state._replace(pane="%999")):
        with pytest.raises(AgentExited):
            ground.runtime.press(place, wrong, "x")
    with pytest.raises(AgentExited):
        ground.runtime.press(Place(place.socket, "mas-ffffffff"), state, "x")
    for key in ("Enter", "Escape", "y", "C-c"):
        ground.runtime.press(place, state, key)
    until(lambda: os.path.getsize(file) >= 4, "all of them")
    with open(file, "rb") as typed:
        assert typed.read() == b"\r\x1by\x03"


def test_a_pane_whose_program_ended_runs_another_and_stays_itself(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, pane = ground.solo("sh", "-c", "exit 3")
    other, living = ground.solo("cat", "-", name="mas-00000000")
    until(lambda: ground.runtime.panes(place)[0].dead, "the end of the program")
    file = os.path.join(ground.site.directory, 'it\'s; "here" #{pane_id} $HOME')
    plan = PanePlan("00", "role", ("sh", "-c", 'echo "$MAS_PANE" >"$0"; exec sleep 1000', file), "the mark")
    for wrong in (Place(place.socket, "mas-ffffffff"), other):
        with pytest.raises(Conflict):
            ground.runtime.reopen(wrong, pane, plan)
    ground.runtime.reopen(place, pane, plan)
    (state,) = ground.runtime.panes(place)
    assert (state.pane, state.agent, state.dead, state.exit_status) == (pane, "00", False, None)
    until(lambda: os.path.exists(file) and os.path.getsize(file), "the program")
    with open(file, encoding="utf-8") as said:
        assert said.read() == "the mark\n"
    monkeypatch.setattr(teams, "_ENDING", 0.1)
    with pytest.raises(Conflict, match="is still running"):
        ground.runtime.reopen(other, living, plan)
    with pytest.raises(Conflict):
        ground.runtime.reopen(place, "%999", plan)


def size_of(place: Place, pane: str) -> tuple[int, int]:
    return next((one.width, one.height) for one in seen(place) if one.pane == pane)


SIZES = [(120, 40), (20, 5), (500, 200), (80, 24), (100, 30), (100, 30)]


def test_a_pane_alone_in_its_window_gets_exactly_the_size_that_is_asked_for(ground: Ground) -> None:
    place, pane = ground.solo()
    for size in SIZES:
        ground.runtime.resize(place, pane, *size)
        assert size_of(place, pane) == size


@pytest.mark.parametrize("agents", [2, 3, 4, 9])
def test_a_pane_among_others_gets_its_size_and_the_window_does_not_grow_for_ever(ground: Ground, agents: int) -> None:
    names = [f"{number:02d}" for number in range(agents)]
    place, panes = ground.open(ground.plan({"meta": " ".join(names)}))
    window = "#{window_width}x#{window_height}"
    seen_windows = []
    for _ in range(2):
        for name in names:
            for size in SIZES[:5]:
                ground.runtime.resize(place, panes[name], *size)
                assert size_of(place, panes[name]) == size
        seen_windows.append(ground.site.tmux("display-message", "-p", "-t", panes["00"], window, socket=place.socket))
    assert seen_windows[0] == seen_windows[1]
    assert len(seen(place)) == agents


@pytest.mark.parametrize("size", [(19, 30), (501, 30), (100, 4), (100, 201), (0, 0), (-1, 30), (10**9, 30)])
def test_a_size_no_terminal_has_is_refused(ground: Ground, size: tuple[int, int]) -> None:
    place, pane = ground.solo()
    before = size_of(place, pane)
    with pytest.raises(BadInput):
        ground.runtime.resize(place, pane, *size)
    assert size_of(place, pane) == before


def test_no_pane_of_another_team_is_resized_or_shown(ground: Ground) -> None:
    place, _ = ground.solo()
    other, pane = ground.solo(name="mas-00000000")
    before = size_of(other, pane)
    for target in (pane, "%999"):
        with pytest.raises(AgentExited):
            ground.runtime.resize(place, target, 120, 40)
        with pytest.raises(AgentExited):
            ground.runtime.snapshot(place, target, 10)
    assert size_of(other, pane) == before


def test_windows_opened_after_a_resize_leave_the_server_alive(ground: Ground) -> None:
    place, pane = ground.solo()
    ground.runtime.resize(place, pane, 120, 40)
    another, _ = ground.solo(name="mas-00000000")
    assert ground.runtime.alive([place, another]) == {place: True, another: True}
    assert size_of(place, pane) == (120, 40)


def test_sizes_list_every_pane_of_the_team_as_it_is_now(ground: Ground) -> None:
    place, panes = ground.open(ground.plan({"meta": "00", "design": "10 11"}))
    found = ground.runtime.sizes(place)
    assert [one.state for one in found] == ground.runtime.panes(place)
    assert [(one.state.agent, one.columns, one.rows) for one in found] == [
        (agent, *size_of(place, pane)) for agent, pane in panes.items()
    ]
    assert ground.runtime.sizes(Place(place.socket, "mas-ffffffff")) == []
    assert ground.runtime.sizes(Place(place.socket + "x", place.name)) == []


DRAWINGS = {
    "plain lines": "one\\r\\ntwo\\r\\n\\r\\nfour",
    "more than a screen": "".join(f"line {number}\\r\\n" for number in range(100)),
    "full lines": ("x" * 100 + "\\r\\n") * 40,
    "wrapped lines": "y" * 450,
    "colours": "\\033[44mblue\\033[0m \\033[1;31;48;5;200mx\\033[38;2;1;2;3my\\r\\n\\r\\nz\\033[m.\\033[107mq",
    "backgrounds over many lines": "\\033[41m" + "red\\r\\n" * 60 + "\\033[0mplain",
    "other scripts": "日本語 é 🙂 한국어\\r\\n",
    "a cursor elsewhere": "abc\\033[10;20H",
    "no cursor": "\\033[?25l.",
    "a full-screen program": "before\\r\\n" * 50 + "\\033[?1049h\\033[2J\\033[3;4Hinside\\033[7minverse",
    "a full-screen program in a new pane": "\\033[?1049h\\033[Htop",
    "a region that scrolls": "a\\r\\nb\\r\\nc\\033[5;10r\\033[5;1H",
    "origin mode": "\\033[5;10r\\033[?6h\\033[2;3Hx",
    "modes": "\\033[?1h\\033=\\033[?1002h\\033[?1006h\\033[?7l\\033[4h",
    "all mouse": "\\033[?1003h\\033[?1005h",
}
_TOLD = (
    "#{cursor_x},#{cursor_y} #{cursor_flag} #{alternate_on} #{insert_flag} #{keypad_cursor_flag} #{keypad_flag}"
    " #{mouse_all_flag}#{mouse_button_flag}#{mouse_standard_flag}#{mouse_sgr_flag}#{mouse_utf8_flag}"
    " #{origin_flag} #{wrap_flag} #{scroll_region_upper}-#{scroll_region_lower} #{history_size}"
)


@pytest.mark.parametrize("drawing", list(DRAWINGS.values()), ids=list(DRAWINGS))
def test_a_snapshot_makes_a_fresh_terminal_show_the_same(bare: Site, drawing: str) -> None:
    ground = Ground(bare, ServerMode.SESSION)
    place, pane = ground.solo("sh", "-c", f"stty raw -echo; printf '{drawing}\\033]2;drawn\\007'; exec sleep 1000")
    title = ["display-message", "-p", "-t", pane, "#{pane_title}"]
    until(lambda: bare.tmux(*title, socket=place.socket) == "drawn", "the drawing")
    snapshot = ground.runtime.snapshot(place, pane, 1000)
    assert shown(ground, snapshot) == look(ground, place, pane)
    assert (snapshot.columns, snapshot.rows) == size_of(place, pane)


def test_no_line_of_a_snapshot_ends_with_a_background_that_would_fill_the_next(ground: Ground) -> None:
    drawing = (
        "\\033[41m" + "red\\r\\n" * 40 + "\\033[48;5;20mblue\\r\\nblue\\r\\n\\033[1mbold\\033[0m\\r\\nplain\\r\\nready"
    )
    place, pane = ground.solo("sh", "-c", f"printf '{drawing}'; exec sleep 1000")
    until(lambda: "ready" in ground.runtime.screen(place, pane, 50), "the drawing")
    lines = ground.runtime.snapshot(place, pane, 1000).data.split(b"\r\n")
    for word, colour in ((b"red", b"\x1b[41m"), (b"blue", b"\x1b[48;5;20m"), (b"bold", b"\x1b[48;5;20m")):
        coloured = [line for line in lines if word in line]
        assert coloured
        assert all(colour in line.partition(word)[0] and line.endswith(b"\x1b[49m") for line in coloured)
    assert b"\x1b[49m" not in lines[-1]


def shown(ground: Ground, snapshot: Snapshot) -> tuple[str, str]:
    """What another pane of the same size shows once the snapshot is written to it."""
    file = os.path.join(ground.site.directory, "snapshot")
    with open(file, "wb") as out:
        out.write(snapshot.data + b"\x1b]2;drawn\x07")
    place, pane = ground.solo("sh", "-c", "stty raw -echo; read x; cat snapshot; exec sleep 1000", name="mas-00000000")
    ground.runtime.resize(place, pane, snapshot.columns, snapshot.rows)
    ground.runtime.keys(place, pane, b"\n")
    title = ["display-message", "-p", "-t", pane, "#{pane_title}"]
    until(lambda: ground.site.tmux(*title, socket=place.socket) == "drawn", "the drawing")
    return look(ground, place, pane)


def look(ground: Ground, place: Place, pane: str) -> tuple[str, str]:
    told = ground.site.tmux("display-message", "-p", "-t", pane, _TOLD, socket=place.socket)
    return told, ground.site.tmux("capture-pane", "-p", "-e", "-S", "-1000", "-t", pane, socket=place.socket)


def test_a_snapshot_has_as_much_history_as_is_asked_for(ground: Ground) -> None:
    place, pane = ground.solo("sh", "-c", "seq 1 200; exec sleep 1000")
    until(lambda: ground.runtime.screen(place, pane, 1) == "200", "the last line")
    rows = size_of(place, pane)[1]
    for history in (0, 1, 50, 5000):
        lines = ground.runtime.snapshot(place, pane, history).data.split(b"\r\n")
        assert len(lines) == rows + min(history, 201 - rows)


def test_a_snapshot_of_a_dead_pane_is_its_last_screen(ground: Ground) -> None:
    place, pane = ground.solo("sh", "-c", "echo last words; exit 3")
    until(lambda: ground.runtime.panes(place)[0].dead, "its end")
    assert b"last words" in ground.runtime.snapshot(place, pane, 10).data
