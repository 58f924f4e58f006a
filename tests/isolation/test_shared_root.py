"""The agents of a real session have copies of one root; one that is started alone has its own, which looks the same."""

from __future__ import annotations

import json
import os

import pytest

from tests.site import Site, until

_LOOK = "stat -c %d / > device; ls -A / /etc /run > half; mv half listing; exec sleep 1000"


class Team:
    """A session of agents, each of which has said what its root is."""

    def __init__(self, site: Site, network: str = "names") -> None:
        self.site = site
        with open(site.path("config.json"), "r+", encoding="utf-8") as file:
            config = json.load(file)
            file.seek(0)
            json.dump(config | {"isolation": {"network": network}}, file)
            file.truncate()
        site.env["MAS_ISOLATION"] = "A"
        done = site.mas("start", "--team", "pair", "--command", f"sh -c '{_LOOK}'", code=None)
        if done.returncode == 7:
            pytest.skip(f"this machine has no tier A: {done.stderr.strip().splitlines()[0]}")
        assert done.returncode == 0, done.stderr
        self.session = done.stdout.strip()
        self.agents = [agent["id"] for agent in site.json("show", self.session)["agents"]]

    def found(self, name: str) -> dict[str, str]:
        """What agents wrote, and forget it."""
        paths = {agent: self.site.session(self.session, "unit", agent, name) for agent in self.agents}
        until(lambda: all(os.path.exists(path) for path in paths.values()), f"each agent's {name}")
        texts: dict[str, str] = {}
        for agent, path in paths.items():
            with open(path, encoding="utf-8") as file:
                texts[agent] = file.read()
            os.unlink(path)
        return texts

    def roots(self) -> list[str]:
        return os.listdir(self.site.session(self.session, ".mas", "roots"))


@pytest.mark.parametrize("network", ["names", "shared"])
def test_a_root_is_built_once_for_a_session(site: Site, network: str) -> None:
    team = Team(site, network)
    listings, devices = team.found("listing"), team.found("device")
    assert len(team.agents) > 1
    assert len(team.roots()) == len(set(devices.values())) == len(set(listings.values())) == 1
    site.mas("stop", team.session)
    site.mas("restore", team.session)
    again, later = team.found("listing"), team.found("device")
    assert again == listings
    assert len(set(later.values())) == 1


def test_an_agent_that_is_restarted_alone_sees_the_same(site: Site) -> None:
    team = Team(site)
    listings, devices = team.found("listing"), team.found("device")
    team.agents = team.agents[:1]
    (agent,) = team.agents
    site.mas("restart-agent", "--force", team.session, agent)
    assert team.found("listing") == {agent: listings[agent]}
    assert team.found("device")[agent] not in devices.values()
