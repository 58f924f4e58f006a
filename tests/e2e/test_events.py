"""Events: whatever process does something, the workspace's events report it, once and in order."""

from __future__ import annotations

import os
import shutil
import signal
from typing import Any

from mas.model.event import Event
from mas.model.ids import SessionId
from tests.e2e.standin import ASLEEP, pane_pids, pids, start_unruly, write
from tests.faults.driver import Cut, Driver, Fault
from tests.site import Site, until

STATE = ("state", "stateText", "exitStatus")


def told(site: Site, kind: str, session: str | None = None) -> list[Event]:
    """All events of a kind, perhaps of one session only."""
    page = site.local().events("0", 10_000)
    assert not page.gap
    return [event for event in page.events if event.event == kind and session in (None, event.session_id)]


def statuses(site: Site, session: str) -> list[str]:
    return [event.details["status"] for event in told(site, "session", session)]


def warnings(site: Site) -> list[tuple[str | None, str]]:
    return [(event.session_id, event.details["text"]) for event in told(site, "warning")]


def states(site: Site, session: str, agent: str = "00") -> list[dict[str, Any]]:
    """What was reported about an agent's state, without how it is known."""
    found = [event.details for event in told(site, "agent", session) if event.agent == agent]
    return [{key: details[key] for key in STATE if key in details} for details in found]


def ended(site: Site, session: str) -> dict[str, Any]:
    """The state an agent ended in, once it has."""
    until(lambda: any(state["state"] == "exited" for state in states(site, session)), "the end of the agent")
    first, last = states(site, session)
    assert first == {"state": "unknown", "stateText": "running; reports no state"}
    return last


def test_every_verb_is_an_event_of_the_session(site: Site) -> None:
    before = site.local().events()
    assert before.events == ()
    session = site.start(*ASLEEP)
    copy = site.json("clone", session)["sessionId"]
    site.mas("stop", session)
    site.mas("stop", session)
    site.mas("restore", session)
    site.mas("stop", session)
    site.mas("archive", session)
    site.mas("unarchive", session)
    site.mas("delete", session, "--yes")
    site.mas("undelete", session)
    site.mas("list")
    assert statuses(site, session) == [
        *("active", "stopped", "active", "stopped"),
        *("archived", "stopped", "deleted", "stopped"),
    ]
    assert statuses(site, copy) == ["stopped"]
    assert warnings(site) == []
    assert [event.id for event in site.local().events(before.last, 10_000).events] == [
        event.id for event in site.local().events("0", 10_000).events
    ]


def test_each_agent_of_a_team_has_its_own_events(site: Site) -> None:
    session = site.start("--command", "sleep 1000")
    agents = [agent["id"] for agent in site.json("show", session)["agents"]]
    assert len(agents) == 13
    until(lambda: len(told(site, "agent", session)) == 13, "all agents")
    assert sorted(str(event.agent) for event in told(site, "agent", session)) == agents
    site.mas("stop", session)
    for agent in agents:
        assert [state["state"] for state in states(site, session, agent)] == ["unknown", "exited"]
    # It is stopped when its agents have ended, not before.
    events = [event for event in site.local().events("0", 10_000).events if event.session_id == session]
    assert events[-1].details == {"status": "stopped"}


def test_an_agent_s_state_has_the_same_words_in_events_as_in_show(site: Site) -> None:
    session = site.start("--team", "solo", "--command", "sh -c 'read line; exit 3'")
    until(lambda: states(site, session), "its start")
    (agent,) = site.json("show", session)["agents"]
    (first,) = states(site, session)
    assert (first["state"], first["stateText"]) == (agent["state"], agent["stateText"])
    site.tmux("send-keys", "-t", agent["pane"], "Enter")
    last = ended(site, session)
    until(lambda: site.json("show", session)["agents"][0]["state"] == "exited", "the end of its pane")
    (agent,) = site.json("show", session)["agents"]
    assert last == {key: agent[key] for key in ("state", "stateText", "exitStatus")}
    assert last["exitStatus"] == 3


def test_an_agent_that_was_killed_is_reported_with_its_signal(site: Site) -> None:
    session = start_unruly(site)
    os.kill(pids(site, session)["agent"], signal.SIGKILL)
    assert ended(site, session) == {"state": "exited", "stateText": "signal 9", "exitStatus": 137}


def test_an_agent_that_did_not_start_is_reported_with_the_reason(site: Site) -> None:
    program = write("#!/no/such/interpreter\n", site.directory, "program")
    os.chmod(program, 0o755)
    session = site.start("--team", "solo", "--command", program)
    until(lambda: states(site, session), "its end")
    (state,) = states(site, session)
    assert (state["state"], state["exitStatus"]) == ("exited", 127)
    assert state["stateText"].startswith(f"cannot run {program}: ")


def test_a_session_whose_tmux_died_is_reported_once(site: Site) -> None:
    session = site.start(*ASLEEP)
    until(lambda: states(site, session), "the agent's start")
    site.tmux("kill-server")
    for _ in range(2):
        site.mas("list")
    assert statuses(site, session) == ["active", "stopped"]
    assert warnings(site) == [(session, f"Session {session} was lost: its tmux session is gone")]
    until(lambda: [state["state"] for state in states(site, session)] == ["unknown", "exited"], "the agent's end")


def test_a_damaged_session_is_reported_once(site: Site) -> None:
    session = site.start(*ASLEEP)
    site.mas("stop", session)
    write("{", site.session(session, "metadata.json"))
    for _ in range(2):
        assert "damaged" in site.mas("list").stderr
    assert statuses(site, session) == ["active", "stopped", "error"]
    assert warnings(site) == [(session, f"Session {session} is damaged: mas repair")]
    site.mas("repair")
    assert statuses(site, session)[-1] == "stopped"
    assert len(warnings(site)) == 1


def test_a_removed_directory_is_reported_once(site: Site) -> None:
    session = site.start(*ASLEEP)
    site.mas("stop", session)
    shutil.rmtree(site.session(session))
    for _ in range(2):
        site.mas("list")
    assert statuses(site, session) == ["active", "stopped", "deleted"]
    assert warnings(site) == [(session, f"The directory of session {session} is gone")]


def test_a_damaged_registry_is_reported_once_and_its_sessions_cause_no_events(site: Site) -> None:
    session = site.start(*ASLEEP)
    write("{", site.path("sessions", ".sessions.index"))
    for _ in range(2):
        site.mas("list")
    assert statuses(site, session) == ["active"]
    ((nobody, text),) = warnings(site)
    assert nobody is None
    assert ".sessions.index.corrupt-" in text


def test_asking_for_the_old_mode_is_reported(site: Site) -> None:
    session = site.start(*ASLEEP, env={"MAS_SESSION_MODE": "legacy"})
    ((about, text),) = warnings(site)
    assert about == session
    assert text.startswith("Legacy session mode has been deprecated.\n")


def test_a_verb_that_was_killed_is_reported_when_it_is_finished(site: Site) -> None:
    first, session = (SessionId(site.start(*ASLEEP)) for _ in range(2))
    with Driver(site) as driver:
        steps = driver.call("stop", first, fault=Fault(Cut.WATCH, 1)).steps
        saving = next(number for number, step in enumerate(steps, 1) if "metadata.json" in step)
        assert driver.call("stop", session, fault=Fault(Cut.KILL, saving)).killed
    assert statuses(site, session) == ["active"]
    for _ in range(2):
        site.mas("list")
    assert statuses(site, session)[:2] == ["active", "stopped"]
    assert warnings(site) == [(session, f"Finished an interrupted stop of {session}")]


def test_reading_events_changes_nothing(site: Site) -> None:
    page = site.local().events()
    assert (page.events, page.last, page.gap) == ((), "0", False)
    assert not os.path.exists(site.path("sessions", ".mas"))


def test_no_event_of_a_workspace_is_seen_in_another(site: Site) -> None:
    other = Site(site.directory)
    other.root = os.path.join(site.directory, "other")
    other.env = {**site.env, "MAS_WORKSPACE_ROOT": other.root}
    other.mas("init", other.root, "--provider", "shell")
    session = site.start(*ASLEEP)
    assert other.local().events("0").events == ()
    assert statuses(site, session) == ["active"]


def test_a_verb_does_its_work_where_events_cannot_be_written(site: Site) -> None:
    os.makedirs(site.path("sessions", ".mas"), 0o700)
    write("in the way", site.path("sessions", ".mas", "events"))
    session = site.start(*ASLEEP)
    assert len(pane_pids(site, session)) == 1
    site.mas("stop", session)
    assert site.four_places(session) == {"stopped"}
