"""Runs that are refused: a person who fills in a form learns which field was wrong."""

from __future__ import annotations

from typing import Any

import pytest

from tests.served import Served


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"name": "-x"}, "body.name"),
        ({"name": "x" * 65}, "body.name"),
        ({"team": "nobody"}, "body.team"),
        ({"provider": "nobody"}, "body.provider"),
        ({"isolation": {"runAs": ""}}, "body.isolation.runAs"),
        ({"limits": {"memory": "2 apples"}}, "body.limits.memory"),
        ({"limits": {"agent": {"cpu": 0}}}, "body.limits.agent.cpu"),
        ({"agents": {"metaManager": {"provider": "nobody"}}}, "body.agents.00.provider"),
        ({"agents": {"metaManager": {"command": "no-such-program"}}}, "body.agents.00.command"),
        ({"agents": {"metaManager": {"limits": {"memory": "2 apples"}}}}, "body.agents.metaManager.limits.memory"),
    ],
)
def test_the_refusal_of_a_run_names_the_wrong_field(shared: Served, body: Any, where: str) -> None:
    refusal = shared.client().post("/runs", json=body)
    assert refusal.status_code == 422
    assert [error["where"] for error in refusal.json()["errors"]] == [where]
    assert refusal.json()["detail"].endswith(refusal.json()["errors"][0]["what"])
