"""Sessions whose agents reach all public addresses, on the machine itself; and the refusal where it has no pasta."""

from __future__ import annotations

import json
import os
import socket
from typing import Any

import psutil
import pytest

from mas.model.errors import NotIsolated
from mas.model.isolation import Isolation, NetworkMode, Policy, Tier
from mas.service.isolation.network import choose_network
from mas.service.isolation.tiers import Machine, Tiers
from mas.store.workspace.machine import Probed
from tests.isolation.test_network import Team, lives, users_of
from tests.served import Served
from tests.site import Site, until


def full(site: Site) -> Team:
    """A session with such a network; skips the test where the machine cannot have one."""
    if why := site.world().tiers().why_not("full"):
        pytest.skip(f"this machine cannot have a full network: {why}")
    return Team(site, policy={"network": "full"})


def pasta_of(team: Team) -> psutil.Process:
    def found() -> psutil.Process | None:
        try:
            with open(team.network("pasta"), encoding="ascii") as file:
                process = psutil.Process(int(file.read().split()[0]))
            return process if process.status() != psutil.STATUS_ZOMBIE else None
        except (OSError, ValueError, psutil.Error):
            return None

    process = until(found, "pasta")
    assert isinstance(process, psutil.Process)
    return process


def own_address() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.connect(("192.88.99.1", 9))
            return str(one.getsockname()[0])
        except OSError:
            return "127.0.0.2"


def test_agents_have_a_way_out_and_none_to_the_machine(served: Served) -> None:
    team = full(served.site)
    assert len(team.ask("21", "interfaces")) == 2
    with socket.create_server(("0.0.0.0", 0)) as service:
        port = service.getsockname()[1]
        for address in ("127.0.0.1", own_address()):
            # A control: it is there.
            socket.create_connection((address, port), 5).close()
            assert "Error" in team.ask("21", "connect", address, port)
    # The kernel itself says no: nothing is sent, and nothing is waited for.
    for address in ("10.1.2.3", "192.168.1.1", "169.254.169.254", "100.64.0.1"):
        assert "unreachable" in team.ask("21", "connect", address, 80).lower() or "No route" in team.ask(
            "21", "connect", address, 80
        )
    assert team.ask("21", "connect", "127.0.0.1", 7717).startswith("HTTP/1.")
    assert "in use" in team.ask("23", "bind", 7717)
    assert served.site.json("show", team.id)["isolation"]["network"] == "full"


@pytest.mark.parametrize("which", ["pasta", "egress"])
def test_what_is_killed_comes_back_and_a_stop_leaves_nothing(served: Served, which: str) -> None:
    team = full(served.site)
    namespace = team.ask("21", "namespace")
    egress, pasta = team.egress(), pasta_of(team)
    (pasta if which == "pasta" else egress).kill()
    until(lambda: not lives(egress), "the end of the egress process")
    until(lambda: team.egress().pid != egress.pid, "another egress process")
    assert team.ask("23", "connect", "127.0.0.1", 7717).startswith("HTTP/1.")
    again = pasta_of(team)
    assert (again.pid == pasta.pid) is (which == "egress")
    assert team.ask("21", "namespace") == namespace
    served.site.mas("stop", team.id)
    until(lambda: not lives(again) and not lives(pasta), "the end of pasta")
    until(lambda: not users_of(namespace), "the end of the namespace")


def test_a_stop_finds_pasta_by_its_mark_also_when_all_who_knew_it_were_killed(site: Site) -> None:
    team = full(site)
    team.ask("21", "namespace")
    pasta, egress = pasta_of(team), team.egress()
    os.remove(team.network("pasta"))
    egress.kill()
    site.mas("stop", team.id)
    until(lambda: not lives(pasta), "the end of pasta")


def test_a_full_network_that_cannot_be_had_is_refused_with_what_is_missing(site: Site) -> None:
    def machine(how: str) -> str:
        return "pasta is not installed: apt install passt" if how == "full" else ""

    def tiers(probe: Any) -> Tiers:
        return Tiers(Machine(probe, lambda: 7), Probed(site.world().layout, "another machine"))

    asked = Isolation(Tier.A, "namespaces", policy=Policy(network=NetworkMode.FULL))
    with pytest.raises(NotIsolated, match="cannot have the network full: pasta is not installed: apt install passt"):
        choose_network(asked, tiers(machine))
    assert choose_network(asked, tiers(lambda _: "")) == (NetworkMode.FULL, ())


def test_a_start_where_pasta_is_missing_says_so_and_starts_nothing(site: Site) -> None:
    if not (why := site.world().tiers().why_not("full")):
        pytest.skip("this machine has all that it takes")
    with open(site.path("config.json"), encoding="utf-8") as file:
        config = json.load(file)
    with open(site.path("config.json"), "w", encoding="utf-8") as file:
        json.dump(config | {"isolation": {"network": "full"}}, file)
    done = site.mas("start", "--team", "solo", env={"MAS_ISOLATION": "A"}, code=None)
    assert done.returncode == 7
    assert "cannot have the network full" in done.stderr
    assert why in done.stderr or "tier A" in done.stderr
    assert site.json("list")["sessions"] == []
