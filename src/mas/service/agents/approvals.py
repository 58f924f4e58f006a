"""Approvals: every agent that waits for an answer, and how its provider lets MAS answer."""

from __future__ import annotations

import re
import time
from typing import NamedTuple

from mas.model.approvals import AgentAnswer, Approval, ApprovalList
from mas.model.errors import AgentExited, Conflict, MasError, NoTmux
from mas.model.ids import SessionId
from mas.model.session import AgentRun, Session, Status
from mas.model.state import COMPOSER, AgentState, State
from mas.providers.format import Approve
from mas.runtime.runtime import PaneState, Place
from mas.service.agents.living import by_agent, place_of, reported_state, running_panes, state_of
from mas.service.upkeep.reconcile import reconcile
from mas.service.world import World
from mas.store.agent.answers import ALLOW, DENY, give, waiting

# What yes or no is an answer to; all else (trust, a sign-in, a question with options) is for a person at the terminal.
_PERMISSION = ("permission", "")
# The sources whose questions may be answered. A dialog read off the screen may be any, and its Enter may mean "exit".
_TRUSTED = ("osc7501", "hooks", "title")
# The sources that do not have the question in full.
_VAGUE = ("title", COMPOSER)
# How long a program may take to act on an answer, and the time between two looks.
_ANSWERED = 5.0
_GLANCE = 0.02
_SHOWN_LINES = 12


class _Question(NamedTuple):
    """One agent's question, and where it was asked."""

    session: Session
    agent: AgentRun
    place: Place
    pane: PaneState
    state: AgentState

    @property
    def attach(self) -> str:
        return f"mas attach {self.session.id} {self.agent.id}"


def approvals(world: World, session_id: SessionId | None = None) -> ApprovalList:
    """All agents of the active sessions, or of one, that wait for an answer; by one look at each tmux server."""
    sessions, warnings = _sessions(world, session_id)
    places = {place: session for session in sessions if (place := place_of(world, session))}
    found: list[Approval] = []
    for place, panes in world.runtime.panes_of(places).items():
        session = places[place]
        if panes is None:
            warnings.append(f"Could not ask tmux about session {session.id}; its waiting agents are not shown")
            continue
        agent_panes = by_agent(panes)
        for agent in session.agents:
            pane = agent_panes.get(agent.id)
            state = state_of(world, session.id, agent.id, pane)
            if pane and state.state is State.BLOCKED:
                found.append(_approval(world, _Question(session, agent, place, pane, state)))
    found.sort(key=lambda one: (one.since, one.session_id, one.agent))
    return ApprovalList(tuple(found), tuple(warnings))


def _sessions(world: World, session_id: SessionId | None) -> tuple[list[Session], list[str]]:
    if session_id is not None:
        return [world.records.load(session_id)], []
    entries, warnings = reconcile(world)
    sessions = []
    for entry in entries:
        if entry.status is Status.ACTIVE:
            try:
                sessions.append(world.records.load(SessionId(entry.session_id)))
            except MasError as error:
                # Damaged or gone since the listing: the others still count.
                warnings.append(error.message)
    return sessions, warnings


def _approval(world: World, asked: _Question) -> Approval:
    session, agent, state = asked.session, asked.agent, asked.state
    why_not = _why_not(world, asked)
    return Approval(
        session_id=session.id,
        session_name=session.name,
        agent=agent.id,
        unit=agent.unit,
        role=agent.role,
        provider=agent.provider,
        kind=state.kind,
        text=state.text,
        source=state.source,
        since=state.at,
        can_answer=not why_not,
        why_not=why_not,
        hint=asked.attach if why_not else f"mas approve {session.id} {agent.id}; mas deny {session.id} {agent.id}",
        screen="" if state.text and state.source not in _VAGUE else _screen(world, asked),
    )


def _screen(world: World, asked: _Question) -> str:
    """The end of what the agent shows, where its question is; nothing if it is gone meanwhile."""
    try:
        return world.runtime.screen(asked.place, asked.pane.pane, _SHOWN_LINES)
    except NoTmux:
        return ""


def answer(world: World, session_id: SessionId, agent_id: str, allow: bool, by: str = "person") -> AgentAnswer:
    """Allow or deny what an agent asks for; returns its state after that. `Conflict` if it asks for nothing."""
    asked = _question(world, session_id, agent_id)
    if why_not := _why_not(world, asked):
        raise Conflict(f"MAS cannot answer agent {agent_id}: {why_not}", asked.attach)
    approve = _approve(world, asked.agent)
    if approve.method == "key" or (approve.or_key and not _request(world, asked)):
        after = _press(world, asked, approve, approve.key if allow else approve.deny_key)
    else:
        after = _answer_hook(world, asked, ALLOW if allow else DENY)
    question = asked.state
    word = "approve" if allow else "deny"
    world.logs.session(session_id, f"{word} {agent_id} by={by}: {question.words}")
    world.events.add("approval", session_id, agent_id, allowed=allow, by=by, kind=question.kind, text=question.text)
    return AgentAnswer(
        session_id, agent_id, allow, question.kind, question.text, after.state, after.words, after.source
    )


def _question(world: World, session_id: SessionId, agent_id: str) -> _Question:
    """What the agent asks; a `Conflict` that says how it is if that is nothing."""
    session = world.records.load(session_id)
    agent = session.agent(agent_id)
    place, panes = running_panes(world, session)
    pane = panes.get(agent_id)
    state = state_of(world, session_id, agent_id, pane)
    if pane is None or state.state is not State.BLOCKED:
        raise _asks_nothing(session_id, agent_id, state)
    return _Question(session, agent, place, pane, state)


def _why_not(world: World, asked: _Question) -> str:
    """Why MAS must not, or cannot, answer; empty if it can."""
    kind, source = asked.state.kind, asked.state.source
    if kind not in _PERMISSION or source not in _TRUSTED:
        return "only a person at its terminal can decide this"
    try:
        approve = _approve(world, asked.agent)
    except MasError as error:
        return error.message
    if approve.method == "none":
        return f"the provider {asked.agent.provider} does not support it"
    if approve.method != "key" and not approve.or_key and not _request(world, asked):
        return "its program takes the answer only at its terminal"
    return ""


def _approve(world: World, agent: AgentRun) -> Approve:
    return world.providers().get(agent.provider).approve


def _press(world: World, asked: _Question, approve: Approve, key: str) -> AgentState:
    """Press the key while the same question is shown, until the program accepts it; returns the state after that."""
    session_id, agent_id = asked.session.id, asked.agent.id
    # No message may be typed at the same time, and no other process may answer.
    with world.messages().typing(session_id, agent_id):
        # Sooner than that, programs take no key: it may have been meant for what they showed before.
        state = _once_changed(world, asked, _too_soon(world, asked.state, approve.key_min_wait))
        if state != asked.state:
            raise _asks_nothing(session_id, agent_id, state, asked.state)
        for _ in range(2):
            _check_screen(world, asked)
            try:
                world.runtime.press(asked.place, asked.pane, key)
            except AgentExited:
                raise _asks_nothing(session_id, agent_id, _look(world, asked), asked.state) from None
            if not approve.key_verify:
                return reported_state(world, session_id, agent_id)
            state = _once_changed(world, asked, _ANSWERED)
            if state != asked.state:
                return state
    state = _look(world, asked)
    if state.gone:
        raise _asks_nothing(session_id, agent_id, state, asked.state)
    raise _not_taken(world, asked, f"{key} was pressed twice")


def _answer_hook(world: World, asked: _Question, word: str) -> AgentState:
    """Hand the answer to the hook that waits for it; returns the state after that."""
    session_id, agent_id = asked.session.id, asked.agent.id
    directory = world.layout.session(session_id).root
    request = _request(world, asked)
    if not request or not give(directory, request, word):
        raise _asks_nothing(session_id, agent_id, _look(world, asked), asked.state)
    state = _once_changed(world, asked, _ANSWERED)
    if state == asked.state and request in waiting(directory, agent_id):
        raise _not_taken(world, asked, "its program has not fetched the answer yet")
    return state


def _request(world: World, asked: _Question) -> str:
    """The request of the agent's hook that the question is; empty if none waits."""
    found = waiting(world.layout.session(asked.session.id).root, asked.agent.id)
    # A source other than hooks reports the same question with another time.
    meant = [name for name in found if asked.state.source != "hooks" or found[name] == asked.state.at]
    return max(meant, key=lambda name: found[name], default="")


def _once_changed(world: World, asked: _Question, seconds: float) -> AgentState:
    """The agent's state once it no longer asks this question, or after `seconds` at the latest."""
    deadline = time.monotonic() + seconds
    while True:
        state = reported_state(world, asked.session.id, asked.agent.id)
        if state != asked.state or time.monotonic() >= deadline:
            return state
        time.sleep(min(_GLANCE, max(0.0, deadline - time.monotonic())))


def _too_soon(world: World, state: AgentState, least: float) -> float:
    """For how many more seconds the question is too new to be answered."""
    from datetime import datetime

    try:
        age = (datetime.fromisoformat(world.now()) - datetime.fromisoformat(state.at)).total_seconds()
    except (ValueError, TypeError):
        return least
    return min(max(least - age, 0.0), least)


def _check_screen(world: World, asked: _Question) -> None:
    """`Conflict` if the question is from a title and the screen shows a dialog that only a person should answer."""
    if asked.state.source != "title":
        return
    screen = world.runtime.screen(asked.place, asked.pane.pane, _SHOWN_LINES * 4)
    for dialog in world.providers().get(asked.agent.provider).status.startup_dialogs:
        if re.search(dialog.match, screen):
            raise Conflict(
                f"MAS cannot answer agent {asked.agent.id}: only a person at its terminal can decide this",
                asked.attach,
            )


def _look(world: World, asked: _Question) -> AgentState:
    """The agent's state from all sources, tmux included."""
    pane = by_agent(world.runtime.panes(asked.place)).get(asked.agent.id)
    return state_of(world, asked.session.id, asked.agent.id, pane)


def _not_taken(world: World, asked: _Question, what: str) -> Conflict:
    screen = world.runtime.screen(asked.place, asked.pane.pane, _SHOWN_LINES)
    asks = f" ({asked.state.words})" if asked.state.words else ""
    return Conflict(f"Agent {asked.agent.id} is still asking{asks}: {what}. Its screen:\n{screen}", asked.attach)


def _asks_nothing(
    session_id: SessionId, agent_id: str, state: AgentState, before: AgentState | None = None
) -> Conflict:
    """Why there is nothing to answer, or nothing of what was asked `before`."""
    words = f" ({state.words})" if state.words else ""
    show = f"mas show {session_id}"
    if state.gone:
        return AgentExited(f"Agent {agent_id} has exited{words}", show)
    if before and state.state is State.BLOCKED and state != before:
        return Conflict(f"Agent {agent_id} now asks something else{words}; MAS did not answer it", "mas approvals")
    if before:
        return Conflict(f"Agent {agent_id} was already answered: it is {state.state} now{words}", show)
    return Conflict(f"Agent {agent_id} is not waiting for a decision: it is {state.state}{words}", show)
