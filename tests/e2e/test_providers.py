"""Providers: listed, and copied into the workspace to be changed there."""

from __future__ import annotations

import os
import stat

from tests.e2e.standin import read, write
from tests.site import REPOSITORY, Site

_BUILTIN = os.path.join(REPOSITORY, "src", "mas", "providers", "builtin")


def test_all_providers_are_listed(site: Site) -> None:
    names = site.mas("providers", "-q").stdout.split()
    assert {"aider", "claude", "codex", "demo", "gemini", "generic", "shell"} <= set(names)
    found = {view["id"]: view for view in site.json("providers")["providers"]}
    assert list(found) == names
    assert (found["demo"]["installed"], found["demo"]["origin"]) == (True, "shipped")
    table = site.mas("providers", "list").stdout.splitlines()
    assert table[0].split() == ["PROVIDER", "INSTALLED", "VERSION", "FROM", "DESCRIPTION"]
    assert len(table) == len(names) + 1


def test_a_copy_has_all_its_templates_and_wins(site: Site) -> None:
    printed = site.mas("providers", "copy", "claude").stdout.split()
    wanted = ["claude.toml", *(f"templates/claude-{name}.json" for name in ("settings", "mcp", "home"))]
    assert [os.path.relpath(os.path.join(site.root, path), site.path("providers")) for path in printed] == wanted
    for name in wanted:
        assert read(site.path("providers", name)) == read(_BUILTIN, name)
        assert stat.S_IMODE(os.stat(site.path("providers", name)).st_mode) == 0o644
    assert {one["id"]: one["origin"] for one in site.json("providers")["providers"]}["claude"] == "workspace"


def test_a_copy_is_used_and_never_overwritten_unasked(site: Site) -> None:
    site.mas("providers", "copy", "demo")
    own = site.path("providers", "demo.toml")
    write(read(own).replace("an embedded stand-in", "my stand-in"), own)
    refused = site.mas("providers", "copy", "demo", code=4)
    assert f"The workspace has its own {own}" in refused.stderr
    assert "mas providers copy demo --force" in refused.stderr
    assert "my stand-in" in site.mas("providers").stdout
    session = site.start("--team", "solo", "--provider", "demo")
    assert site.json("show", session)["agents"][0]["provider"] == "demo"
    site.mas("providers", "copy", "demo", "--force")
    assert read(own) == read(_BUILTIN, "demo.toml")
    # Once more changes nothing, and is fine.
    assert site.json("providers", "copy", "demo") == {"id": "demo", "files": [own]}


def test_what_cannot_be_copied_is_refused_with_what_can(site: Site) -> None:
    assert (
        "No built-in provider 'nobody' (there are: aider, claude"
        in site.mas("providers", "copy", "nobody", code=2).stderr
    )
    assert "No built-in provider" in site.mas("providers", "copy", "../x", code=2).stderr
    assert "No provider given" in site.mas("providers", "copy", code=2).stderr
    assert "mas providers copy demo" in site.mas("providers", "list", "demo", code=2).stderr
