"""Report: an agent says what it is doing."""

from __future__ import annotations

from mas.model.ids import SessionId
from mas.model.self_report import AgentReport, parse_report, parse_reported
from mas.model.session import Status
from mas.service.agents.living import not_running
from mas.service.world import World
from mas.store.agent.self_reports import keep_report


def report(world: World, session_id: SessionId, agent: str, text: str, state: str | None = None) -> AgentReport:
    """Store the report of an agent of a running session, and send it to all listeners."""
    told, said = parse_report(text), parse_reported(state)
    session = world.records.load(session_id)
    session.agent(agent)
    if session.status is not Status.ACTIVE:
        raise not_running(session_id)
    now = world.now()
    keep_report(world.layout.session(session_id), agent, told)
    details = {"text": told} if said is None else {"text": told, "state": said}
    world.events.add("report", session_id, agent, **details)
    world.logs.session(session_id, f"report from={agent} {f'({said}) ' if said else ''}{told}")
    return AgentReport(session_id, agent, told, said, now)
