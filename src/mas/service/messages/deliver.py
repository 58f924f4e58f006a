"""Deliver: type an agent's queue, message by message, whenever the agent is ready.

Only the process that holds the agent's typing lock does this. Every step is recorded before the next, and the launcher
records what passes to the agent, so that the process after a killed one finds out how far it came: nothing is lost, and
nothing is typed twice.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import NamedTuple

from mas.model.errors import AgentExited
from mas.model.ids import SessionId
from mas.model.message import DeliveryState, Message
from mas.model.screen import Screen
from mas.model.session import Session
from mas.model.state import COMPOSER, AgentState, State
from mas.model.team import Agent, Team
from mas.providers.composer import Seen
from mas.runtime.panes import NotOurPane
from mas.runtime.runtime import Place, PreparedPaste
from mas.runtime.sweep import wait_for_clients
from mas.service.agents.living import not_running, place_of, reported_state
from mas.service.messages.guard import Guard, View
from mas.service.world import World
from mas.store.agent.agentlog import ENTERED, EXIT, MARK_END, MARK_START, MARKED, TAKEN, TYPED, last_run, passed
from mas.store.session.mailbox import Mailbox, Pending

_LOOK_AGAIN = 0.01
# How long a killed sender's tmux client may take, and then a mark to come through to the launcher.
_ON_ITS_WAY = 5.0
_SHOWN_LINES = 20
# How long before Enter to look at the screen.
_LOOKING = 0.02
# A message that is not acknowledged by then may have brought up a dialog.
_LATE = 1.0
_LOST = "the process that typed it was killed, and the agent's screen does not show it; it may have arrived"


class Waiting(NamedTuple):
    """Why a message waits: `passing` if the agent leaves that state by itself, `exited` if there is no agent.

    `by_screen` means that its screen was in the way when it was looked at last: nothing reports when that is over.
    """

    reason: str
    passing: bool = False
    exited: bool = False
    by_screen: bool = False


class OpenSession(NamedTuple):
    """A session as it was read just now, its mailbox, and perhaps a paste that was prepared for its agent."""

    session: Session
    team: Team
    mailbox: Mailbox
    paste: PreparedPaste | None = None


BUSY = Waiting("another process is typing to the agent")
NOT_YET = Waiting("the agent has not confirmed it yet")


def deliver(
    world: World,
    session_id: SessionId,
    agent_id: str,
    patient: Callable[[], bool] = lambda: True,
    opened: OpenSession | None = None,
) -> Waiting | None:
    """Take an agent's messages as far as they can come now; returns why the next one waits, None if none is left.

    Waits for the agent's acknowledgement of a message for as long as it is `patient`, and as the provider allows.
    `opened` is what this thread has read of the session just now.
    """
    store = world.messages()
    with store.nobody_typing(session_id, agent_id) as free:
        if opened and opened.paste and not (free and _is_fresh(opened.mailbox.next(agent_id))):
            # Not for this message; and a process that looks for what a killed sender left would wait for its client.
            opened.paste.cancel()
            opened = opened._replace(paste=None)
        if not free:
            return BUSY
        session = opened.session if opened else world.records.load(session_id)
        place = place_of(world, session)
        pane = next((agent.pane for agent in session.agents if agent.id == agent_id), None)
        if place is None or pane is None:
            return Waiting(not_running(session_id).message, exited=True)
        team = opened.team if opened else world.records.load_run(session_id).team
        (agent,) = team.targets(agent_id)
        with nullcontext(opened.mailbox) if opened else store.open(session_id) as mailbox:
            now = opened or OpenSession(session, team, mailbox)
            queue = _Queue(world, now, place, pane, agent, patient)
            while (pending := mailbox.next(agent_id)) is not None:
                if waiting := queue.advance(pending):
                    return waiting
    return None


def why_waiting(world: World, session_id: SessionId, agent_id: str, forced: bool = False) -> Waiting | None:
    """Why nothing can be typed to an agent now; None if it can."""
    state = reported_state(world, session_id, agent_id)
    if state.state is State.IDLE:
        return None
    if state.gone:
        return Waiting(f"agent {agent_id} has exited", exited=True)
    if state.state is State.BLOCKED:
        reason = f"agent {agent_id} is waiting for an answer{_asked(state)}"
        return Waiting(reason, by_screen=state.source == COMPOSER)
    if forced:
        return None
    reason = f"agent {agent_id} is {state.state}{_asked(state)}"
    if state.state is State.ERROR or (state.state is State.UNKNOWN and state.source == "launcher"):
        # What failed was one turn, or nothing was reported in time: its empty input line shows whether it is ready.
        return Waiting(reason, by_screen=True)
    return Waiting(reason, state.state in (State.STARTING, State.WORKING))


def _waiting_for(error: AgentExited) -> Waiting:
    """If another program is in the agent's pane, the agent may come back, and get what waits for it."""
    return Waiting(error.message, exited=not isinstance(error, NotOurPane))


def _asked(state: AgentState) -> str:
    return f" ({state.words})" if state.words else ""


def tell(world: World, session_id: SessionId, message: Message, state: DeliveryState, agent: str | None = None) -> None:
    """Send an event that says how far a message came, with one agent or with all."""
    world.events.add(
        "message",
        session_id,
        agent,
        message_id=message.id,
        target=message.target,
        sender=message.sender,
        state=state,
    )


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))


def _is_fresh(pending: Pending | None) -> bool:
    """Whether no process has begun to type the message."""
    return pending is not None and pending.state is DeliveryState.QUEUED and pending.typing_since is None


class _Queue:
    """One agent's messages, while no other process types to it."""

    def __init__(
        self,
        world: World,
        opened: OpenSession,
        place: Place,
        pane: str,
        agent: Agent,
        patient: Callable[[], bool],
    ) -> None:
        self._world = world
        self._session = opened.session
        self._place = place
        self._pane = pane
        self._agent = agent.id
        self._mailbox = opened.mailbox
        self._patient = patient
        self._prepared = opened.paste
        self._typed_again = ""
        provider = world.providers().of(agent.provider or "", agent.command)
        self._input = provider.input
        paths = world.layout.session(opened.session.id)
        self._events = paths.agent_events(agent.id)
        self._guard: Guard | None = None
        if provider.composer.prompt:
            self._guard = Guard(provider, self._look, paths, agent.id)

    def advance(self, pending: Pending) -> Waiting | None:
        """Take a message on from wherever it is; returns why it waits, or None if it is done."""
        if _is_fresh(pending):
            return self._not_now(pending) or self._type(pending)
        if pending.state is DeliveryState.TYPED:
            return self._await(pending, self._seconds_since_enter(pending))
        return self._find_out(pending)

    def _seconds_since_enter(self, pending: Pending) -> float:
        """How long ago another process pressed Enter behind the message."""
        from datetime import datetime

        typed_at = next(one.at for one in pending.message.deliveries if one.agent == self._agent)
        entered_at = datetime.fromisoformat(pending.entered_again_at or typed_at)
        return max(0.0, (datetime.fromisoformat(self._world.now()) - entered_at).total_seconds())

    def _not_now(self, pending: Pending) -> Waiting | None:
        waiting = why_waiting(self._world, self._session.id, self._agent, pending.forced)
        # What its screen shows is looked at, before anything is typed to it.
        return None if waiting and waiting.by_screen and self._guard else waiting

    def _look(self) -> Screen:
        prepared = self._prepared
        if prepared and prepared.look:
            self._prepared = prepared._replace(look=None)
            return prepared.look()
        return self._world.runtime.look(self._place, self._pane)

    def _text(self, pending: Pending) -> str:
        return self._input.header + self._input.neutral(pending.message.typed)

    def _type(self, pending: Pending) -> Waiting | None:
        message = pending.message
        try:
            if self._guard and (view := self._guard.view(self._text(pending), Seen.REST)).seen is not Seen.REST:
                return self._in_the_way(view)
            self._mailbox.begin(message.id, self._agent, self._world.now())
            at_once = not self._input.submit_delay and not self._guard
            self._paste(self._text(pending), enter=at_once)
        except AgentExited as error:
            self._mailbox.put_back(message.id, self._agent)
            return _waiting_for(error)
        if at_once:
            return self._typed(pending)
        return self._submit(pending, time.monotonic() + self._input.submit_delay)

    def _in_the_way(self, view: View) -> Waiting:
        what = view.words or "it shows no input line"
        return Waiting(f"agent {self._agent} is waiting for a person ({view.seen}: {what})", by_screen=True)

    def _paste(self, text: str, enter: bool) -> None:
        prepared, self._prepared = self._prepared, None
        if prepared:
            prepared.type(text)
        else:
            self._world.runtime.paste(self._place, self._pane, text, enter)

    def _submit(self, pending: Pending, ready_at: float = 0.0) -> Waiting | None:
        """Press Enter behind the text that is there. The agent may have begun to ask something since it was typed.

        Until `ready_at` the program may not have taken the paste for one.
        """
        try:
            view = self._shown(pending, ready_at)
        except AgentExited as error:
            return _waiting_for(error)
        if view and view.seen is Seen.REST:
            return self._type_again(pending, view)
        if view and view.seen is not Seen.OURS:
            return self._in_the_way(view)
        return self._not_now(pending) or self._enter() or self._typed(pending)

    def _shown(self, pending: Pending, ready_at: float) -> View | None:
        """The screen once its input line has the text, or should have; None of a program that is not looked at.

        A look takes a moment, which is taken from the end of the time until `ready_at`.
        """
        view = None
        if self._guard:
            _sleep_until(ready_at - _LOOKING)
            longest = self._input.ack_timeout
            view = self._guard.view(self._text(pending), Seen.OURS, patient=self._patient, longest=longest)
        _sleep_until(ready_at)
        return view

    def _type_again(self, pending: Pending, view: View) -> Waiting | None:
        """The text came to the program and is not in its input line: it was not ready, or a dialog has swallowed it."""
        if self._was_typed_twice(pending):
            words = f"agent {self._agent} was typed the message twice and did not take it"
            return self._undelivered(pending, f"{words}; its screen:\n{view.screen.text}")
        self._typed_again = pending.message.id
        self._mailbox.put_back(pending.message.id, self._agent)
        return self._not_now(pending) or self._type(pending)

    def _was_typed_twice(self, pending: Pending) -> bool:
        # A launcher of the version before does not record it.
        return self._typed_again == pending.message.id or passed(self._events, TYPED, pending.message.id) > 1

    def _enter(self) -> Waiting | None:
        try:
            self._world.runtime.enter(self._place, self._pane)
        except AgentExited as error:
            return _waiting_for(error)
        return None

    def _typed(self, pending: Pending) -> Waiting | None:
        awaited = self._input.ack != "none"
        self._step(pending, DeliveryState.TYPED, awaited=awaited)
        return self._await(pending) if awaited else None

    def _await(self, pending: Pending, waited: float = 0.0) -> Waiting | None:
        """Wait until the agent acknowledges the message; if it does not, press Enter once more, carefully."""
        receipt = _Receipt(self._events, pending.message.id, self._input.ack)
        entered_at = time.monotonic() - waited
        look_at, deadline = entered_at + _LATE, entered_at + self._input.ack_timeout
        while not receipt.acknowledged():
            if receipt.ended():
                return self._undelivered(pending, f"agent {self._agent} exited before it confirmed the message")
            if time.monotonic() > deadline:
                return self._unconfirmed(pending, receipt)
            if not self._patient():
                return NOT_YET
            if time.monotonic() > look_at:
                if waiting := self._dialog(pending):
                    return waiting
                look_at = deadline
            time.sleep(_LOOK_AGAIN)
        self._step(pending, DeliveryState.ACKNOWLEDGED)
        return None

    def _dialog(self, pending: Pending) -> Waiting | None:
        """What has come up in place of the input line: the message is taken, or not, once that is answered."""
        if self._guard is None or self._not_now(pending):
            return None
        try:
            view = self._guard.view(self._text(pending), Seen.REST, Seen.OURS, Seen.DRAFT)
        except AgentExited as error:
            return _waiting_for(error)
        return self._in_the_way(view) if view.seen is Seen.DIALOG else None

    def _unconfirmed(self, pending: Pending, receipt: _Receipt) -> Waiting | None:
        """No acknowledgement came in time: press Enter, or type the message, once more, if that can do no harm."""
        message_id = pending.message.id
        screen = self._world.runtime.screen(self._place, self._pane, _SHOWN_LINES)
        has_text, is_lost = message_id in screen, False
        if self._guard:
            try:
                view = self._guard.view(self._text(pending), Seen.OURS)
            except AgentExited as error:
                return _waiting_for(error)
            if view.seen is Seen.DIALOG:
                return self._in_the_way(view)
            has_text = view.seen is Seen.OURS
            is_lost = view.seen is Seen.REST and message_id not in screen and not receipt.anything_since()
        if self._not_now(pending._replace(forced=False)) is None:
            if has_text and pending.entered_again_at is None:
                now = self._world.now()
                self._mailbox.enter_again(message_id, self._agent, now)
                return self._enter() or self._await(pending._replace(entered_again_at=now))
            if is_lost and not self._was_typed_twice(pending):
                return self._once_more(pending)
        words = f"agent {self._agent} did not confirm the message within {self._input.ack_timeout:g} s"
        return self._undelivered(pending, f"{words}; its screen:\n{screen}")

    def _once_more(self, pending: Pending) -> Waiting | None:
        """Type a message again that its program has lost without a trace."""
        self._typed_again = pending.message.id
        try:
            self._paste(self._text(pending), enter=False)
            view = self._shown(pending, time.monotonic() + self._input.submit_delay)
        except AgentExited as error:
            return _waiting_for(error)
        if view and view.seen is not Seen.OURS:
            return self._in_the_way(view)
        return self._enter() or self._await(pending)

    def _find_out(self, pending: Pending) -> Waiting | None:
        """A process began to type this and was killed: go on from where it was."""
        wait_for_clients(self._session.tmux, _ON_ITS_WAY)
        message_id = pending.message.id
        if not passed(self._events, ENTERED, message_id):
            try:
                all_noted = self._all_noted()
            except AgentExited:
                # The launcher has exited, and with it what was on its way is lost: all that passed is recorded.
                all_noted = True
            if not all_noted:
                return self._undelivered(pending, _LOST)
        if passed(self._events, ENTERED, message_id):
            return self._typed(pending)
        if _Receipt(self._events, message_id).typed():
            return self._submit(pending)
        # It never came there, or to a program that has ended before it was submitted.
        self._mailbox.put_back(message_id, self._agent)
        return self._not_now(pending) or self._type(pending)

    def _all_noted(self) -> bool:
        """Whether the launcher has recorded all that was typed until now: it records the mark that follows."""
        mark = os.urandom(8).hex()
        self._world.runtime.keys(self._place, self._pane, MARK_START + mark.encode() + MARK_END)
        deadline = time.monotonic() + _ON_ITS_WAY
        while not any(MARKED in line and mark.encode() in line for line in last_run(self._events)):
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_AGAIN)
        return True

    def _undelivered(self, pending: Pending, reason: str) -> Waiting | None:
        """The message's end; it keeps no other message waiting."""
        self._step(pending, DeliveryState.UNDELIVERED, reason)
        return None

    def _step(self, pending: Pending, state: DeliveryState, reason: str | None = None, awaited: bool = False) -> None:
        message = pending.message
        self._mailbox.step(message.id, (self._agent,), state, self._world.now(), reason, awaited)
        tell(self._world, self._session.id, message, state, self._agent)


class _Receipt:
    """What an agent's event file says about one message; read again only when it has changed."""

    def __init__(self, path: str, message_id: str, ack: str = "none") -> None:
        self._path = path
        self._message_id = message_id
        self._kind, _, self._hook = ack.partition(":")
        self._stamp: tuple[int, int, int] | None = None
        self._lines: list[bytes] = []
        self._ended = False

    def typed(self) -> bool:
        """Whether its first line came to the program that runs now."""
        self._look()
        return any(self._is_of_it(line, TYPED) for line in self._lines)

    def acknowledged(self) -> bool:
        """Whether the program has reported, since Enter, what the provider accepts as an acknowledgement."""
        self._look()
        if self._kind == "hook":
            return any(self._is_its_hook(line) for line in self._lines)
        return any(self._is_of_it(line, TAKEN) for line in self._lines)

    def anything_since(self) -> bool:
        """Whether anything was reported of the program since Enter was pressed behind the message."""
        self._look()
        entered = [place for place, line in enumerate(self._lines) if self._is_of_it(line, ENTERED)]
        return not entered or any(COMPOSER.encode() not in line for line in self._lines[entered[-1] + 1 :])

    def ended(self) -> bool:
        """Whether the program it was typed to has exited."""
        self._look()
        return self._ended

    def _look(self) -> None:
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            return
        stamp = status.st_ino, status.st_size, status.st_mtime_ns
        if stamp == self._stamp:
            return
        self._stamp = stamp
        # Before the last run is read: what is recorded by now and is not in that run is of an earlier one.
        entered = passed(self._path, ENTERED, self._message_id)
        self._lines = last_run(self._path)
        earlier = entered and not any(self._is_of_it(line, ENTERED) for line in self._lines)
        self._ended = earlier or any(EXIT in line for line in self._lines)

    def _is_of_it(self, line: bytes, word: bytes) -> bool:
        return word in line and b'"id":"%s"' % self._message_id.encode() in line

    def _is_its_hook(self, line: bytes) -> bool:
        if b'"event":"hook"' not in line:
            return False
        try:
            event = json.loads(line)
            return event["name"] == self._hook and f"id={self._message_id}]" in event["prompt"]
        except (ValueError, KeyError, TypeError, RecursionError):
            # Without isolation an agent can write here itself.
            return False
