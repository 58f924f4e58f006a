"""Sessions: the steps between their statuses, and how their agents are listed."""

from __future__ import annotations

from itertools import product

import pytest

from mas.model.errors import BadTransition, NoAgent
from mas.model.ids import SessionId
from mas.model.run import agent_runs
from mas.model.session import Gone, Session, Status
from mas.model.team import team_named

ID = SessionId("3f2a9c1e-5b7d-4e8f-9a0b-c1d2e3f4a5b6")
ALLOWED = {
    ("active", "active"), ("active", "stopped"), ("active", "error"),
    ("stopped", "stopped"), ("stopped", "active"), ("stopped", "error"),
    ("error", "error"), ("error", "stopped"),
}  # fmt: skip


@pytest.mark.parametrize(("now", "wanted"), [*product(Status, Status)])
def test_a_step_is_taken_exactly_where_the_table_allows_it(now: Status, wanted: Status) -> None:
    session = Session(ID, now, "made", "started", "before", name="n", socket="/s")
    if (now, wanted) in ALLOWED:
        stopped_at = "later" if wanted is Status.STOPPED else None
        assert session.to(wanted, "later") == session._replace(
            status=wanted, last_activity="later", stopped_at=stopped_at
        )
    else:
        with pytest.raises(BadTransition):
            session.to(wanted, "later")


def test_a_session_keeps_when_and_why_it_stopped_until_it_runs_again() -> None:
    running = Session(ID, Status.ACTIVE, "made", "started", "before")
    lost = running.to(Status.STOPPED, "at nine", "its tmux session was gone", lost=True)
    assert (lost.stopped_at, lost.reason, lost.lost) == ("at nine", "its tmux session was gone", True)
    stopped = lost.to(Status.STOPPED, "at ten")
    assert (stopped.stopped_at, stopped.reason, stopped.lost) == ("at nine", None, False)
    assert lost.to(Status.ACTIVE, "at ten") == running._replace(last_activity="at ten")


def test_the_words_for_a_status_are_a_promise() -> None:
    assert [*Status] == ["active", "stopped", "error"]
    assert [*Gone] == ["archived", "deleted"]


def test_a_session_is_called_by_the_first_eight_of_its_id_in_tmux() -> None:
    assert Session(ID, Status.ACTIVE, "", "", "").tmux == "mas-3f2a9c1e"


def test_agents_are_listed_with_the_panes_they_run_in() -> None:
    runs = agent_runs(team_named("pair"), {"23": "%7"})
    assert [(run.id, run.unit, run.role, run.pane) for run in runs] == [
        ("21", "development", "Frontend developer", None),
        ("23", "development", "Quality engineer", "%7"),
    ]


def test_asking_a_session_for_an_unknown_agent_lists_its_agents() -> None:
    session = Session(ID, Status.ACTIVE, "", "", "", agents=agent_runs(team_named("pair"), {}))
    assert session.agent("23").role == "Quality engineer"
    with pytest.raises(NoAgent, match=r"No agent '99' in session .* \(there are: 21 23\)"):
        session.agent("99")
