"""What an agent has of the environment it was started from: a fixed few, and what its provider names."""

from __future__ import annotations

import os

from tests.e2e.standin import tmux_name
from tests.site import Site, until

PROVIDER = """
provider = { id = "teller" }
[launch]
argv     = ["sh", "-c", "env > env.txt; mv env.txt told.txt; exec sleep 1000"]
resume   = ["sh", "-c", "cat {role_file} > role.txt; mv role.txt told.txt; exec sleep 1000"]
env      = { OWN = "{state_dir}/x", PASSED_TOO = "own" }
env_pass = ["A_KEY", "PASSED_TOO"]
seed     = { "{state_dir}/deep/seed.json" = "seed.json" }
"""
SECRETS = {"A_SECRET": "s3cret", "SSH_AUTH_SOCK": "/tmp/agent", "DBUS_SESSION_BUS_ADDRESS": "unix:x", "A_KEY": "k3y"}
TEAM = '{"agents": {"metaManager": {"id": "00", "prompt": "Say «hello»."}}, "env": {"OF_THE_RUN": "1"}}'


def teller(site: Site) -> str:
    """A session of one agent that records its environment, started by a user with secrets."""
    os.makedirs(site.path("providers"))
    for name, text in (("teller.toml", PROVIDER), ("seed.json", '{"session": "{session_dir}"}')):
        with open(site.path("providers", name), "w", encoding="utf-8") as file:
            file.write(text)
    with open(site.path("run.json"), "w", encoding="utf-8") as file:
        file.write(TEAM)
    return site.start("--config", site.path("run.json"), "--provider", "teller", env=SECRETS | {"PASSED_TOO": "no"})


def told(site: Site, session: str) -> str:
    path = site.session(session, "unit", "00", "told.txt")
    until(lambda: os.path.exists(path), "what the agent tells")
    with open(path, encoding="utf-8") as file:
        return file.read()


def test_a_secret_does_not_reach_an_agent_and_what_its_provider_names_does(site: Site) -> None:
    session = teller(site)
    environment = dict(line.split("=", 1) for line in told(site, session).splitlines() if "=" in line)
    assert set(environment) & set(SECRETS) == {"A_KEY"}
    assert environment["A_KEY"] == "k3y"
    assert environment["OF_THE_RUN"] == "1"
    # What a provider's file says is so, whatever the environment says.
    assert environment["PASSED_TOO"] == "own"
    assert environment["OWN"] == site.session(session, ".mas", "agents", "00", "x")
    assert environment["MAS_AGENT_ID"] == "00"
    assert not [name for name in environment if name.startswith("TMUX")]
    # Of the one that reads them, tmux keeps none either.
    assert "s3cret" not in told(site, session)


def test_a_secret_of_the_user_who_started_tmux_does_not_reach_an_agent(site: Site) -> None:
    site.tmux("new-session", "-d", "-s", "mine", "sleep 1000", env={"A_SECRET": "s3cret"})
    environment = told(site, teller(site))
    assert "s3cret" not in environment


def test_an_agent_has_a_place_and_a_name_of_its_own_that_last(site: Site) -> None:
    session = teller(site)
    told(site, session)
    place = site.session(session, ".mas", "agents", "00")
    assert os.stat(place).st_mode & 0o777 == 0o700
    seed, uuid = os.path.join(place, "deep", "seed.json"), os.path.join(place, "uuid")
    for path in (seed, uuid):
        assert os.stat(path).st_mode & 0o777 == 0o600
    with open(seed, encoding="utf-8") as file:
        assert file.read() == f'{{"session": "{site.session(session)}"}}'
    with open(uuid, encoding="utf-8") as file:
        name = file.read()
    with open(seed, "w", encoding="utf-8") as file:
        file.write("the program's own by now")
    site.mas("stop", session)
    os.remove(site.session(session, "unit", "00", "told.txt"))
    site.mas("restore", session)
    with open(site.path("unit", "00", "ROLE.md"), encoding="utf-8") as file:
        assert told(site, session) == file.read()
    with open(uuid, encoding="utf-8") as file:
        assert file.read() == name
    with open(seed, encoding="utf-8") as file:
        assert file.read() == "the program's own by now"


def test_an_agent_that_cannot_resume_its_conversation_does_not_silently_start_a_new_one(site: Site) -> None:
    session = site.start("--team", "pair", "--provider", "shell")
    site.mas("stop", session)
    restored = site.json("restore", session)
    assert restored["warnings"] == ["Started fresh: 21, 23 (shell cannot resume a conversation)"]
    demo = site.start("--team", "solo", "--provider", "demo")
    site.mas("stop", demo)
    assert "Started fresh: 00 (no conversation was kept)" in site.mas("restore", demo).stderr
    with open(site.session(demo, "logs", "session.log"), encoding="utf-8") as file:
        assert "Started fresh: 00" in file.read()


def test_a_link_in_an_agents_place_is_not_written_through(site: Site) -> None:
    session = teller(site)
    told(site, session)
    site.mas("stop", session)
    deep = site.session(session, ".mas", "agents", "00", "deep")
    os.remove(os.path.join(deep, "seed.json"))
    os.rmdir(deep)
    elsewhere = os.path.join(site.directory, "elsewhere")
    os.mkdir(elsewhere)
    os.symlink(elsewhere, deep)
    refused = site.mas("restore", session, code=None)
    assert refused.returncode != 0
    assert "not a directory" in refused.stderr
    assert os.listdir(elsewhere) == []
    assert site.four_places(session) == {"stopped"}


def test_a_window_that_a_person_opens_has_the_variables_of_the_session_and_no_token(site: Site) -> None:
    session = site.start("--team", "pair", "--command", "sleep 1000")
    wanted = {key: value for key, value in site.json("env", session).items() if key != "MAS_AGENT_ID"}
    shown = site.session(session, "unit", "shown")
    for _ in range(2):
        site.tmux("new-window", "-d", "-t", f"={tmux_name(session)}:", f"env > {shown}.half; mv {shown}.half {shown}")
        until(lambda: os.path.exists(shown), "the window's environment")
        with open(shown, encoding="utf-8") as file:
            found = dict(line.rstrip("\n").split("=", 1) for line in file if "=" in line)
        assert {key: found.get(key) for key in wanted} == wanted
        assert {"MAS_TOKEN", "MAS_AGENT_ID", "MAS_PANE"}.isdisjoint(found)
        os.unlink(shown)
        # A restored session is a new tmux session.
        site.mas("stop", session)
        site.mas("restore", session)


def test_a_workspace_with_a_very_long_path_opens_a_team(bare: Site) -> None:
    # As long as `mas init` takes it.
    root = os.path.join(bare.directory, "d" * 150, "d" * (400 - len(bare.directory) - 152))
    os.makedirs(root)
    bare.mas("init", root, "--provider", "shell", env={"MAS_WORKSPACE_ROOT": ""})
    bare.mas("start", "--command", "sleep 1000", env={"MAS_WORKSPACE_ROOT": root}, cwd=bare.directory)
    (name,) = bare.tmux_sessions()
    assert f"MAS_WORKSPACE_ROOT={root}" in bare.tmux("show-environment", "-t", name)
