"""Env: a session's variables, for a shell to evaluate."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from tests.e2e.standin import ASLEEP, tmux_name
from tests.site import Site

STALE = {"MAS_DATA_DIR": "/old", "MAS_SESSION_MODE": "legacy"}


def evaluated(site: Site, shell: str, *args: str) -> dict[str, str]:
    """The environment of a shell that evaluated what `mas env` printed."""
    script = 'printed=$("$@") || exit 1; eval "$printed"; exec env -0'
    argv = [shell, "-c", script, "sh", sys.executable, "-m", "mas", "env", *args]
    done = site.run(argv, env=STALE)
    assert done.returncode == 0, done.stderr
    return dict(pair.split("=", 1) for pair in done.stdout.rstrip("\0").split("\0"))


def wanted(site: Site, session: str) -> dict[str, str]:
    return {
        "MAS_WORKSPACE_ROOT": site.root,
        "MAS_ROOT": site.root,
        "MAS_SESSION_ID": session,
        "MAS_SESSION_DIR": site.session(session),
        "MAS_SESSION_NAME": tmux_name(session),
        "UNIT_DIR": site.session(session, "unit"),
        "WORKFLOWS_DIR": site.session(session, "workflows"),
        "SESSION_NAME": tmux_name(session),
    }


def test_a_shell_gets_exactly_the_variables_of_an_agent(site: Site) -> None:
    session = site.start(*ASLEEP)
    before = set(site.env) | {"PWD", "OLDPWD", "SHLVL", "_"}
    for args, more in (((session,), {}), ((session, "--agent", "00"), {"MAS_AGENT_ID": "00"})):
        found = evaluated(site, "/bin/sh", *args)
        new = {key: value for key, value in found.items() if key not in before or key == "MAS_WORKSPACE_ROOT"}
        assert new == wanted(site, session) | more
    assert site.json("env", session) == wanted(site, session)


@pytest.mark.parametrize(
    "name", ["with spaces  and\ttab", 'it\'s "quoted"', "$(touch x) `touch x` ${HOME} \\n !", "日本 ; & |"]
)
def test_any_path_survives_the_shell(bare: Site, name: str) -> None:
    bare.root = os.path.join(bare.directory, name)
    bare.env["MAS_WORKSPACE_ROOT"] = bare.root
    if "\t" in name:
        bare.mas("init", bare.root, code=2)
        bare.root = bare.root.replace("\t", " ")
        bare.env["MAS_WORKSPACE_ROOT"] = bare.root
    bare.mas("init", bare.root, "--provider", "shell")
    session = bare.start(*ASLEEP)
    for shell in filter(None, map(shutil.which, ("sh", "bash", "zsh"))):
        found = evaluated(bare, shell, session)
        assert {key: found[key] for key in wanted(bare, session)} == wanted(bare, session)
        assert {"MAS_DATA_DIR", "MAS_SESSION_MODE"}.isdisjoint(found)
    assert not os.path.exists(bare.path("x"))


def test_a_stopped_session_has_an_environment_too_and_an_unknown_one_prints_nothing(site: Site) -> None:
    session = site.start(*ASLEEP)
    site.mas("stop", session)
    assert evaluated(site, "/bin/sh", session)["MAS_SESSION_ID"] == session
    assert site.mas("env", "00000000-0000-4000-8000-000000000000", code=3).stdout == ""
    assert site.mas("env", session, "--agent", "0; touch x", code=2).stdout == ""
