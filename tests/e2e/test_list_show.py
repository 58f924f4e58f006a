"""List and show: the registry after one look at the directories and one at tmux."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable

import pytest

from tests.e2e.standin import ASLEEP, living, pane_pids, pids, read, start_body, start_unruly, tmux_name, write
from tests.site import Site, until

INFO = {
    "sessionId", "tmuxSession", "name", "status", "createdAt", "lastActivity", "workingDir", "unitDir",
    "workflowsDir", "agentCount", "tmuxSocket", "agents", "tier", "stoppedAt", "lost", "reason", "warnings",
}  # fmt: skip


def server_pid(site: Site) -> int:
    return int(site.tmux("display", "-p", "#{pid}"))


def test_a_message_is_activity_and_no_reason_to_write_the_registry(site: Site) -> None:
    session = site.start("--team", "solo", "--command", "cat")
    index = site.path("sessions", ".sessions.index")
    before, (info,) = os.stat(index), site.json("list")["sessions"]
    site.mas("send", "--force", "--session", session, "00", "hello")
    after = os.stat(index)
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    (used,) = site.json("list")["sessions"]
    assert info["lastActivity"] < used["lastActivity"] == site.json("show", session)["lastActivity"]
    os.unlink(site.session(session, "logs", "session.log"))
    assert site.json("list")["sessions"][0]["lastActivity"] >= info["createdAt"]
    site.mas("stop", session)
    (stopped,) = site.json("list")["sessions"]
    assert used["lastActivity"] < stopped["lastActivity"] == stopped["stoppedAt"]


def test_a_listing_has_what_the_api_would_return(site: Site) -> None:
    assert site.json("list") == {"sessions": [], "total": 0, "warnings": []}
    session = site.start(*ASLEEP, "--name", "朝の仕事")
    listing = site.json("list")
    assert listing["total"] == 1
    info = listing["sessions"][0]
    assert set(info) == INFO
    assert (info["sessionId"], info["tmuxSession"]) == (session, tmux_name(session))
    assert (info["name"], info["status"], info["agentCount"]) == ("朝の仕事", "active", 1)
    assert info["workingDir"] == site.session(session)
    assert info["unitDir"] == site.session(session, "unit")
    assert info["workflowsDir"] == site.session(session, "workflows")
    assert info["createdAt"].endswith("Z")
    text = site.mas("list").stdout
    assert session[:8] in text
    assert "朝の仕事" in text


def test_show_prints_everything_about_one_session(site: Site) -> None:
    body = {"name": "two", "agents": {"units": [{"name": "ops", "manager": {}, "workers": [{"model": "m1"}]}]}}
    session = start_body(site, body, "--command", "sleep 1000")
    shown = site.json("show", session)
    assert shown["sessionId"] == session
    assert shown["status"] == "active"
    assert shown["unitDirs"] == {agent: site.session(session, "unit", agent) for agent in ("10", "11")}
    assert shown["configFile"] == site.session(session, "config.json")
    assert shown["logs"]["session"] == site.session(session, "logs", "session.log")
    assert shown["logs"]["11"] == site.session(session, "logs", "agent-11.log")
    assert shown["sessionFile"]["SESSION_ID"] == session
    assert shown["sessionFile"]["STATUS"] == "active"
    assert [(agent["id"], agent["unit"], agent["model"]) for agent in shown["agents"]] == [
        ("10", "ops", None),
        ("11", "ops", "m1"),
    ]
    assert {agent["provider"] for agent in shown["agents"]} == {"generic"}
    assert all(agent["pane"].startswith("%") for agent in shown["agents"])
    assert "ops" in site.mas("show", session).stdout


def test_listings_can_be_filtered_and_paged(site: Site) -> None:
    kept = [site.start(*ASLEEP) for _ in range(4)]
    stopped, archived, deleted, active = kept
    site.mas("stop", stopped, archived, deleted)
    site.mas("archive", archived)
    site.mas("delete", deleted, "--yes")
    assert site.statuses() == {stopped: "stopped", active: "active"}
    for status, session in (("active", active), ("stopped", stopped), ("archived", archived), ("deleted", deleted)):
        listing = site.json("list", "--status", status)
        assert [(info["sessionId"], info["status"]) for info in listing["sessions"]] == [(session, status)]
    assert site.json("list", "--status", "error")["total"] == 0
    pages = [site.json("list", "--limit", "1", "--offset", str(offset)) for offset in range(3)]
    assert [[info["sessionId"] for info in page["sessions"]] for page in pages] == [[stopped], [active], []]
    assert {page["total"] for page in pages} == {2}
    site.mas("list", "--limit", "-1", code=2)
    site.mas("list", "--status", "sleeping", code=2)


def end_session(site: Site, session: str) -> None:
    site.tmux("kill-session", "-t", f"={tmux_name(session)}")


def end_server(site: Site, session: str) -> None:
    site.tmux("kill-server")


def kill_server(site: Site, session: str) -> None:
    os.kill(server_pid(site), signal.SIGKILL)


@pytest.mark.parametrize("ending", [end_session, end_server, kill_server])
def test_an_active_session_whose_tmux_is_gone_becomes_stopped_everywhere(
    site: Site, ending: Callable[[Site, str], None]
) -> None:
    session = site.start(*ASLEEP)
    ending(site, session)
    until(lambda: tmux_name(session) not in site.tmux_sessions(), "the end of the tmux session")
    assert site.statuses() == {session: "stopped"}
    assert site.four_places(session) == {"stopped"}
    site.mas("restore", session)
    assert site.four_places(session) == {"active"}
    assert site.tmux_sessions() == {tmux_name(session)}


@pytest.mark.parametrize("by", ["config", "environment"])
def test_a_lost_session_is_brought_back_where_the_user_asked_for_that(site: Site, by: str) -> None:
    session = site.start(*ASLEEP)
    env = {}
    if by == "config":
        config = json.loads(read(site.path("config.json")))
        write(json.dumps({**config, "recover": True}), site.path("config.json"))
    else:
        env = {"MAS_RECOVER": "1"}
    end_session(site, session)
    assert site.json("list", env=env)["sessions"][0]["status"] == "active"
    assert site.tmux_sessions() == {tmux_name(session)}
    assert site.four_places(session) == {"active"}


def test_a_damaged_directory_becomes_an_error_and_says_what_to_do(site: Site) -> None:
    broken, whole = site.start(*ASLEEP), site.start(*ASLEEP)
    site.mas("stop", broken)
    write("{", site.session(broken, "metadata.json"))
    done = site.mas("list")
    assert "mas repair" in done.stderr
    assert site.statuses() == {broken: "error", whole: "active"}
    assert site.json("list", "--status", "error")["total"] == 1
    assert "mas repair" in site.mas("show", broken, code=5).stderr


def test_a_session_whose_directory_was_removed_by_hand_is_forgotten_and_its_agents_end(site: Site) -> None:
    gone, other = start_unruly(site, CHILDREN="setsid"), site.start(*ASLEEP)
    running = [*pids(site, gone).values(), *pane_pids(site, gone)]
    shutil.rmtree(site.session(gone))
    assert site.statuses() == {other: "active"}
    assert site.tmux_sessions() == {tmux_name(other)}
    assert living(running) == []
    assert f"\n{gone}:deleted:" in read(site.path("sessions", ".index"))


def test_not_being_able_to_look_is_not_the_same_as_gone(site: Site) -> None:
    session = site.start(*ASLEEP)
    place = os.path.dirname(site.user_socket)
    os.rename(place, f"{place}.aside")
    # A loop refuses everybody, the superuser too.
    os.symlink(place, place)
    try:
        done = site.mas("list")
        assert session in done.stderr
        assert "could not ask tmux" in done.stderr.lower()
        assert site.statuses() == {session: "active"}
        assert site.four_places(session) == {"active"}
        assert site.json("show", session)["agents"][0]["state"] == "unknown"
    finally:
        os.unlink(place)
        os.rename(f"{place}.aside", place)
    assert site.statuses() == {session: "active"}
    assert site.tmux_sessions() == {tmux_name(session)}


def test_an_agent_that_ended_is_shown_with_its_exit_status(site: Site) -> None:
    session = start_unruly(site, EXIT_STATUS="7")

    def ended() -> bool:
        agent = site.json("show", session)["agents"][0]
        return bool(agent["state"] == "exited" and agent["exitStatus"] == 7)

    until(ended, "the agent's end")
    assert site.statuses() == {session: "active"}


def test_a_session_may_be_named_by_id_by_prefix_or_by_its_tmux_name(site: Site) -> None:
    session = site.start(*ASLEEP)
    for reference in (session, session.upper(), session[:4], session[:13], tmux_name(session)):
        assert site.json("show", reference)["sessionId"] == session
    for reference in ("abc", session[:3], f"{session}0", "mas-", "zzzz"):
        site.mas("show", reference, code=3)
    site.mas("show", "", code=2)
    unknown = "00000000-0000-4000-8000-000000000000"
    assert f"Session not found: {unknown}" in site.mas("show", unknown, code=3).stderr


def test_a_prefix_of_two_sessions_is_refused_and_both_are_named(site: Site) -> None:
    first = site.start(*ASLEEP)
    site.mas("stop", first)
    second = first[:6] + ("00" if first[6:8] != "00" else "11") + first[8:]
    shutil.copytree(site.session(first), site.session(second))
    for name in ("metadata.json", ".session"):
        write(read(site.session(second, name)).replace(first[:8], second[:8]), site.session(second, name))
    assert site.statuses() == {first: "stopped", second: "stopped"}
    done = site.mas("show", first[:4], code=2)
    assert first in done.stderr
    assert second in done.stderr
    assert site.json("show", second)["sessionId"] == second


def test_the_id_can_be_left_out_inside_an_agent_or_with_one_active_session(site: Site) -> None:
    assert "no sessions are active" in site.mas("show", code=2).stderr
    first = site.start(*ASLEEP)
    assert site.json("show")["sessionId"] == first
    second = site.start(*ASLEEP)
    assert "2 sessions are active" in site.mas("show", code=2).stderr
    inside = {"MAS_SESSION_ID": second, "MAS_AGENT_ID": "00"}
    assert site.json("show", env=inside)["sessionId"] == second
    site.mas("stop", first)
    assert site.json("show")["sessionId"] == second


def test_a_listing_of_json_is_data_alone_even_with_warnings(site: Site) -> None:
    session = site.start(*ASLEEP)
    write("", site.session(session, ".session"))
    done = site.mas("list", "--json")
    assert json.loads(done.stdout)["sessions"][0]["status"] == "error"
    assert "warning" in done.stderr
    site.mas("repair")
    assert site.statuses() == {session: "active"}
