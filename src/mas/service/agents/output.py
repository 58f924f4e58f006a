"""Output, logs, attach: what people see of an agent and its terminal."""

from __future__ import annotations

import time

from mas.model.agents import AgentOutput
from mas.model.errors import NoSession
from mas.model.ids import SessionId
from mas.model.message import parse_message_id
from mas.model.state import State
from mas.model.transcript_text import plain_turns
from mas.providers.format import TranscriptTable
from mas.service.agents.living import panes_of, place_of, reported_state, running_pane, running_panes
from mas.service.agents.transcript import transcript_table, turns_of
from mas.service.messages.routing import check_may_read
from mas.service.world import World

# What it asks, and what went wrong, is on its screen.
_SHOWN_BY_SCREEN = (State.BLOCKED, State.ERROR)
_PATIENCE = 3.0
_GLANCE = 0.05


def output(
    world: World,
    session_id: SessionId,
    agent: str,
    lines: int,
    reader: str | None = None,
    screen: bool = False,
    message_id: str | None = None,
) -> AgentOutput:
    """What an agent said last, or answered to a message; the screen if that is not known, or if it is asked for.

    The screen of an agent that has none any more is the end of its log. An agent reads by the team's routing.
    """
    session = world.records.load(session_id)
    session.agent(agent)
    if reader is not None:
        check_may_read(world.records.load_run(session_id).team, reader, agent)
    said = None if screen else _said(world, session_id, agent, message_id)
    if said is not None:
        return AgentOutput(agent, said if message_id else _last(said, lines), "transcript")
    place = place_of(world, session)
    if place and (pane := panes_of(world, session).get(agent)):
        return AgentOutput(agent, world.runtime.screen(place, pane.pane, lines), "screen")
    return AgentOutput(agent, world.logs.tail(world.layout.session(session_id).agent_log(agent), lines), "log")


def _said(world: World, session_id: SessionId, agent: str, message_id: str | None) -> str | None:
    """The answer in an agent's transcript; None if it has no transcript, or shows something else that matters more."""
    table = transcript_table(world, session_id, agent)
    if not table.format:
        return None
    if message_id:
        return _answer_to(world, session_id, agent, table, message_id)
    if reported_state(world, session_id, agent).state in _SHOWN_BY_SCREEN:
        return None
    turns = turns_of(world, session_id, agent, table)
    if not turns:
        return None
    return turns[-1].answer or None if turns[-1].finished else plain_turns(turns[-1:])


def _answer_to(world: World, session_id: SessionId, agent: str, table: TranscriptTable, message_id: str) -> str | None:
    """The answer to a message; a program may record it a moment after it has reported that it is idle."""
    mark = f" id={parse_message_id(message_id)}]"
    deadline = time.monotonic() + _PATIENCE
    while True:
        turns = turns_of(world, session_id, agent, table)
        found = next((turn for turn in reversed(turns) if mark in turn.prompt), None)
        if found and found.finished and found.answer:
            return found.answer
        if time.monotonic() > deadline:
            return found.answer or None if found else None
        time.sleep(_GLANCE)


def _last(text: str, lines: int) -> str:
    return "\n".join(text.split("\n")[-lines:]) if lines else ""


def logs(world: World, session_id: SessionId, agent: str | None, lines: int, raw: bool = False) -> str:
    """The last lines of the session's log, or of an agent's: its conversation, or with `raw` what it printed."""
    path = log_path(world, session_id, agent)
    table = TranscriptTable() if agent is None or raw else transcript_table(world, session_id, agent)
    turns = turns_of(world, session_id, agent, table) if agent is not None and table.format else ()
    return _last(plain_turns(turns), lines) if turns else world.logs.tail(path, lines)


def log_path(world: World, session_id: SessionId, agent: str | None) -> str:
    paths = world.layout.session(session_id)
    if agent is None:
        # Not by its files: the log of a damaged session says how it came to that.
        if not world.layout.is_session(session_id):
            raise NoSession(session_id)
        return paths.session_log()
    world.records.load(session_id).agent(agent)
    return paths.agent_log(agent)


def attach(world: World, session_id: SessionId, agent: str | None) -> None:
    """Hand the terminal over to the session. Does not return."""
    session = world.records.load(session_id)
    if agent is None:
        world.runtime.attach(running_panes(world, session)[0], None)
    else:
        place, pane = running_pane(world, session, session.agent(agent).id)
        world.runtime.attach(place, pane.pane)
