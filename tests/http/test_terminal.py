"""Live terminals by WebSocket, with real agents on real tmux."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.agents.pane_flood import blocks
from tests.http.terminals import Server, agent, log_of, serving
from tests.site import Site, until


@pytest.fixture
def server(site: Site) -> Iterator[Server]:
    with serving(site) as made:
        yield made


def start(site: Site, command: str, **options: Any) -> str:
    return site.start("--team", "solo", "--command", command, **options)


def echo(site: Site, count: int = 1 << 20) -> str:
    session_id = start(site, agent("pane_echo", str(count)))
    until(lambda: b"<ready>" in log_of(site, session_id), "the agent")
    return session_id


def test_the_screen_comes_first_and_then_the_bytes_as_they_are_printed(site: Site, server: Server) -> None:
    session_id = echo(site)
    with server.watch(session_id) as viewer:
        assert b"<ready>" in viewer.screen()
        assert viewer.said == [{"type": "screen", "columns": 101, "rows": 30}]
        before = log_of(site, session_id)
        viewer.keys(b"hello \xff\x00\x1b[31m")
        viewer.wait_for(b"hello \xff\x00\x1b[31m")
        viewer.send(type="input", data="wörld\r")
        viewer.wait_for("wörld\r".encode())
        assert before + viewer.bytes[-1] == log_of(site, session_id)
        assert len(viewer.screens[-1]) == 1


def test_many_keys_are_echoed_in_their_order(site: Site, server: Server) -> None:
    session_id = echo(site)
    with server.watch(session_id) as viewer:
        viewer.screen()
        wanted = b"".join(b"%05d," % number for number in range(5000))
        for start_at in range(0, len(wanted), 7):
            viewer.keys(wanted[start_at : start_at + 7])
        viewer.until(lambda: len(viewer.bytes[-1]) >= len(wanted), "all of them")
        assert bytes(viewer.bytes[-1]) == wanted


def test_a_resize_is_seen_by_the_program_and_shown_afresh_to_all(site: Site, server: Server) -> None:
    session_id = start(site, agent("pane_size"))
    with server.watch(session_id) as first, server.watch(session_id) as second:
        first.wait_for(b"[101x30]")
        second.wait_for(b"[101x30]")
        first.send(type="resize", columns=120, rows=40)
        for viewer in (first, second):
            viewer.wait_said("screen", columns=120, rows=40)
            viewer.wait_for(b"[120x40]")
        first.send(type="resize", columns=7, rows=40)
        assert first.wait_said("error")["code"] == "bad-input"


def test_a_size_changed_elsewhere_is_followed(site: Site, server: Server) -> None:
    session_id = start(site, agent("pane_size"))
    with server.watch(session_id) as viewer:
        viewer.wait_for(b"[101x30]")
        place = site.json("show", session_id)
        site.tmux("resize-window", "-t", place["agents"][0]["pane"], "-x", "90", "-y", "21", socket=place["tmuxSocket"])
        viewer.wait_said("screen", columns=90, rows=20)


def test_two_viewers_see_the_same_and_either_may_type(site: Site, server: Server) -> None:
    session_id = echo(site)
    with server.watch(session_id) as first, server.watch(session_id) as second:
        first.screen()
        second.screen()
        first.keys(b"from the first")
        for viewer in (first, second):
            viewer.wait_for(b"from the first")
        second.keys(b"from the second")
        for viewer in (first, second):
            viewer.wait_for(b"from the second")
        assert first.bytes == second.bytes


FLOOD = 24 << 20


def test_a_viewer_that_stops_reading_slows_no_other_and_gets_the_screen_when_it_reads_again(
    site: Site, server: Server
) -> None:
    go = os.path.join(site.directory, "go")
    flood = agent("pane_flood", str(FLOOD))
    session_id = start(
        site, f"sh -c 'while [ ! -e {go} ]; do sleep 0.01; done; {flood}; printf \"\\033cthe end\"; sleep 1000'"
    )
    with server.watch(session_id, max_queue=1) as frozen, server.watch(session_id) as second:
        frozen.screen()
        second.screen()
        before = server.process.memory_info().rss
        with open(go, "w"):
            pass
        # One does not read at all, the other does.
        second.wait_for(b"the end")
        assert len(log_of(site, session_id)) >= FLOOD
        assert server.process.memory_info().rss - before < 40 << 20
        frozen.wait_for(b"the end")
        assert len(frozen.screens[-1]) > 1
        assert sum(map(len, frozen.screens[-1])) + len(frozen.bytes[-1]) < FLOOD // 2


def test_a_viewer_that_says_what_it_has_drawn_is_not_sent_more_than_it_can_take(site: Site, server: Server) -> None:
    session_id = start(
        site, f"sh -c 'read x; {agent('pane_flood', str(4 << 20))}; printf \"\\033cthe end\"; sleep 1000'"
    )
    with server.watch(session_id) as viewer:
        screen = viewer.screen()
        viewer.send(type="ack", bytes=len(screen))
        viewer.keys(b"\r")
        viewer.until(lambda: len(log_of(site, session_id)) > 4 << 20, "the whole flood")
        while viewer.take(2.0):
            pass
        taken = len(viewer.bytes[-1])
        assert 0 < taken <= 1 << 20
        assert len(viewer.screens[-1]) == 1
        viewer.send(type="ack", bytes=taken)
        # It has been left behind: what it missed is a screen.
        viewer.wait_for(b"the end")
        assert len(viewer.screens[-1]) == 2


def test_a_log_that_starts_again_loses_nothing(site: Site, server: Server) -> None:
    size = 33 << 20
    session_id = echo(site)
    path = site.session(session_id, "logs", "agent-00.log")
    with server.watch(session_id) as viewer:
        viewer.screen()
        # A log as long as one gets: the launcher begins another with what is printed next but one.
        viewer.keys(b"a")
        viewer.wait_for(b"a")
    os.truncate(path, size)
    with server.watch(session_id) as viewer:
        viewer.screen()
        wanted = b""
        for number in range(40):
            viewer.keys(b"%04d" % number * 16)
            wanted += b"%04d" % number * 16
            viewer.wait_for(wanted)
        viewer.until(lambda: len(viewer.bytes[-1]) >= len(wanted))
        assert bytes(viewer.bytes[-1]) == wanted


def test_an_agent_that_exits_is_shown_with_its_last_output_and_its_status(site: Site, server: Server) -> None:
    session_id = start(site, "sh -c 'read x; echo last words; exit 7'")
    with server.watch(session_id) as viewer:
        viewer.screen()
        viewer.keys(b"\r")
        viewer.wait_said("end", exitStatus=7)
        assert b"last words" in viewer.screens[-1][-1]
        assert b"agent 00 exited: exit status 7" in viewer.screens[-1][-1]
        viewer.keys(b"more")
        assert viewer.wait_said("error")["code"] == "agent-exited"
    with server.watch(session_id) as late:
        assert b"last words" in late.screen()
        assert late.wait_said("end") == {"type": "end", "exitStatus": 7}


def test_a_session_that_is_stopped_and_restored_is_followed_through_it(site: Site, server: Server) -> None:
    session_id = echo(site)
    with server.watch(session_id) as viewer:
        viewer.screen()
        viewer.keys(b"before")
        viewer.wait_for(b"before")
        site.mas("stop", session_id)
        assert viewer.wait_said("end") == {"type": "end"}
        with server.watch(session_id) as late:
            assert b"<ready>before" in late.screen()
            assert late.wait_said("end") == {"type": "end"}
            late.keys(b"nobody there")
            assert late.wait_said("error")["code"] == "agent-exited"
        site.mas("restore", session_id)
        viewer.wait_said("screen", count=2)
        viewer.wait_for(b"<ready>")
        viewer.keys(b"after")
        viewer.wait_for(b"after")
        assert b"before" not in viewer.screens[-1][-1]


def test_a_stop_leaves_nothing_though_the_session_is_watched(site: Site, server: Server) -> None:
    session_id = start(site, agent("pane_echo", "99"), env={"MAS_TMUX_SERVER": "session"})
    with server.watch(session_id) as viewer:
        viewer.wait_for(b"<ready>")
        viewer.keys(b"typed")
        viewer.wait_for(b"typed")
        socket = site.json("show", session_id)["tmuxSocket"]
        assert os.path.exists(socket)
        site.mas("stop", session_id)
        assert not os.path.exists(socket)
        viewer.wait_said("end")


def test_thirteen_agents_on_one_socket_are_kept_apart(site: Site, server: Server) -> None:
    session_id = site.start("--command", agent("pane_echo", "100000"))
    agents = [one["id"] for one in site.json("show", session_id)["agents"]]
    assert len(agents) == 13
    with server.many() as viewer:
        for number, name in enumerate(agents):
            viewer.send(type="subscribe", channel=number * 5000, sessionId=session_id, agent=name)
        for number in range(13):
            viewer.wait_for(b"<ready>", number * 5000)
        for number, name in enumerate(agents):
            viewer.keys(f"I am {name} ".encode(), number * 5000)
            viewer.send(type="input", channel=number * 5000, data="and write")
        for number, name in enumerate(agents):
            viewer.wait_for(f"I am {name} and write".encode(), number * 5000)
        assert {fields["channel"] for fields in viewer.said} == {number * 5000 for number in range(13)}
        viewer.send(type="unsubscribe", channel=0)
        viewer.keys(b"nobody", 0)
        assert viewer.wait_said("error", channel=0)["code"] == "not-found"
        viewer.send(type="subscribe", channel=0, sessionId=session_id, agent="33")
        viewer.wait_for(b"I am 33", 0)


def test_a_flooding_agent_does_not_starve_the_others_on_its_socket(site: Site, server: Server) -> None:
    quiet = echo(site)
    flooding = start(site, f"sh -c 'while :; do {agent('pane_flood', str(1 << 20))}; done'")
    with server.many() as viewer:
        viewer.send(type="subscribe", channel=1, sessionId=flooding, agent="00")
        viewer.send(type="subscribe", channel=2, sessionId=quiet, agent="00")
        viewer.screen(1)
        viewer.screen(2)
        for number in range(20):
            viewer.keys(b"key %d " % number, 2)
            viewer.wait_for(b"key %d " % number, 2)
        # One that draws nothing holds back only itself.
        viewer.send(type="ack", channel=1, bytes=0)
        for number in range(20, 40):
            viewer.keys(b"key %d " % number, 2)
            viewer.wait_for(b"key %d " % number, 2)
        viewer.send(type="unsubscribe", channel=1)
    site.mas("stop", flooding)


BAD_IDS = ["A" * 300, "%00", "-x", "%20"]


BAD_AGENTS = ["0", "000", "%252e%252e", "ab", "%D9%A0%D9%A0"]


def test_ids_that_cannot_be_are_refused_before_anything_is_touched(server: Server) -> None:
    for session_id, name in [*((one, "00") for one in BAD_IDS), *((str(uuid4()), one) for one in BAD_AGENTS)]:
        with server.watch(session_id, name) as viewer:
            assert viewer.wait_closed() == 4422, (session_id, name)
            assert viewer.said[-1]["code"] == "bad-input"


def test_what_does_not_exist_is_reported_as_unknown(site: Site, server: Server) -> None:
    session_id = echo(site)
    for unknown, name, code in ((str(uuid4()), "00", "session-not-found"), (session_id, "77", "agent-not-found")):
        with server.watch(unknown, name) as viewer:
            assert viewer.wait_closed() == 4404
            assert viewer.said[-1]["code"] == code
        with server.many() as viewer:
            viewer.send(type="subscribe", channel=1, sessionId=unknown, agent=name)
            assert viewer.wait_said("error", channel=1)["code"] == code
            viewer.send(type="subscribe", channel=1, sessionId=session_id, agent="00")
            viewer.wait_for(b"<ready>", 1)


NONSENSE: list[str | bytes] = ["{", "[]", "null", '"x"', "[" * 10_000, b"x" * ((64 << 10) + 1), "x" * (70 << 10)]


def test_a_frame_that_makes_no_sense_closes_the_socket(site: Site, server: Server) -> None:
    session_id = echo(site)
    for frame in NONSENSE:
        with server.watch(session_id) as viewer:
            viewer.screen()
            viewer.connection.send(frame)
            assert viewer.wait_closed() == 1008, frame[:20]
            assert viewer.said[-1]["code"] == "bad-input"
        with server.many() as viewer:
            viewer.connection.send(frame)
            assert viewer.wait_closed() == 1008, frame[:20]
    with server.many() as viewer:
        viewer.connection.send(b"x")
        assert viewer.wait_closed() == 1008
    with server.watch(session_id) as viewer:
        viewer.keys(b"still served")
        viewer.wait_for(b"still served")


BAD_FRAMES: list[dict[str, object]] = [
    {},
    {"type": 1},
    {"type": "no such"},
    {"type": "input"},
    {"type": "input", "data": 5},
    {"type": "input", "data": "\ud800"},
    {"type": "resize"},
    {"type": "resize", "columns": "100", "rows": 30},
    {"type": "resize", "columns": 100.5, "rows": True},
    {"type": "resize", "columns": 10**30, "rows": 30},
    {"type": "resize", "columns": 501, "rows": 30},
    {"type": "ack"},
    {"type": "ack", "bytes": -1},
    {"type": "subscribe", "sessionId": 5, "agent": "00"},
    {"type": "subscribe", "sessionId": "x", "agent": "00"},
]


@pytest.mark.parametrize("channel", [None, 1], ids=["one", "many"])
def test_frames_that_ask_for_what_cannot_be_are_refused_one_by_one(
    site: Site, server: Server, channel: int | None
) -> None:
    session_id = echo(site)
    with server.watch(session_id) if channel is None else server.many() as viewer:
        where = {} if channel is None else {"channel": channel}
        if channel is not None:
            viewer.send(type="subscribe", channel=channel, sessionId=session_id, agent="00")
            for bad in (-1, 65536, "1", None, 1.0, True):
                viewer.send(type="subscribe", channel=bad, sessionId=session_id, agent="00")
            viewer.wait_said("error", count=6)
        viewer.until(lambda: viewer.screens)
        before = len([one for one in viewer.said if one["type"] == "error"])
        for frame in BAD_FRAMES:
            viewer.connection.send(json.dumps(frame | where))
        viewer.wait_said("error", count=before + len(BAD_FRAMES))
        viewer.keys(b"still here", channel)
        viewer.wait_for(b"still here", -1 if channel is None else channel)


def test_a_socket_has_a_limited_number_of_channels(site: Site, server: Server) -> None:
    session_id = echo(site)
    with server.many() as viewer:
        for number in range(257):
            viewer.send(type="subscribe", channel=number, sessionId=session_id, agent="00")
        assert viewer.wait_said("error") == {
            "type": "error",
            "code": "bad-input",
            "message": "A socket has at most 256 channels",
            "channel": 256,
        }
        viewer.until(lambda: len(viewer.screens) == 256, "all screens")
        viewer.keys(b"to all", 7)
        for number in range(256):
            viewer.wait_for(b"to all", number)


def test_a_server_that_ends_lets_its_viewers_go(site: Site) -> None:
    with serving(site) as server:
        session_id = echo(site)
        with server.watch(session_id) as one, server.many() as many:
            one.screen()
            many.send(type="subscribe", channel=1, sessionId=session_id, agent="00")
            many.screen(1)
            server.process.terminate()
            assert one.wait_closed() == many.wait_closed() == 1012
    assert site.tmux("list-clients") == ""


def test_viewers_that_leave_leave_nothing(site: Site, server: Server) -> None:
    session_id = echo(site)
    with server.watch(session_id) as viewer:
        viewer.screen()
    # Threads and what tmux needs have been opened by now.
    before = server.process.num_fds()
    for _ in range(20):
        with server.watch(session_id) as viewer, server.many() as many:
            viewer.screen()
            many.send(type="subscribe", channel=1, sessionId=session_id, agent="00")
            many.screen(1)
    until(lambda: server.process.num_fds() <= before, f"{before} descriptors")


def test_the_stream_after_the_screen_is_what_the_log_holds_even_while_the_agent_prints(
    site: Site, server: Server
) -> None:
    counting = "import itertools, time\nfor n in itertools.count():\n print(n, end=' ', flush=True)\n time.sleep(0.003)"
    path = os.path.join(site.directory, "counting.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(counting)
    session_id = start(site, f"python3 {path}")
    until(lambda: len(log_of(site, session_id)) > 200, "some numbers")
    for _ in range(3):
        with server.watch(session_id) as viewer:
            viewer.screen()
            viewer.until(lambda viewer=viewer: len(viewer.bytes[-1]) > 500, "some output")
            log = log_of(site, session_id)
            assert bytes(viewer.bytes[-1]) in log
            # Nothing is missing between the screen and what follows it: the numbers go on, or some come twice.
            drawn = viewer.screens[-1][0].replace(b"\r\n", b"").split(b"\x1b[0m")[0].split()
            first = bytes(viewer.bytes[-1]).split()[1]
            assert int(first) <= int(drawn[-2]) + 3


def test_what_a_flood_sends_is_part_of_the_log(site: Site, server: Server) -> None:
    size = 3 << 20
    session_id = start(site, f"sh -c 'read x; {agent('pane_flood', str(size))}; sleep 1000'")
    with server.watch(session_id) as viewer:
        viewer.screen()
        viewer.keys(b"\r")
        end = blocks(size)[-64:]
        viewer.until(lambda: end in bytes(viewer.bytes[-1]) or end in viewer.screens[-1][-1], "its end")
        assert bytes(viewer.bytes[-1]) in log_of(site, session_id)
