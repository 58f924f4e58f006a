"""A systemd unit that keeps the workspace's server."""

from __future__ import annotations

import configparser
import os
import shlex
import shutil
import sys

import pytest

from tests.site import Site


def test_the_unit_runs_the_server_of_this_workspace_and_leaves_agents_alone(site: Site) -> None:
    made = site.json("serve", "--install-unit", "--port", "7900", "--allow-host", "mas.example")
    assert os.path.dirname(made["unit"]) == os.path.join(site.home, ".config", "systemd", "user")
    assert os.path.basename(made["unit"]) in made["command"]
    unit = configparser.RawConfigParser()
    unit.optionxform = str  # type: ignore[assignment,method-assign] # as documented
    unit.read(made["unit"])
    assert unit["Service"]["KillMode"] == "process"
    words = shlex.split(unit["Service"]["ExecStart"])
    assert words[:6] == [sys.executable, "-m", "mas", "serve", "--workspace", site.root]
    assert words[6:] == ["--host", "127.0.0.1", "--port", "7900", "--allow-host", "mas.example"]
    again = site.json("serve", "--install-unit")
    assert again["unit"] == made["unit"]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_finds_nothing_wrong_with_the_unit(site: Site) -> None:
    unit = site.json("serve", "--install-unit")["unit"]
    checked = site.run(["systemd-analyze", "verify", "--user", unit])
    assert os.path.basename(unit) not in checked.stderr, checked.stderr


def test_without_systemd_for_the_user_mas_says_so(site: Site) -> None:
    runtime = os.path.join(site.directory, "run")
    without = site.mas("serve", "--install-unit", env={"XDG_RUNTIME_DIR": runtime})
    assert "systemd is not running for this user" in without.stderr
    assert "mas serve --detach" in without.stderr
    os.makedirs(os.path.join(runtime, "systemd"))
    there = site.mas("serve", "--install-unit", env={"XDG_RUNTIME_DIR": runtime})
    assert "systemctl --user enable" in there.stderr
