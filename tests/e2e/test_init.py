"""Init: what a workspace consists of, where it is looked for, and that MAS stays inside it."""

from __future__ import annotations

import json
import os

import pytest

from tests.e2e.standin import ASLEEP, read, tree, write
from tests.site import Site

AGENTS = ("00", "10", "11", "12", "13", "20", "21", "22", "23", "30", "31", "32", "33")


def test_a_workspace_has_exactly_what_it_needs(bare: Site) -> None:
    made = bare.json("init", bare.root, "--name", "shop", "--provider", "shell")
    assert (made["workspace"], made["name"]) == (bare.root, "shop")
    assert set(os.listdir(bare.root)) == {
        ".masrc", "config.json", "unit", "workflows", "templates", "logs", "sessions",
    }  # fmt: skip
    assert sorted(os.listdir(bare.path("unit"))) == list(AGENTS)
    workflows = sorted(os.listdir(bare.path("workflows")))
    assert "00_meta_manager.md" in workflows
    assert [name[:2] for name in workflows] == list(AGENTS)
    assert {os.path.splitext(name)[1] for name in workflows} == {".md"}
    config = json.loads(read(bare.path("config.json")))
    assert (config["name"], config["provider"]) == ("shop", "shell")


def test_the_demo_is_the_default_provider(bare: Site) -> None:
    bare.mas("init", bare.root)
    config = json.loads(read(bare.path("config.json")))
    assert (config["name"], config["provider"]) == ("ws", "demo")


def test_a_second_run_adds_what_is_missing_and_overwrites_nothing(site: Site) -> None:
    write("mine", site.path("unit", "00", "ROLE.md"))
    write("mine", site.path("workflows", "21_frontend_developer.md"))
    write('{"name": "mine", "provider": "shell"}', site.path("config.json"))
    os.unlink(site.path("workflows", "33_communications_writer.md"))
    os.unlink(site.path(".masrc"))
    before = tree(site.root)
    made = site.json("init", site.root, "--name", "other", "--provider", "demo")["made"]
    assert sorted(made) == [".masrc", "workflows/33_communications_writer.md"]
    after = tree(site.root)
    assert {path: after[path] for path in before} == before
    assert set(after) - set(before) == set(made)
    assert site.json("init", site.root)["made"] == []


def test_the_error_for_a_directory_without_a_workspace_says_how_to_create_one(bare: Site) -> None:
    for env in ({"MAS_WORKSPACE_ROOT": ""}, {"MAS_WORKSPACE_ROOT": bare.home}):
        done = bare.mas("list", code=3, env=env)
        assert "mas init" in done.stderr
    assert "mas init" in bare.mas("--workspace", bare.home, "list", code=3).stderr
    assert os.listdir(bare.home) == []


def test_the_flag_beats_the_environment_which_beats_the_nearest_parent(site: Site) -> None:
    roots = {name: os.path.join(site.directory, name) for name in ("flag", "env", "outer")}
    for root in roots.values():
        site.mas("init", root, "--provider", "shell")
    inner = os.path.join(roots["outer"], "deep", "inner")
    site.mas("init", inner, "--provider", "shell")
    below = os.path.join(inner, "unit", "00")

    def root_found(*args: str, env: str = "") -> str:
        checks = json.loads(site.mas(*args, "doctor", "--json", cwd=below, env={"MAS_WORKSPACE_ROOT": env}).stdout)
        return str(next(check["text"] for check in checks["checks"] if check["name"] == "workspace"))

    assert root_found("--workspace", roots["flag"], env=roots["env"]) == roots["flag"]
    assert root_found(env=roots["env"]) == roots["env"]
    assert root_found() == inner
    os.unlink(os.path.join(inner, ".masrc"))
    assert root_found() == roots["outer"]


def test_nothing_of_a_session_is_ever_written_to_the_home_or_the_old_data_directory(site: Site) -> None:
    data = os.path.join(site.directory, "data")
    env = {"MAS_DATA_DIR": data}
    session = site.start(*ASLEEP, env=env)
    for args in (
        ("list",), ("show", session), ("stop", session), ("restore", session), ("stats",), ("clone", session),
        ("stop", session), ("archive", session), ("unarchive", session), ("delete", session, "--yes"),
        ("undelete", session), ("migrate",), ("doctor",), ("repair",), ("prune", "--keep", "0", "--yes"),
    ):  # fmt: skip
        site.mas(*args, env=env)
    # Where MAS was used, for the walls of other workspaces; and nothing of any session.
    found = [os.path.join(place, name) for place, _, names in os.walk(site.home) for name in names]
    assert found == [os.path.join(site.home, ".local/state/mas/workspaces")]
    assert not os.path.exists(data)


def test_two_workspaces_on_one_tmux_server_never_see_each_other(site: Site) -> None:
    other = os.path.join(site.directory, "other")
    there = {"MAS_WORKSPACE_ROOT": other}
    site.mas("init", other, "--provider", "shell")
    ours, theirs = site.start(*ASLEEP), site.start(*ASLEEP, env=there)
    assert site.tmux_sessions() == {f"mas-{ours[:8]}", f"mas-{theirs[:8]}"}
    assert set(site.statuses()) == {ours}
    for verb in (
        ("show",),
        ("stop",),
        ("restore",),
        ("delete", "--yes"),
        ("archive",),
        ("send", "00", "x", "--session"),
    ):
        assert f"Session not found: {theirs}" in site.mas(*verb, theirs, code=3).stderr
    site.mas("stop", "--all")
    site.mas("repair")
    assert site.json("list", env=there)["sessions"][0]["status"] == "active"
    assert site.tmux_sessions() == {f"mas-{theirs[:8]}"}


@pytest.mark.parametrize("name", ["", "a\nb", "-x", "x" * 65])
def test_a_name_that_cannot_be_one_is_refused_before_anything_is_made(bare: Site, name: str) -> None:
    bare.mas("init", bare.root, f"--name={name}", code=2)
    assert not os.path.exists(bare.root)


def test_a_path_that_is_too_long_for_messages_is_refused_with_the_reason(bare: Site) -> None:
    fits = os.path.join(bare.directory, "/".join(["x" * 100] * 4))[:400].rstrip("/")
    assert "at most 400" in bare.mas("init", f"{fits}{'x' * 100}", code=2, cwd=bare.directory).stderr
    bare.root = bare.env["MAS_WORKSPACE_ROOT"] = fits
    bare.mas("init", fits, "--provider", "shell", cwd=bare.directory)
    session = bare.start(*ASLEEP)
    bare.mas("send", "--force", "--session", session, "00", "hello")
    bare.mas("delete", session, "--yes")
    bare.mas("undelete", session)
    bare.root = bare.env["MAS_WORKSPACE_ROOT"] = f"{fits}{'x' * 100}"
    os.rename(fits, bare.root)
    assert "at most 400" in bare.mas("start", *ASLEEP, code=2).stderr
