"""With MAS's server running, ending a team leaves all else on the user's tmux server alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.e2e.standin import ASLEEP, tmux_name
from tests.served import Served

MINE, VIEW = "mine", "a-view"
# Of one, two and four windows.
TEAMS = ("pair", "dev", "default")


def stop(served: Served, session: str) -> None:
    served.site.mas("stop", session)


def delete(served: Served, session: str) -> None:
    served.site.mas("delete", session, "--yes")


def http_stop(served: Served, session: str) -> None:
    assert served.client().post(f"/sessions/{session}/stop").status_code == 200


def http_delete(served: Served, session: str) -> None:
    assert served.client().delete(f"/sessions/{session}").status_code == 200


@pytest.mark.parametrize("end", [stop, delete, http_stop, http_delete], ids=lambda end: str(end.__name__))
def test_another_team_a_persons_session_and_a_view_stay(served: Served, end: Callable[[Served, str], None]) -> None:
    site = served.site
    other = site.start(*ASLEEP)
    site.tmux("new-session", "-d", "-s", MINE, "cat")
    site.tmux("new-session", "-d", "-t", tmux_name(other), "-s", VIEW)
    for team in TEAMS:
        session = site.start("--team", team, "--command", "sleep 1000")
        served.connect_to_tmux(other)
        end(served, session)
        assert site.tmux_sessions() == {tmux_name(other), MINE, VIEW}
        assert site.statuses()[other] == "active"
