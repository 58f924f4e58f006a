"""Views: what MAS answers, as JSON has it."""

from __future__ import annotations

from mas.model.session import Status
from mas.model.upkeep import Check, Diagnosis
from mas.model.views import AgentView, wire


def test_answers_are_camel_case_all_the_way_down() -> None:
    agent = AgentView("00", "meta", "Meta manager", "shell", None, "idle", "", "pane", "%1", None)
    assert wire({"some_key": (agent,), "status": Status.ACTIVE}) == {
        "some_key": [
            {
                "id": "00",
                "unit": "meta",
                "role": "Meta manager",
                "provider": "shell",
                "model": None,
                "state": "idle",
                "stateText": "",
                "stateSource": "pane",
                "pane": "%1",
                "exitStatus": None,
                "restarts": 0,
                "report": None,
            }
        ],
        "status": "active",
    }


def test_an_answer_inside_an_answer_is_an_object_too() -> None:
    answer = Diagnosis((Check("tmux", True, "3.4"),), ok=True)
    assert wire(answer) == {
        "checks": [{"name": "tmux", "ok": True, "text": "3.4", "hint": "", "absent": False}],
        "ok": True,
    }
