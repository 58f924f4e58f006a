"""Restore: a stopped session comes back in the same directory with the same team."""

from __future__ import annotations

import json
import os
import re

from tests.e2e.standin import (
    ASLEEP,
    command,
    living,
    pane_pids,
    pids,
    read,
    start_body,
    start_unruly,
    state_of,
    tmux_name,
    tree,
    write,
)
from tests.site import Site, until

TEAM = {
    "name": "mixed",
    "env": {"COLOUR": "blue; $HOME"},
    "agents": {
        "metaManager": {"command": "sh -c 'echo meta $COLOUR; exec sleep 1000'", "prompt": "lead"},
        "units": [
            {"name": "ops", "manager": {"id": "47", "provider": "shell"}, "workers": [{"command": "cat", "model": "m"}]}
        ],
    },
}


def team(site: Site, session: str) -> list[tuple[str, ...]]:
    agents = site.json("show", session)["agents"]
    return [tuple(agent[key] for key in ("id", "unit", "role", "provider", "model")) for agent in agents]


def test_the_same_directory_and_team_come_back_in_new_panes(site: Site) -> None:
    session = start_body(site, TEAM)
    write("work", site.session(session, "unit", "47", "note.md"))
    before, config = site.json("show", session), read(site.session(session, "config.json"))
    shape = (
        "list-panes",
        "-s",
        "-t",
        f"={tmux_name(session)}:",
        "-F",
        "#{window_name} #{@mas_agent} #{pane_start_path}",
    )
    panes, old = site.tmux(*shape), pane_pids(site, session)
    site.mas("stop", session)
    restored = site.json("restore", session)
    assert restored["status"] == "active"
    assert site.four_places(session) == {"active"}
    assert site.tmux(*shape) == panes
    after = site.json("show", session)
    for key in ("sessionId", "name", "createdAt", "workingDir", "unitDirs", "logs", "configFile"):
        assert after[key] == before[key]
    assert after["startedAt"] > before["startedAt"]
    assert [agent["provider"] for agent in after["agents"]] == [agent["provider"] for agent in before["agents"]]
    assert living(old) == []
    assert len(living(pane_pids(site, session))) == len(old) == 3
    assert read(site.session(session, "config.json")) == config
    assert read(site.session(session, "unit", "47", "note.md")) == "work"
    until(lambda: "meta blue; $HOME" in site.mas("output", session, "00").stdout, "the command and its environment")


def test_a_later_change_of_the_workspaces_provider_does_not_change_the_session(site: Site) -> None:
    session = site.start("--team", "pair")
    site.mas("stop", session)
    before = team(site, session)
    config = json.loads(read(site.path("config.json")))
    write(json.dumps({**config, "provider": "demo"}), site.path("config.json"))
    site.mas("restore", session)
    assert team(site, session) == before
    assert {agent[3] for agent in before} == {"shell"}


def test_an_active_session_is_refused_with_the_next_command(site: Site) -> None:
    session = site.start(*ASLEEP)
    done = site.mas("restore", session, code=4)
    assert f"mas attach {session[:8]}" in done.stderr
    assert site.four_places(session) == {"active"}
    assert site.tmux_sessions() == {tmux_name(session)}


def test_all_sessions_come_back_after_the_death_of_the_server(site: Site) -> None:
    sessions = {site.start(*ASLEEP) for _ in range(3)}
    site.tmux("kill-server")
    assert set(site.statuses().values()) == {"stopped"}
    restored = site.json("restore", "--all")["sessions"]
    assert {session["sessionId"] for session in restored} == sessions
    assert set(site.statuses().values()) == {"active"}
    assert site.tmux_sessions() == {tmux_name(session) for session in sessions}


def test_restore_all_restores_only_lost_sessions_and_names_the_stopped_ones(site: Site) -> None:
    stopped, *lost = (site.start(*ASLEEP) for _ in range(3))
    site.mas("stop", stopped)
    site.tmux("kill-server")
    listed = {info["sessionId"]: info for info in site.json("list")["sessions"]}
    assert {session for session, info in listed.items() if info["lost"]} == set(lost)
    assert listed[lost[0]]["reason"] == "its tmux session was gone"
    assert listed[stopped]["reason"] is None
    assert all(info["stoppedAt"] for info in listed.values())
    assert {info["sessionId"] for info in site.json("list", "--status", "lost")["sessions"]} == set(lost)
    assert len(site.json("list", "--status", "stopped")["sessions"]) == 3
    assert "lost" in next(line for line in site.mas("list").stdout.splitlines() if lost[0][:8] in line)
    assert f"lost since {listed[lost[0]]['stoppedAt'][:10]}" in site.mas("show", lost[0]).stdout
    assert "stopped since" in site.mas("show", stopped).stdout

    done = site.mas("restore", "--all")
    assert set(done.stdout.split()) == set(lost)
    assert "1 session was stopped on purpose; those too: mas restore --all --stopped" in done.stderr
    assert site.statuses() == dict.fromkeys(lost, "active") | {stopped: "stopped"}
    assert (site.json("show", lost[0])["lost"], site.json("show", lost[0])["stoppedAt"]) == (False, None)
    assert site.mas("restore", "--all").stdout == ""
    assert site.mas("restore", "--all", "--stopped").stdout.split() == [stopped]
    assert "mas restore --all --stopped" in site.mas("restore", stopped, "--stopped", code=2).stderr


def test_a_restore_names_the_agents_whose_work_was_cut_off(site: Site) -> None:
    session = site.start("--team", "dev", "--provider", "demo")
    site.mas("wait", "--session", session)
    site.mas("send", "--session", session, "22", "/work 1000")
    site.mas("send", "--session", session, "23", "/ask may I?")
    local = site.local()
    until(lambda: [state_of(local, session, agent) for agent in ("22", "23")] == ["working", "blocked"], "both at it")
    site.tmux("kill-server")
    said = site.mas("restore", "--all").stderr.splitlines()
    assert "These agents were working when the session was lost: 22" in said
    assert "Agent 23 was waiting for a decision when the session was lost: permission: may I?" in said
    site.mas("stop", session)
    assert "was lost" not in site.mas("restore", session).stderr


def test_a_listing_that_died_before_it_looked_again_ends_no_session_that_lives(site: Site) -> None:
    session = site.start(*ASLEEP)
    # Neither done nor undone: as if the process had been killed there.
    with site.world().intents.begin(session, "lost"):
        pass
    assert os.listdir(site.path("sessions", ".mas", "intents")) == [session]
    assert site.statuses() == {session: "active"}
    assert os.listdir(site.path("sessions", ".mas", "intents")) == []
    assert state_of(site.local(), session, "00") != "exited"


def test_a_lost_session_that_is_stopped_by_hand_does_not_come_back_with_the_lost(site: Site) -> None:
    session = site.start(*ASLEEP)
    site.tmux("kill-server")
    since = site.json("show", session)["stoppedAt"]
    site.mas("stop", session)
    shown = site.json("show", session)
    assert (shown["lost"], shown["reason"], shown["stoppedAt"]) == (False, None, since)
    assert site.mas("restore", "--all").stdout == ""


def test_a_session_of_before_it_was_kept_why_they_ended_was_stopped(site: Site) -> None:
    session = site.start(*ASLEEP)
    site.mas("stop", session)
    for path in (site.session(session, "metadata.json"), site.path("sessions", ".sessions.index")):
        old = re.sub(r',\s*"(stoppedAt|lost)": ?("[^"]*"|true|false)', "", read(path))
        assert "stoppedAt" not in old
        write(old, path)
    (info,) = site.json("list")["sessions"]
    assert (info["status"], info["lost"], info["stoppedAt"]) == ("stopped", False, None)
    assert site.mas("restore", "--all").stdout == ""
    assert site.mas("restore", "--all", "--stopped").stdout.split() == [session]


def test_what_outlived_its_tmux_does_not_work_beside_the_new_agents(site: Site) -> None:
    session = start_unruly(site, CHILDREN="setsid", IGNORE_SIGNALS="1")
    old = pids(site, session)
    os.unlink(site.session(session, "unit", "00", "pids.json"))
    site.tmux("kill-server")
    site.mas("restore", session)
    assert living(old.values()) == []
    until(lambda: os.path.exists(site.session(session, "unit", "00", "pids.json")), "the new agent")
    assert living(pids(site, session).values())


def test_the_template_is_not_copied_over_the_sessions_own_files(site: Site) -> None:
    session = site.start(*ASLEEP)
    write("changed", site.session(session, "unit", "00", "ROLE.md"))
    os.unlink(site.session(session, "workflows", "33_communications_writer.md"))
    site.mas("stop", session)
    write("newer template", site.path("unit", "00", "ROLE.md"))
    before = tree(site.session(session, "unit")) | tree(site.session(session, "workflows"))
    site.mas("restore", session)
    assert tree(site.session(session, "unit")) | tree(site.session(session, "workflows")) == before


def test_lazy_units_are_filled_when_their_agent_starts_and_never_again(site: Site) -> None:
    session = site.start("--team", "pair", "--lazy-units", "--command", "sleep 1000")
    role = site.session(session, "unit", "21", "ROLE.md")
    until(lambda: os.path.exists(role), "the unit of agent 21")
    until(lambda: os.path.exists(site.session(session, "unit", "23", "ROLE.md")), "the unit of agent 23")
    assert sorted(os.listdir(site.session(session, "unit"))) == ["21", "23"]
    assert read(role) == read(site.path("unit", "21", "ROLE.md"))
    write("mine", role)
    site.mas("stop", session)
    site.mas("restore", session)
    assert read(role) == "mine"
    until(
        lambda: (
            site.tmux("list-panes", "-s", "-t", f"={tmux_name(session)}:", "-F", "#{pane_current_path}").splitlines()
            == [site.session(session, "unit", agent) for agent in ("21", "23")]
        ),
        "agents in their units",
    )


def test_a_program_that_has_gone_is_named_and_the_session_stays_stopped(site: Site) -> None:
    program = write("#!/bin/sh\nexec sleep 1000\n", site.directory, "bin", "helper")
    os.chmod(program, 0o755)
    session = site.start("--team", "solo", "--command", program)
    site.mas("stop", session)
    os.unlink(program)
    assert program in site.mas("restore", session, code=7).stderr
    assert site.four_places(session) == {"stopped"}
    assert site.tmux_sessions() == set()


def test_a_damaged_configuration_is_reported_and_nothing_is_opened(site: Site) -> None:
    session = start_body(site, {"team": "solo"}, "--command", command("unruly"))
    site.mas("stop", session)
    write("{", site.session(session, "config.json"))
    assert "mas repair" in site.mas("restore", session, code=5).stderr
    assert site.tmux_sessions() == set()
    assert site.four_places(session) == {"stopped"}
