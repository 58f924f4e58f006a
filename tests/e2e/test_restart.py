"""Restart: an agent that ended runs again in its pane, when a person says so or by the team's policy."""

from __future__ import annotations

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mas.model.errors import AgentExited, Conflict, NoAgent
from mas.model.ids import SessionId
from mas.store.agent.launch_plan import read_plan
from tests.e2e.standin import ASLEEP, command, living, pane_pids, read, start_body, write
from tests.served import Served
from tests.site import Site, until


def agent(site: Site, session: str) -> dict[str, Any]:
    found: dict[str, Any] = site.json("show", session)["agents"][0]
    return found


def state(site: Site, session: str) -> str:
    return str(site.local().show(SessionId(session)).agents[0].state)


def events(site: Site, session: str, *kinds: str) -> list[dict[str, Any]]:
    path = site.session(session, "logs", "agent-00.events.jsonl")
    lines = read(path).splitlines() if os.path.exists(path) else []
    return [event for event in map(json.loads, lines) if event["event"] in kinds]


def demo(site: Site, **body: Any) -> str:
    session = start_body(site, {"team": "solo", "provider": "demo", **body})
    until(lambda: state(site, session) == "idle", "the demo agent")
    return session


def say(site: Site, session: str, text: str) -> None:
    site.mas("send", "--session", session, "00", text)


def screen(site: Site, session: str) -> str:
    return site.mas("output", session, "00", "-n", "200").stdout


# By a person.


def test_an_agent_that_ended_goes_on_in_its_own_pane(site: Site) -> None:
    session = demo(site)
    say(site, session, "remember this")
    until(lambda: "kept in inbox.md" in screen(site, session), "the message")
    before = agent(site, session)
    say(site, session, "/die 3")
    until(lambda: agent(site, session)["exitStatus"] == 3, "its end")
    done = site.mas("restart-agent", "00")
    assert done.stderr == f"Restarted agent 00 in {before['pane']}\n"
    until(lambda: "(demo) resumed" in screen(site, session), "the conversation")
    after = agent(site, session)
    assert (after["pane"], after["exitStatus"], after["restarts"]) == (before["pane"], None, 0)
    until(lambda: state(site, session) == "idle", "the agent")
    say(site, session, "still there?")
    until(lambda: "still there?" in read(site.session(session, "unit", "00", "inbox.md")), "the next message")
    assert "restart 00" in read(site.session(session, "logs", "session.log"))


def test_an_agent_without_a_conversation_starts_a_new_one_and_that_is_reported(site: Site) -> None:
    session = demo(site)
    say(site, session, "/die 3")
    until(lambda: state(site, session) == "exited", "its end")
    found = site.json("restart-agent", session, "00")
    assert found["warnings"] == ["Started fresh: 00 (no conversation was kept)"]
    assert (found["sessionId"], found["agent"]["state"]) == (session, "starting")
    shell = site.start()
    said = site.mas("restart-agent", "--force", shell, "00").stderr
    assert "Started fresh: 00 (shell cannot resume a conversation)\n" in said


def test_an_agent_that_runs_is_left_alone_unless_forced(site: Site) -> None:
    session = demo(site)
    done = site.mas("restart-agent", "00", code=4)
    assert "Agent 00 is running: it is idle" in done.stderr
    assert f"mas restart-agent --force {session[:8]} 00" in done.stderr
    (first,) = pane_pids(site, session)
    say(site, session, "/hang")
    until(lambda: state(site, session) == "working", "it hangs")
    programs = [start["pid"] for start in events(site, session, "start")]
    site.mas("restart-agent", "--force", "00")
    assert living([first, *programs]) == []
    until(lambda: state(site, session) == "idle", "the restarted agent")
    assert [event["event"] for event in events(site, session, "start", "exit")] == ["start", "exit", "start"]


def test_an_agent_whose_launcher_was_killed_runs_again_without_what_it_left(site: Site) -> None:
    session = start_body(site, {"team": "solo"}, "--command", command("unruly"))
    until(lambda: os.path.exists(site.session(session, "unit", "00", "pids.json")), "the agent's children")
    with open(site.session(session, "unit", "00", "pids.json"), encoding="utf-8") as file:
        children = list(json.load(file).values())
    (launcher,) = pane_pids(site, session)
    os.kill(launcher, signal.SIGKILL)
    until(lambda: state(site, session) == "exited", "its end")
    site.mas("restart-agent", session, "00")
    assert living(children) == []
    until(lambda: state(site, session) == "unknown", "it runs")
    assert [event.get("status") for event in events(site, session, "exit")] == [-9]


def test_what_cannot_be_restarted_says_why(site: Site) -> None:
    mas = site.local()
    session = SessionId(site.start("--team", "pair", "--command", "sleep 1000"))
    with pytest.raises(NoAgent):
        mas.restart_agent(session, "99")
    site.tmux("kill-pane", "-t", site.json("show", session)["agents"][0]["pane"])
    with pytest.raises(Conflict, match="The pane of agent 21 is gone") as caught:
        mas.restart_agent(session, "21")
    assert caught.value.hint == f"mas stop {session}; mas restore {session}"
    site.mas("stop", session)
    with pytest.raises(Conflict, match="not running"):
        mas.restart_agent(session, "21")
    assert "mas show" in site.mas("restart-agent", session, code=2).stderr
    inside = {"MAS_SESSION_ID": session, "MAS_AGENT_ID": "23"}
    assert "Agent 23 cannot restart itself" in site.mas("restart-agent", "23", "--force", env=inside, code=2).stderr


def test_of_two_restarts_at_once_one_starts_the_agent(site: Site) -> None:
    session = SessionId(site.start("--team", "solo", "--command", "sh -c 'echo x >>runs; exit 3'"))
    runs = site.session(session, "unit", "00", "runs")
    until(lambda: state(site, session) == "exited", "its end")
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(site.local().restart_agent, session, "00") for _ in range(4)]
        failed = [error for error in (one.exception(60) for one in asked) if error]
    assert all(isinstance(error, Conflict) and not isinstance(error, AgentExited) for error in failed), failed
    until(lambda: state(site, session) == "exited", "its end")
    assert read(runs).count("x") == 1 + len(asked) - len(failed)
    assert len(failed) < 4
    assert len(pane_pids(site, session)) == 1


def test_a_workspace_may_be_called_anything(bare: Site) -> None:
    bare.root = os.path.join(bare.directory, 'it\'s #{pane_id} $HOME; "x" %1')
    bare.env["MAS_WORKSPACE_ROOT"] = bare.root
    bare.mas("init", bare.root)
    session = bare.start(*ASLEEP)
    (before,) = pane_pids(bare, session)
    bare.mas("restart-agent", "--force", "00")
    until(lambda: state(bare, session) == "unknown", "it runs")
    assert pane_pids(bare, session) != [before]


def test_the_api_restarts_an_agent(served: Served) -> None:
    session = served.site.start("--team", "solo", "--command", "true")
    until(lambda: state(served.site, session) == "exited", "its end")
    path = f"/sessions/{session}/agents/00/restart"
    answer = served.client().post(path)
    assert (answer.status_code, answer.json()["agent"]["id"]) == (200, "00")
    assert served.client().post(path, json={"force": True}).status_code == 200
    assert served.client().post(path, json={"force": 1}).status_code == 422
    assert served.client().post(f"/sessions/{session}/agents/07/restart").status_code == 404
    token = served.site.mas("token", "--session", session, "--agent", "00").stdout.strip()
    assert served.client(token).post(path).status_code == 403


# By policy.


def test_an_agent_that_failed_runs_again_by_itself_and_goes_on(site: Site) -> None:
    session = demo(site, restart="on-failure")
    say(site, session, "remember this")
    until(lambda: "kept in inbox.md" in screen(site, session), "the message")
    (launcher,) = pane_pids(site, session)
    say(site, session, "/die 3")
    until(lambda: len(events(site, session, "start")) == 2, "the next run")
    until(lambda: "(demo) resumed" in screen(site, session), "the conversation")
    until(lambda: state(site, session) == "idle", "the agent")
    assert pane_pids(site, session) == [launcher]
    assert (agent(site, session)["restarts"], agent(site, session)["exitStatus"]) == (1, None)
    assert "restarted 1 time" in site.mas("show", session).stdout
    assert [event.get("reason") for event in events(site, session, "exit")] == ["exit status 3; starts again in 0.5 s"]
    say(site, session, "/quit")
    until(lambda: agent(site, session)["exitStatus"] == 0, "it ended well, and stays so")
    assert len(events(site, session, "start")) == 2


def test_an_agent_that_fails_again_and_again_stays_dead_and_says_so(site: Site) -> None:
    session = start_body(
        site, {"team": "solo", "restart": "on-failure", "restartLimit": 2}, "--command", "sh -c 'exit 3'"
    )
    until(lambda: agent(site, session)["exitStatus"] == 3, "its last end")
    found = agent(site, session)
    assert (found["state"], found["stateText"]) == (
        "exited",
        "exit status 3; not started again: its restart limit is reached",
    )
    assert found["restarts"] == 2
    assert "not started again" in screen(site, session)
    assert "is reached, restarted 2 times" in site.mas("show", session).stdout
    assert [event.get("restarts", 0) for event in events(site, session, "start")] == [0, 1, 2]
    site.mas("restart-agent", session, "00")
    until(lambda: len(events(site, session, "start")) > 3, "it counts from the start again")


def test_an_agent_that_waits_to_be_started_again_can_be_restarted_at_once(site: Site) -> None:
    body = {"team": "solo", "restart": "always", "restartLimit": 1000}
    session = start_body(site, body, "--command", "sh -c 'exit 3'")
    until(
        lambda: events(site, session, "exit")[-1:] and "in 4 s" in events(site, session, "exit")[-1]["reason"], "ends"
    )
    (launcher,) = pane_pids(site, session)
    site.mas("restart-agent", "00")
    assert living([launcher]) == []

    def shortest_pauses() -> int:
        return sum("in 0.5 s" in event["reason"] for event in events(site, session, "exit"))

    until(lambda: shortest_pauses() == 2, "it counts from the start again")


def test_an_agent_of_its_own_policy_runs_again_however_it_ended(site: Site) -> None:
    agents = {
        "metaManager": {"command": "sh -c 'echo x >>runs; exec true'", "restart": "always", "restartLimit": 1},
        "units": [{"name": "other", "manager": {"command": "false"}}],
    }
    session = start_body(site, {"agents": agents, "restart": "never"})
    until(lambda: agent(site, session)["exitStatus"] == 0, "its end")
    assert read(site.session(session, "unit", "00", "runs")) == "x\nx\n"
    other = site.json("show", session)["agents"][1]
    assert (other["stateText"], other["restarts"]) == ("exit status 1", 0)


@pytest.mark.parametrize("when", ["while it runs", "in the pause"])
def test_a_stopped_session_is_not_started_again_by_its_launchers(site: Site, when: str) -> None:
    script = "exit 3" if when == "in the pause" else 'trap "exit 3" HUP TERM; echo up; while :; do sleep 0.1; done'
    session = start_body(
        site, {"team": "solo", "restart": "always", "restartLimit": 1000}, "--command", f"sh -c '{script}'"
    )
    if when == "in the pause":
        until(lambda: len(events(site, session, "exit")) > 2, "several ends")
    else:
        until(lambda: "up" in screen(site, session), "it runs")
    launchers = pane_pids(site, session)
    site.mas("stop", session)
    assert living(launchers) == []
    count = len(events(site, session, "start"))
    restored = site.json("restore", session)
    assert restored["agents"][0]["restarts"] == 0
    until(lambda: len(events(site, session, "start")) > count, "it runs again")


def test_a_policy_is_kept_in_the_configuration_and_in_team_files(site: Site) -> None:
    write(
        'restart = "on-failure"\nrestart_limit = 5\n[[units]]\nname = "code"\n'
        '[[units.agents]]\nrestart = "always"\nrestart_limit = 7\ncommand = "sleep 1000"\n'
        '[[units.agents]]\ncommand = "sleep 1000"\n',
        site.path("templates", "teams", "mine.toml"),
    )
    session = site.start("--team", "mine")
    config = json.loads(read(site.session(session, "config.json")))
    assert (config["restart"], config["restartLimit"]) == ("on-failure", 5)
    first = config["agents"]["units"][0]["manager"]
    assert (first["restart"], first["restartLimit"]) == ("always", 7)
    plans = [read_plan(site.session(session, ".mas", "launch", name)) for name in ("10", "11")]
    assert [(plan.restart, plan.restart_limit) for plan in plans] == [("always", 7), ("on-failure", 5)]
    printed = site.mas("teams", "mine").stdout
    assert 'restart = "on-failure"\nrestart_limit = 5\n' in printed
    write(printed, site.path("templates", "teams", "again.toml"))
    again = {team["name"]: team for team in site.json("teams")["teams"]}
    assert again["again"]["units"] == again["mine"]["units"]
    assert (again["again"]["restart"], again["again"]["restartLimit"]) == ("on-failure", 5)
    for wrong in ({"restart": "sometimes"}, {"restartLimit": -1}, {"restartLimit": True}, {"restartLimit": "3"}):
        assert site.mas("start", "--config", "-", input=json.dumps(wrong), code=2).stdout == ""
