"""Deaths: `kill -9` of what runs for a session: a launcher, a tmux server, a process on its way to one."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator

import psutil
import pytest

from mas.model.ids import SessionId
from tests.checker import World, processes_of_sessions
from tests.faults.driver import Cut, Driver, Ended, Fault
from tests.faults.field import RUN, Field
from tests.site import Site, until, words_of

# An agent with a process that has left its terminal, its group and its parent.
DETACHING = RUN._replace(command="sh -c 'setsid sleep 1000 & exec sleep 1000'")


@pytest.fixture
def session(field: Field) -> Iterator[SessionId]:
    """A session of an agent with a detached process."""
    session_id = SessionId(field.mas.start(DETACHING).session_id)
    until(lambda: _sleepers(field.site, session_id) == 2, "the agent and its detached process")
    yield session_id
    # The end of tmux alone ends detached processes only once their launcher is ready for it.
    field.mas.stop(session_id)


def _processes(site: Site, session_id: str) -> list[psutil.Process]:
    return [process for process, owner in processes_of_sessions(site.path("sessions")) if owner == session_id]


def _sleepers(site: Site, session_id: str) -> int:
    return sum(words_of(process)[:1] == ["sleep"] for process in _processes(site, session_id))


def _pane(site: Site, session_id: str) -> int:
    pane = World(site).pane_of(session_id)
    assert pane is not None
    return pane


def test_a_killed_launcher_takes_its_agent_along_and_the_session_can_be_stopped_and_restored(
    field: Field, session: SessionId
) -> None:
    os.kill(_pane(field.site, session), 9)
    until(lambda: field.mas.show(session).agents[0].state == "exited", "the agent to be known as exited")
    until(lambda: _sleepers(field.site, session) == 1, "the agent to end with its launcher")
    assert field.mas.stop(session).status == "stopped"
    assert _processes(field.site, session) == []
    field.settled()
    field.mas.restore(session)
    field.settled()


def test_a_killed_server_leaves_stopped_sessions_no_processes_and_the_way_back(
    site: Site, field: Field, session: SessionId
) -> None:
    os.kill(int(site.tmux("display-message", "-p", "#{pid}")), 9)
    assert {info.status for info in field.mas.list().sessions} == {"stopped"}
    assert _processes(site, session) == []
    for session_id in (session, field.bystander):
        assert field.mas.restore(session_id).status == "active"
    field.pane = _pane(site, field.bystander)
    field.settled()


@pytest.mark.parametrize("verb", ["start", "restore"])
def test_a_tmux_client_that_outlives_its_killed_process_opens_nothing_for_good(
    site: Site, field: Field, driver: Driver, verb: str
) -> None:
    session_id = field.stopped()
    args = (RUN,) if verb == "start" else (session_id,)
    watched = driver.call(verb, *args, fault=Fault(Cut.WATCH, 1))
    assert watched.error is None, watched.trace
    if verb == "restore":
        field.mas.stop(session_id)
    opening = next(
        number for number, step in enumerate(watched.steps, 1) if step.startswith("spawned") and "new-session" in step
    )
    hold = _HeldTmux(site)
    try:
        assert driver.call(verb, *args, fault=Fault(Cut.KILL, opening)).killed
        driver.begin("list")
        assert not driver.has_news(0.3), "the next command did not wait for the client"
        hold.let_go()
        ended = driver.next(waiting_is_news=False)
    finally:
        hold.let_go()
    assert isinstance(ended, Ended)
    assert ended.error is None
    assert not ended.answer.warnings
    field.settled()


def test_what_was_reported_as_done_survives_a_power_cut(site: Site, driver: Driver) -> None:
    watched = driver.call("start", RUN, fault=Fault(Cut.WATCH_ALL, 1))
    assert watched.error is None, watched.trace
    site.mas("stop")
    removed = max(
        number for number, step in enumerate(watched.steps) if step.startswith("remove ") and "intents" in step
    )
    # Otherwise it may come back, and the session that was reported as started would be taken for one cut short.
    assert any(step.startswith("sync ") and step.endswith("intents") for step in watched.steps[removed:])


class _HeldTmux:
    """A `tmux` that waits at a gate before it opens a session; all else goes straight on."""

    def __init__(self, site: Site) -> None:
        real = shutil.which("tmux")
        place = os.path.join(site.home, "bin")
        self._gate = os.path.join(place, "gate")
        os.makedirs(place)
        os.mkdir(self._gate)
        path = os.path.join(place, "tmux")
        with open(path, "w", encoding="utf-8") as file:
            file.write(
                "#!/bin/sh\n"
                f'case " $* " in *" new-session "*) while [ -e {self._gate} ]; do sleep 0.01; done ;; esac\n'
                f'exec {real} "$@"\n'
            )
        os.chmod(path, stat.S_IRWXU)
        site.env["PATH"] = f"{place}:{site.env['PATH']}"

    def let_go(self) -> None:
        if os.path.isdir(self._gate):
            os.rmdir(self._gate)
