"""Stats and doctor: what the workspace takes of the machine, and whether the machine has what MAS needs."""

from __future__ import annotations

import os
import shutil
import subprocess

from tests.e2e.standin import ASLEEP, start_unruly, write
from tests.site import Site, until


def test_stats_count_sessions_agents_processes_and_disk(site: Site) -> None:
    busy = start_unruly(site, CHILDREN="plain,daemon")
    stopped, archived, deleted = (site.start(*ASLEEP) for _ in range(3))
    write("x" * 200_000, site.session(busy, "unit", "00", "large"))
    site.mas("stop", stopped, archived, deleted)
    site.mas("archive", archived)
    site.mas("delete", deleted, "--yes")
    found = site.json("stats")
    assert {key: found[key] for key in ("active", "stopped", "error", "archived", "deleted", "liveAgents")} == {
        "active": 1, "stopped": 1, "error": 0, "archived": 1, "deleted": 1, "liveAgents": 1,
    }  # fmt: skip
    sessions = {session["sessionId"]: session for session in found["sessions"]}
    assert set(sessions) == {busy, stopped}
    assert sessions[busy]["disk"] > sessions[stopped]["disk"] + 200_000
    assert (sessions[busy]["liveAgents"], sessions[busy]["agents"]) == (1, 1)
    # The launcher, the agent and its two children.
    assert sessions[busy]["processes"] == 4
    assert (sessions[stopped]["liveAgents"], sessions[stopped]["processes"]) == (0, 0)
    assert [session["sessionId"] for session in site.json("stats", stopped)["sessions"]] == [stopped]
    assert "1 active" in site.mas("stats").stdout


def check(site: Site, name: str, **options: object) -> dict[str, object]:
    checks = site.json("doctor", code=None, **options)["checks"]
    return next(found for found in checks if found["name"] == name)


def test_a_healthy_workspace_passes_at_once_and_later(site: Site) -> None:
    assert site.json("doctor")["ok"] is True
    site.start(*ASLEEP)
    found = site.json("doctor")
    assert found["ok"] is True
    assert {"python", "tmux", "workspace", "disk", "registry", "provider demo", "provider shell"} <= {
        check["name"] for check in found["checks"]
    }
    assert "failed" not in site.mas("doctor").stdout


def test_a_tmux_server_that_would_end_with_the_last_look_is_warned_of(site: Site) -> None:
    site.start(*ASLEEP)
    # Somebody looks on, or the server would end at once.
    argv = ["tmux", "-S", site.user_socket, "-C", "attach-session"]
    with subprocess.Popen(argv, env=site.env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL):
        until(lambda: site.tmux("list-clients"), "the client")
        site.tmux("set-option", "-s", "exit-unattached", "on")
        found = check(site, "exit-unattached")
    assert found["ok"] is False
    assert "exit-unattached off" in str(found["hint"])


def test_agents_of_a_workspace_that_was_removed_are_named(site: Site) -> None:
    """Those of an earlier version, whose launchers do not notice."""
    directory = site.session("0123abcd-0123-4123-8123-0123456789ab", "unit", "00")
    os.makedirs(directory)
    env = {**site.env, "MAS_PANE": "0123abcd-0123-4123-8123-0123456789ab/00"}
    with subprocess.Popen(["sleep", "1000"], cwd=directory, env=env) as agent:
        try:
            shutil.rmtree(site.root)
            site.mas("init", site.root, cwd=site.directory)
            found = check(site, "removed workspace")
            assert (found["ok"], found["hint"]) == (False, f"kill {agent.pid}")
        finally:
            agent.kill()
    assert "removed workspace" not in site.mas("doctor").stdout


def test_what_is_wrong_is_named_with_the_next_command(site: Site) -> None:
    session = site.start(*ASLEEP)
    os.unlink(site.session(session, ".session"))
    assert check(site, "registry")["hint"] == "mas repair"
    done = site.mas("doctor", code=1)
    assert "mas repair" in done.stdout
    site.mas("repair")
    site.mas("doctor")
    os.chmod(site.path("sessions"), 0o777)
    assert check(site, "mode of sessions")["ok"] is False
    os.chmod(site.path("sessions"), 0o755)


def test_a_missing_tmux_is_reported_and_starting_is_refused_with_its_own_code(site: Site) -> None:
    bare_path = os.path.join(site.directory, "bin")
    os.makedirs(bare_path)
    env = {"PATH": bare_path}
    assert check(site, "tmux", env=env)["ok"] is False
    done = site.mas("start", "--team", "solo", "--command", "/bin/sleep 1000", code=7, env=env)
    assert "tmux" in done.stderr
    assert [name for name in os.listdir(site.path("sessions")) if not name.startswith(".")] == []


def test_a_provider_whose_program_is_missing_is_named(site: Site) -> None:
    write(
        'provider = { id = "absent" }\n[launch]\nargv = ["no-such-program"]\n',
        site.path("providers", "absent.toml"),
    )
    assert "no-such-program" in str(check(site, "provider absent")["text"])
    assert site.json("doctor")["ok"] is True
    assert site.json("doctor", code=1, env={"MAS_PROVIDER": "absent"})["ok"] is False
    assert "no-such-program" in site.mas("start", "--provider", "absent", code=7).stderr
