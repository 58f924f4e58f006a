"""The how-tos are true: what they show on a console is run in a fresh workspace, and prints that."""

from __future__ import annotations

import os
import shutil
from functools import partial

import pytest

from tests.docs.console import reading, steps_of
from tests.site import Site, until

_LOOKS = ("mas output", "mas inbox")


@pytest.mark.parametrize(
    "guide", ["backup", "containers", "isolation", "migrate", "monitoring", "providers", "service", "teams"]
)
def test_a_how_to_prints_what_it_shows(bare: Site, guide: str) -> None:
    if guide == "monitoring" and not shutil.which("curl"):
        pytest.skip("the guide uses curl, which is not installed")
    del bare.env["MAS_WORKSPACE_ROOT"]
    if guide == "isolation":
        bare.env["MAS_ISOLATION"] = "auto"
    bare.mas("init", f"{bare.home}/shop")
    if guide == "service":
        # As after a user has logged in.
        os.makedirs(f"{bare.home}/run/systemd")
        bare.env["XDG_RUNTIME_DIR"] = f"{bare.home}/run"
    if guide == "isolation" and not _has_tier_a(bare):
        pytest.skip("agents cannot be isolated in tier A here")
    with reading(bare) as reader:
        reader.types('export PATH="$PWD/.venv/bin:$PATH"')
        reader.types("cd ~/shop")
        for step in steps_of("docs", "how-to", f"{guide}.md"):
            if step.command.startswith(_LOOKS):
                until(partial(reader.sees, step), step.command)
            else:
                assert reader.sees(step), (step.command, reader.last)


def _has_tier_a(site: Site) -> bool:
    checks = site.json("doctor", cwd=f"{site.home}/shop", code=None)["checks"]
    return any(check["name"] == "isolation" and check["text"].startswith("tier A") for check in checks)
