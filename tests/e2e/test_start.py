"""Start: the directory, the modes, the tmux session and the environment of every agent."""

from __future__ import annotations

import json
import os
import re
import stat

import pytest

from tests.site import Site, until

UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def mode(path: str) -> str:
    return f"{stat.S_IMODE(os.stat(path).st_mode):o}"


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_every_path_of_a_session_has_its_mode_under_any_umask(site: Site, umask: int) -> None:
    session = site.start(umask=umask)
    assert UUID4.fullmatch(session)
    assert mode(site.path("sessions")) == "755"
    assert {name: mode(site.session(session, name)) for name in ("", ".session", "metadata.json", "config.json")} == {
        "": "700",
        ".session": "600",
        "metadata.json": "600",
        "config.json": "600",
    }
    assert mode(site.session(session, ".session.lock")) == "600"
    assert {mode(site.session(session, name)) for name in ("unit", "workflows", "logs")} == {"755"}


def test_the_default_team_is_thirteen_agents_in_four_windows(site: Site) -> None:
    session = site.start("--provider", "shell")
    name = f"mas-{session[:8]}"
    panes = site.tmux("list-panes", "-s", "-t", name, "-F", "#{window_name} #{@mas_agent}").splitlines()
    assert panes == [
        "meta 00",
        *(f"design {agent}" for agent in (10, 11, 12, 13)),
        *(f"development {agent}" for agent in (20, 21, 22, 23)),
        *(f"business {agent}" for agent in (30, 31, 32, 33)),
    ]
    sizes = site.tmux("list-panes", "-s", "-t", name, "-F", "#{pane_width} #{pane_height}").splitlines()
    assert all(int(width) >= 100 and int(height) >= 30 for width, height in (line.split() for line in sizes))


def test_windows_start_in_the_session_and_agents_work_in_their_unit(site: Site) -> None:
    session = site.start("--team", "pair")
    where = site.session(session)

    def paths() -> list[str]:
        shape = "#{session_path}|#{pane_start_path}|#{pane_current_path}"
        return site.tmux("list-panes", "-s", "-t", f"mas-{session[:8]}", "-F", shape).splitlines()

    wanted = [f"{where}|{where}|{where}/unit/{agent}" for agent in (21, 23)]
    until(lambda: paths() == wanted, "agents in their units")


def test_every_agent_has_the_environment_of_its_session(site: Site) -> None:
    command = "sh -c 'env > env.txt; exec sleep 1000'"
    stale = {"MAS_DATA_DIR": "/old", "MAS_SESSION_MODE": "isolated"}
    session = site.start("--team", "solo", "--command", command, env=stale)
    file = site.session(session, "unit", "00", "env.txt")
    until(lambda: os.path.exists(file) and os.path.getsize(file), "the agent's environment")
    with open(file, encoding="utf-8") as lines:
        found = dict(line.rstrip("\n").split("=", 1) for line in lines if "=" in line)
    name = f"mas-{session[:8]}"
    assert {
        key: found.get(key)
        for key in (
            "MAS_WORKSPACE_ROOT", "MAS_SESSION_ID", "MAS_SESSION_DIR", "MAS_SESSION_NAME", "MAS_AGENT_ID",
            "UNIT_DIR", "WORKFLOWS_DIR", "SESSION_NAME", "MAS_DATA_DIR", "MAS_SESSION_MODE", "TMUX", "TMUX_PANE",
        )
    } == {
        "MAS_WORKSPACE_ROOT": site.root,
        "MAS_SESSION_ID": session,
        "MAS_SESSION_DIR": site.session(session),
        "MAS_SESSION_NAME": name,
        "MAS_AGENT_ID": "00",
        "UNIT_DIR": site.session(session, "unit"),
        "WORKFLOWS_DIR": site.session(session, "workflows"),
        "SESSION_NAME": name,
        "MAS_DATA_DIR": None,
        "MAS_SESSION_MODE": None,
        "TMUX": None,
        "TMUX_PANE": None,
    }  # fmt: skip


def test_a_new_session_is_active_in_all_four_places(site: Site) -> None:
    session = site.start()
    assert site.four_places(session) == {"active"}
    with open(site.session(session, "metadata.json"), encoding="utf-8") as file:
        metadata = json.load(file)
    assert metadata["sessionId"] == session
    assert metadata["sessionName"] == f"mas-{session[:8]}"
    assert metadata["workingDir"] == site.session(session)


def test_a_missing_program_is_named_at_once_and_nothing_is_made(site: Site) -> None:
    done = site.mas("start", "--command", "no-such-agent --flag", code=7)
    assert "no-such-agent" in done.stderr
    assert [name for name in os.listdir(site.path("sessions")) if UUID4.fullmatch(name)] == []
    assert site.tmux_sessions() == set()
