"""Workspaces side by side and one inside the other, each with its server: an agent of one has nothing of any server.

The tokens of all are stolen already: what is tried is whether they are worth anything inside.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.isolation.tiers import start_in
from tests.site import AGENTS, ELSEWHERE, Site, fresh_workspace, short_directory, until

_FILES = {"token", "key", "api.sock", "agents.sock"}


class Street:
    """A workspace, one beside it, and one inside it, each served."""

    def __init__(self, site: Site, beside: str, stack: ExitStack) -> None:
        self.site = site
        self.places = {"own": site.root, "nested": site.path("demo"), "beside": os.path.join(beside, "ws")}
        for name, path in self.places.items():
            if name != "own":
                site.mas("init", path, "--provider", "shell")
            stack.callback(site.mas, "serve", "--workspace", path, "--stop")
            site.mas("serve", "--workspace", path, "--port", "0", "--detach")
        self.reports: dict[str, dict[str, Any]] = {}

    def targets(self) -> dict[str, dict[str, str]]:
        return {
            name: {
                "server": os.path.join(path, "sessions", ".mas", "server"),
                "token": self.site.mas("token", "--workspace", path).stdout.strip(),
            }
            for name, path in self.places.items()
        }

    def report(self, tier: str) -> dict[str, Any]:
        """What an agent of the first workspace finds in that tier."""
        if tier not in self.reports:
            self.reports[tier] = self._report(tier)
        return self.reports[tier]

    def _report(self, tier: str) -> dict[str, Any]:
        session = start_in(self.site, tier, [os.path.join(AGENTS, "neighbour.py")], {"team": "solo"})
        unit = self.site.session(session, "unit", "00")
        with open(os.path.join(unit, "targets.tmp"), "w", encoding="utf-8") as file:
            json.dump(self.targets(), file)
        os.chmod(file.name, 0o644)
        os.rename(file.name, os.path.join(unit, "targets.json"))
        path = os.path.join(unit, "report.json")
        until(lambda: os.path.exists(path), "the report", 60)
        with open(path, encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
        self.site.mas("delete", session, "--yes")
        return found


@pytest.fixture(scope="module")
def street() -> Iterator[Street]:
    if ELSEWHERE is None:
        pytest.skip("this user can create a directory in no place that every program sees")
    with (
        fresh_workspace("--provider", "shell") as site,
        short_directory(ELSEWHERE) as beside,
        ExitStack() as stack,
    ):
        yield Street(site, beside, stack)


@pytest.mark.parametrize("where", ["own", "nested", "beside"])
@pytest.mark.parametrize("tier", ["A", "B"])
def test_no_server_takes_an_isolated_agent_for_its_owner_with_or_without_a_stolen_token(
    street: Street, tier: str, where: str
) -> None:
    asked = street.report(tier)[where]["asked"]
    refused = {"403", "FileNotFoundError", "PermissionError"}
    assert not {how: result for how, result in asked.items() if result not in refused}


@pytest.mark.parametrize("where", ["own", "nested", "beside"])
def test_in_tier_a_no_file_of_any_server_exists(street: Street, where: str) -> None:
    assert street.report("A")[where]["files"] == dict.fromkeys(_FILES, "absent")


@pytest.mark.parametrize("where", ["own", "nested", "beside"])
def test_in_tier_b_no_secret_of_any_server_can_be_read(street: Street, where: str) -> None:
    assert "read" not in street.report("B")[where]["files"].values()


@pytest.mark.parametrize("where", ["own", "nested", "beside"])
def test_without_isolation_the_same_agent_finds_all_of_it(street: Street, where: str) -> None:
    """So what is not found above is not there: the agent knows how to look."""
    report = street.report("D")[where]
    assert report["files"] == {"token": "read", "key": "read", "api.sock": "seen", "agents.sock": "seen"}
    # Not the owner by accident, even here: that takes the owner's token, and the owner's way in.
    assert report["asked"] == {"with": "200", "without": "401", "as an agent": "403"}
