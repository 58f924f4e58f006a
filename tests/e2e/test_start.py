"""Start: the directory, the modes, the tmux session and the environment of every agent."""

from __future__ import annotations

import json
import os
import re
import stat

import pytest

from mas.model.ids import SessionId
from mas.model.run import Run
from mas.model.team import team_named
from mas.service.local import LocalMas
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


def test_the_session_file_means_the_same_to_a_shell_and_to_mas(site: Site) -> None:
    session = site.start("--name", "a name", "--team", "solo")
    script = '. "$1"; printf "%s\\n" "$SESSION_ID" "$TMUX_SESSION" "$STATUS" "$CREATED_AT" "$UNIT_DIR" "$WORKFLOWS_DIR"'
    found = site.run(["/bin/sh", "-c", script, "sh", site.session(session, ".session")]).stdout.splitlines()
    shown = site.json("show", session)
    assert found == [
        session,
        f"mas-{session[:8]}",
        "active",
        shown["createdAt"],
        site.session(session, "unit"),
        site.session(session, "workflows"),
    ]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", shown["createdAt"])
    assert {key: shown["sessionFile"][key] for key in ("SESSION_ID", "STATUS", "UNIT_DIR")} == {
        "SESSION_ID": session,
        "STATUS": "active",
        "UNIT_DIR": site.session(session, "unit"),
    }


def test_the_session_file_is_parsed_and_never_run(site: Site) -> None:
    session = site.start()
    with open(site.session(session, ".session"), "a", encoding="utf-8") as file:
        file.write(f"EXTRA=$(touch {site.directory}/x)\n")
    site.mas("show", session, code=None)
    site.mas("list")
    site.mas("repair")
    assert not os.path.exists(os.path.join(site.directory, "x"))
    assert site.statuses() == {session: "active"}


def test_a_session_writes_to_its_own_copies_and_never_to_the_templates(site: Site) -> None:
    os.symlink("ROLE.md", site.path("unit", "00", "alias.md"))
    os.link(site.path("unit", "00", "ROLE.md"), site.path("unit", "00", "twin.md"))
    os.chmod(site.path("unit", "00", "ROLE.md"), 0o444)
    first, second = site.start(), site.start()
    with open(site.path("unit", "00", "ROLE.md"), encoding="utf-8") as file:
        template = file.read()
    for name in ("ROLE.md", "alias.md", "twin.md"):
        with open(site.session(first, "unit", "00", name), "a", encoding="utf-8") as file:
            file.write("changed")
    for place in (site.path("unit"), site.session(second, "unit")):
        for name in ("ROLE.md", "alias.md", "twin.md"):
            with open(os.path.join(place, "00", name), encoding="utf-8") as file:
                assert file.read() == template
    shared = {os.stat(site.path("workflows", name)).st_ino for name in os.listdir(site.path("workflows"))}
    assert shared.isdisjoint(
        os.lstat(site.session(first, "workflows", name)).st_ino for name in os.listdir(site.path("workflows"))
    )


def test_the_registry_has_one_entry_and_the_journal_one_line(site: Site) -> None:
    session = site.start()
    with open(site.path("sessions", ".sessions.index"), encoding="utf-8") as file:
        index = json.load(file)
    assert index["version"] == "1.0"
    assert index["lastUpdated"].endswith("Z")
    (entry,) = index["sessions"]
    assert {key: entry[key] for key in ("sessionId", "tmuxSession", "status", "workingDir")} == {
        "sessionId": session,
        "tmuxSession": f"mas-{session[:8]}",
        "status": "active",
        "workingDir": site.session(session),
    }
    assert entry["createdAt"] <= entry["lastActivity"] <= index["lastUpdated"]
    with open(site.path("sessions", ".index"), encoding="utf-8") as file:
        (line,) = file.read().splitlines()
    assert line.split(":", 2)[:2] == [session, "active"]
    assert line.split(":", 2)[2].endswith("Z")


def test_a_taken_prefix_or_directory_means_another_id(site: Site) -> None:
    taken = site.start()
    foreign = "0ddba115-0000-4000-8000-000000000000"
    os.mkdir(site.session(foreign))
    on_tmux = "5ca1ab1e-0000-4000-8000-000000000000"
    site.tmux("new-session", "-d", "-s", f"mas-{on_tmux[:8]}")
    free = "f4ee0000-0000-4000-8000-000000000000"
    draws = iter([taken, f"{taken[:8]}-0000-4000-8000-000000000000", foreign, on_tmux, free])
    world = site.world()._replace(new_id=lambda: SessionId(next(draws)))
    started = LocalMas(world).start(Run(team=team_named("solo"), provider="shell"))
    assert started.session_id == free
    assert os.listdir(site.session(foreign)) == []
    assert not os.path.exists(site.session(on_tmux))
    assert site.tmux_sessions() == {f"mas-{session[:8]}" for session in (taken, on_tmux, free)}


def test_a_failure_at_any_step_leaves_nothing_behind(site: Site) -> None:
    os.rename(site.path("workflows"), site.path("aside"))
    assert "mas init" in site.mas("start", "--team", "solo", code=3).stderr
    os.rename(site.path("aside"), site.path("workflows"))
    # tmux cannot make its socket where a file is in the way.
    in_the_way = os.path.dirname(site.user_socket)
    with open(in_the_way, "w", encoding="utf-8"):
        site.mas("start", "--team", "solo", code=7)
    os.unlink(in_the_way)
    assert [name for name in os.listdir(site.path("sessions")) if UUID4.fullmatch(name)] == []
    assert site.json("list") == {"sessions": [], "total": 0, "warnings": []}
    assert site.json("list", "--status", "deleted")["total"] == 0
    assert site.mas("repair", "--dry-run").stdout == ""
    assert site.start() in site.statuses()
