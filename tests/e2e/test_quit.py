"""Quit: programs end by their own keys where their provider names some; no key goes where it could do harm."""

from __future__ import annotations

import json
import os
import time

import pytest

from tests.e2e.standin import agents_of, living, pane_pids, read, start_body, state_of, write
from tests.site import AGENTS, Site, until

_TIMEOUT = 6.0


def start_savers(site: Site, team: str = "solo", timeout: float = 60.0, state: str = "idle", **env: str) -> str:
    """A session of programs that save on Ctrl-Q, each in `state`."""
    os.makedirs(site.path("providers"), exist_ok=True)
    program = json.dumps(os.path.join(AGENTS, "saver.py"))
    write(
        f'provider = {{ id = "saver" }}\n[stop]\ngraceful = ["C-q"]\ntimeout = {timeout}\n'
        f'[launch]\nargv = ["{{python}}", {program}]\n[status]\nsources = ["osc7501"]\n',
        site.path("providers", "saver.toml"),
    )
    session = start_body(site, {"team": team, "env": env}, "--provider", "saver")
    local = site.local()
    agents = agents_of(site, session)
    until(lambda: {state_of(local, session, agent) for agent in agents} == {state}, f"all agents are {state}")
    return session


def work_of(site: Site, session: str, name: str, agent: str = "00") -> str | None:
    path = site.session(session, "unit", agent, name)
    return read(path) if os.path.exists(path) else None


def ending(site: Site, session: str, agent: str = "00") -> dict[str, object]:
    """How the agent ended."""
    lines = read(site.session(session, "logs", f"agent-{agent}.events.jsonl")).splitlines()
    (end,) = (event for event in map(json.loads, lines) if event["event"] == "exit")
    assert isinstance(end, dict)
    return end


def test_a_program_saves_on_its_own_quit_key_when_its_session_is_stopped(site: Site) -> None:
    session = start_savers(site, "pair")
    launchers = pane_pids(site, session)
    began = time.monotonic()
    site.mas("stop", session)
    assert time.monotonic() - began < 60.0, "a program that ends at once is not waited for"
    for agent in ("21", "23"):
        assert work_of(site, session, "saved", agent) == "all of it"
        assert ending(site, session, agent)["status"] == 0
    assert living(launchers) == []
    assert site.four_places(session) == {"stopped"}


def test_a_program_saves_when_its_session_is_deleted(site: Site) -> None:
    session = start_savers(site)
    site.mas("delete", session, "--yes")
    site.mas("undelete", session)
    assert work_of(site, session, "saved") == "all of it"


def test_a_program_saves_before_it_is_restarted_by_force_and_then_runs_again(site: Site) -> None:
    session = start_savers(site)
    site.mas("restart-agent", "--force", session, "00")
    assert work_of(site, session, "saved") == "all of it"
    local = site.local()
    until(lambda: state_of(local, session, "00") == "idle", "the agent runs again")


def test_a_program_that_asks_for_a_permission_gets_no_key(site: Site) -> None:
    session = start_savers(site, state="blocked", ASKING="1")
    began = time.monotonic()
    site.mas("stop", session)
    assert time.monotonic() - began < 60.0
    assert work_of(site, session, "approved") is None
    assert work_of(site, session, "keys") is None
    assert ending(site, session)["status"] != 0


def test_another_program_on_the_agent_s_terminal_gets_no_key(site: Site) -> None:
    session = start_savers(site, state="working", FOREIGN="1")
    until(lambda: work_of(site, session, "foreign") == "", "the other program has the terminal")
    site.mas("stop", session)
    assert work_of(site, session, "foreign") == ""
    assert work_of(site, session, "keys") is None


def test_programs_that_do_not_end_are_ended_when_their_time_is_over_all_at_once(site: Site) -> None:
    session = start_savers(site, "dev", timeout=_TIMEOUT, DEAF="1")
    agents = agents_of(site, session)
    began = time.monotonic()
    site.mas("stop", session)
    took = time.monotonic() - began
    assert _TIMEOUT <= took < _TIMEOUT * len(agents)
    for agent in agents:
        assert work_of(site, session, "keys", agent) == "\x11"
        assert ending(site, session, agent)["status"] != 0
    assert site.four_places(session) == {"stopped"}


def test_a_halted_program_is_woken_to_save(site: Site) -> None:
    session = start_savers(site)
    lines = read(site.session(session, "logs", "agent-00.events.jsonl")).splitlines()
    os.kill(json.loads(lines[0])["pid"], 19)
    site.mas("stop", session)
    assert work_of(site, session, "saved") == "all of it"


def test_nothing_is_typed_when_tmux_dies(site: Site) -> None:
    session = start_savers(site)
    site.tmux("kill-server")
    assert site.statuses() == {session: "stopped"}
    assert work_of(site, session, "keys") is None


@pytest.mark.parametrize("provider", ["demo"])
def test_a_builtin_program_ends_by_its_own_keys(site: Site, provider: str) -> None:
    session = site.start("--team", "solo", "--provider", provider)
    local = site.local()
    until(lambda: state_of(local, session, "00") == "idle", "the agent is idle")
    site.mas("stop", session)
    assert ending(site, session)["status"] == 0
