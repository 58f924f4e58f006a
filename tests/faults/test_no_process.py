"""No process: a tmux server that cannot start one for a while, because the system has no more."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.site import Site, until
from tests.torture.faults import group


@contextmanager
def at_most(server: int, more: int) -> Iterator[None]:
    """Let a tmux server start no more processes than that for a while."""
    with group() as pids:
        if pids:
            pids.take_in(server)
            pids.tighten(more)
            try:
                yield
            finally:
                pids.let_go()
                _empty(pids.path)
            return
        if os.getuid() == 0 or more:
            pytest.skip("needs a control group of its own")
        limits = resource.prlimit(server, resource.RLIMIT_NPROC)
        resource.prlimit(server, resource.RLIMIT_NPROC, (0, limits[1]))
        try:
            yield
        finally:
            resource.prlimit(server, resource.RLIMIT_NPROC, limits)


def _empty(path: str) -> None:
    """Move what is in a control group to the one above; it can be removed once it is empty."""
    for pid in _pids(path):
        # One that has exited meanwhile is in no group.
        with (
            suppress(ProcessLookupError),
            open(os.path.join(os.path.dirname(path), "cgroup.procs"), "w", encoding="ascii") as file,
        ):
            file.write(pid)
    until(lambda: not _pids(path), "the group is empty")


def _pids(path: str) -> list[str]:
    with open(os.path.join(path, "cgroup.procs"), encoding="ascii") as file:
        return file.read().split()


def _server(site: Site) -> int:
    return int(site.tmux("display-message", "-p", "#{pid}"))


@pytest.mark.parametrize("verb", [["stop"], ["delete", "--yes"]], ids=lambda verb: verb[0])
def test_a_session_whose_agent_could_not_be_restarted_ends_when_it_is_told_to(site: Site, verb: list[str]) -> None:
    bystander, session = site.start(), site.start()
    server = _server(site)
    with at_most(server, 0):
        refused = site.mas("restart-agent", "--force", session, "00", code=4)
        assert "cannot use the pane again" in refused.stderr
    # Though processes can be started again: a second try would crash the server, and end every team there.
    for _ in range(2):
        assert site.statuses() == {bystander: "active", session: "active"}
    refused = site.mas("restart-agent", "--force", session, "00", code=4)
    assert f"mas stop {session[:8]}; mas restore {session[:8]}" in refused.stderr
    (agent,) = site.json("show", session)["agents"]
    assert (agent["state"], agent["stateText"]) == ("exited", "tmux could not start it again")
    assert _server(site) == server
    site.mas(*verb, session)
    assert site.tmux_sessions() == {f"mas-{bystander[:8]}"}
    if verb == ["stop"]:
        site.mas("restore", session)
        assert site.statuses() == {bystander: "active", session: "active"}
    assert _server(site) == server


@pytest.mark.parametrize("more", range(3))
def test_a_start_for_which_there_are_too_few_processes_leaves_nothing_and_ends_no_other_team(
    site: Site, more: int
) -> None:
    bystander = site.start()
    server = _server(site)
    with at_most(server, more):
        refused = site.mas("start", "--team", "pair", code=7)
        assert "Resource temporarily unavailable" in refused.stderr
    assert site.tmux_sessions() == {f"mas-{bystander[:8]}"}
    assert site.statuses() == {bystander: "active"}
    assert _server(site) == server
