"""Wait: until agents are idle, blocked, have replied or have exited."""

from __future__ import annotations

import os
import time

from mas.model.errors import BadInput
from mas.model.ids import SessionId, shown
from mas.model.message import PERSON, UNTIL, Message, Standing, Waited
from mas.model.session import Session
from mas.model.state import AgentState, State
from mas.runtime.runtime import PaneState
from mas.service.agents.living import NOT_RUNNING, panes_of, reported_state
from mas.service.world import World

# How often to look: the longer it has been, the less a moment more matters, and hundreds may wait at once.
_LOOK_AGAIN = 0.02
_SELDOM = 0.25
_PART = 50
# How often tmux is asked which agents are running; what agents report is read far more often.
_LOOK_AT_TMUX = 1.0


def wait(
    world: World,
    session_id: SessionId,
    target: str,
    until: str,
    timeout: float,
    asker: str | None = None,
    after: str | None = None,
) -> Waited:
    """Wait until `target` is as wanted, or that cannot come about without a person, or the time is over.

    All of its agents are `idle` and nothing is on its way to them, or all `exited`; any is `blocked`; one has
    `replied`, that is written to `asker` (None: to people) since the message `after`, or since now; `answered` is
    replied or, without that, idle.
    """
    if until not in UNTIL:
        raise BadInput(f"Cannot wait for {shown(until)} (there are: {', '.join(UNTIL)})")
    session = world.records.load(session_id)
    agents = tuple(agent.id for agent in world.records.load_run(session_id).team.targets(target))
    watch = _AgentStates(world, session, agents)
    replies = _Replies(world, session_id, agents, asker or PERSON, after) if until in ("answered", "replied") else None
    began = time.monotonic()
    deadline = began + timeout
    while True:
        states = watch.states()
        reply = replies.first() if replies else None
        end = "reached" if reply or _has_come(until, states, watch) else _hindrance(until, states)
        if not end and time.monotonic() >= deadline:
            end = "timeout"
        if end:
            standings = (Standing(agent, state.state, state.words) for agent, state in states.items())
            return Waited(until, end, tuple(standings), reply)
        time.sleep(min(max((time.monotonic() - began) / _PART, _LOOK_AGAIN), _SELDOM))


def _has_come(until: str, states: dict[str, AgentState], watch: _AgentStates) -> bool:
    found = {State.EXITED if state.gone else state.state for state in states.values()}
    if until == "blocked":
        return State.BLOCKED in found
    if until == "exited":
        return found == {State.EXITED}
    return until in ("idle", "answered") and found == {State.IDLE} and watch.nothing_on_its_way()


def _hindrance(until: str, states: dict[str, AgentState]) -> str:
    """What keeps it from coming about until a person does something; nothing if it may still come by itself."""
    found = {State.EXITED if state.gone else state.state for state in states.values()}
    if State.EXITED in found and until != "exited" and (until != "blocked" or len(found) == 1):
        return "exited"
    return "blocked" if State.BLOCKED in found and until not in ("blocked", "exited") else ""


class _AgentStates:
    """The agents' states: from their reports, and now and then from tmux, which knows which panes live."""

    def __init__(self, world: World, session: Session, agents: tuple[str, ...]) -> None:
        self._world = world
        self._session = session
        self._agents = agents
        self._panes: dict[str, PaneState] = {}
        self._looked = -_LOOK_AT_TMUX
        self._states: dict[str, tuple[tuple[int, int], AgentState]] = {}

    def states(self) -> dict[str, AgentState]:
        now = time.monotonic()
        if now - self._looked >= _LOOK_AT_TMUX:
            self._looked = now
            self._session = self._world.records.load(self._session.id)
            self._panes = panes_of(self._world, self._session)
        return {agent: self._state(agent) for agent in self._agents}

    def _state(self, agent: str) -> AgentState:
        if agent not in self._panes or self._panes[agent].dead:
            return NOT_RUNNING
        try:
            status = os.stat(self._world.layout.session(self._session.id).agent_events(agent))
        except FileNotFoundError:
            return AgentState(State.STARTING)
        stamp = status.st_size, status.st_mtime_ns
        if agent not in self._states or self._states[agent][0] != stamp:
            self._states[agent] = stamp, reported_state(self._world, self._session.id, agent)
        return self._states[agent][1]

    def nothing_on_its_way(self) -> bool:
        store = self._world.messages()
        if not store.exists(self._session.id):
            return True
        with store.open(self._session.id) as mailbox:
            return not set(mailbox.waiting()) & set(self._agents)


class _Replies:
    """What some agents have written to one, since a message or since now."""

    def __init__(
        self, world: World, session_id: SessionId, agents: tuple[str, ...], to: str, after: str | None
    ) -> None:
        self._world = world
        self._session_id = session_id
        self._agents = agents
        self._to = to
        self._after = 0
        if self._world.messages().exists(session_id):
            with self._world.messages().open(session_id) as mailbox:
                self._after = mailbox.number(after)

    def first(self) -> Message | None:
        if not self._world.messages().exists(self._session_id):
            return None
        with self._world.messages().open(self._session_id) as mailbox:
            return mailbox.first_from(self._agents, self._to, self._after)
