"""Send: store a message first, then deliver it to every agent it is for."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mas.model.errors import AgentExited, Conflict, MasError
from mas.model.ids import SessionId, parse_name
from mas.model.message import PERSON, Delivery, DeliveryState, Message, Sent, parse_message, parse_message_id
from mas.model.session import Session
from mas.model.team import Agent, Team
from mas.runtime.runtime import PreparedPaste
from mas.service.agents.living import not_running, place_of
from mas.service.messages.deliver import OpenSession, Waiting, tell, why_waiting
from mas.service.messages.routing import check_sender, recipients
from mas.service.world import World

if TYPE_CHECKING:
    from mas.service.messages.courier import Courier
    from mas.store.session.mailbox import Mailbox

# How often to look: the longer it has been, the less a moment more matters, and hundreds may wait at once.
_LOOK_AGAIN = 0.005
_SELDOM = 0.25
_PART = 50
_ENDS = (DeliveryState.ACKNOWLEDGED, DeliveryState.UNDELIVERED)


class Order:
    """A checked request to send: text, sender and target. `force` means that it does not wait for an idle agent."""

    def __init__(
        self, target: str, text: str, sender: str | None = None, message_id: str | None = None, force: bool = False
    ) -> None:
        self.target = target
        self.text = parse_message(text)
        self.sender = parse_name(sender) if sender is not None else None
        self.id = parse_message_id(message_id) if message_id is not None else f"m-{os.urandom(8).hex()}"
        self.force = force


def send(world: World, courier: Courier, session_id: SessionId, order: Order, wait: float = 0.0) -> Sent:
    """Keep a message and have it typed to every agent it is for, as each is ready for it.

    Raises if no agent can get it, and keeps the message as undelivered. For the id of a message that was sent before,
    returns what became of that one. Waits up to `wait` seconds until each agent has it or keeps it waiting.
    """
    session, team = world.records.load(session_id), world.records.load_run(session_id).team
    message, refused, at_once = _new_message(world, session, team, order)
    # Kept open for all of it: opening it again meanwhile, to deliver the message, is then cheap.
    with (
        _prepared_paste(world, session, at_once if courier.here else None) as paste,
        world.messages().open(session_id) as mailbox,
    ):
        # The sender gets no reply before the message is on disk: synced with its next step, or at the end.
        is_new = mailbox.add(message, order.force, lasting=not courier.here)
        if is_new:
            _announce(world, session_id, message, refused)
        else:
            message = mailbox.get(order.id)
            _check_known(session_id, message)
        courier.start(session_id, _under_way(message), wait, OpenSession(session, team, mailbox, paste))
        if paste:
            paste.cancel()
        if is_new and courier.here:
            mailbox.make_last(message.id)
        return _watched(world, courier, session_id, message, mailbox, wait)


@contextmanager
def _prepared_paste(world: World, session: Session, agent: Agent | None) -> Iterator[PreparedPaste | None]:
    """A paste for an agent that is ready for it: tmux takes about as long to come as a message to be kept."""
    place = place_of(world, session)
    pane = next((one.pane for one in session.agents if agent and one.id == agent.id), None)
    if agent is None or place is None or pane is None:
        yield None
        return
    provider = world.providers().of(agent.provider or "", agent.command)
    looks = bool(provider.composer.prompt)
    paste = world.runtime.prepare_paste(place, pane, enter=not looks and not provider.input.submit_delay, look=looks)
    try:
        yield paste
    finally:
        paste.cancel()


def _announce(world: World, session_id: SessionId, message: Message, refused: dict[str, MasError]) -> None:
    """Log and announce that a message was sent; an error if no agent can get it."""
    size = len(message.message.encode())
    words = f"from={message.sender or PERSON} to={message.target} bytes={size} id={message.id}"
    world.logs.session(session_id, f"send {words}")
    tell(world, session_id, message, DeliveryState.QUEUED)
    for agent in refused:
        tell(world, session_id, message, DeliveryState.UNDELIVERED, agent)
    if refused and len(refused) == len(message.deliveries):
        raise next(iter(refused.values()))


def _new_message(
    world: World, session: Session, team: Team, order: Order
) -> tuple[Message, dict[str, MasError], Agent | None]:
    """The message with a delivery for everybody it is for, who cannot get it, and the one who can at once."""
    agents: tuple[Agent, ...] = ()
    if order.target != PERSON:
        agents = recipients(team, order.sender, order.target)
    elif order.sender is not None:
        check_sender(team, order.sender)
    now = world.now()
    waits = {agent.id: why_waiting(world, session.id, agent.id) for agent in agents}
    refused = {
        agent.id: why for agent in agents if (why := _refusal(world, session, agent, waits[agent.id], order.force))
    }
    deliveries = tuple(
        Delivery(agent.id, DeliveryState.UNDELIVERED, now, refused[agent.id].message)
        if agent.id in refused
        else Delivery(agent.id, DeliveryState.QUEUED, now)
        for agent in agents
    )
    message = Message(order.id, order.sender, order.target, order.text, now, deliveries)
    ready = [agent for agent in agents if not waits[agent.id] and agent.id not in refused]
    return message, refused, ready[0] if len(agents) == len(ready) == 1 else None


def _refusal(world: World, session: Session, agent: Agent, waiting: Waiting | None, force: bool) -> MasError | None:
    """Why an agent cannot get any message; what it could get later is no reason."""
    if place_of(world, session) is None:
        return not_running(session.id)
    if waiting and waiting.exited:
        return _not_running(agent.id, session.id)
    if not force and not world.providers().sources(agent.provider or "", agent.command):
        return Conflict(
            f"Agent {agent.id} does not report when it is ready for a message", "see its screen, then: mas send --force"
        )
    return None


def _not_running(agent: str, session_id: SessionId) -> AgentExited:
    return AgentExited(f"Agent {agent} is not running", f"mas show {session_id}")


def _watched(
    world: World, courier: Courier, session_id: SessionId, message: Message, mailbox: Mailbox, wait: float
) -> Sent:
    """How far the message came, after `wait` seconds at most; with the reason where it waits."""
    began = time.monotonic()
    deadline = began + wait
    while True:
        under_way = {one.agent for one in message.deliveries if courier.is_under_way(session_id, one.agent)}
        # Looked at after the courier: what it has done by then is seen.
        message = message._replace(deliveries=mailbox.deliveries(message.id))
        left = [one for one in message.deliveries if one.state not in _ENDS and one.agent in under_way]
        if not left or time.monotonic() >= deadline:
            break
        time.sleep(min(max((time.monotonic() - began) / _PART, _LOOK_AGAIN), _SELDOM))
        courier.look_again()
    gone = _gone(courier, session_id, message)
    if gone and len(gone) == len(message.deliveries):
        # No agent is left to get it: its sender should know at once.
        mailbox.step(message.id, gone, DeliveryState.UNDELIVERED, world.now(), gone[next(iter(gone))].reason)
        for agent in gone:
            tell(world, session_id, message, DeliveryState.UNDELIVERED, agent)
        raise _not_running(", ".join(gone), session_id)
    return _sent(session_id, _with_what_was_found(courier, session_id, with_reasons(world, session_id, message)))


def _with_what_was_found(courier: Courier, session_id: SessionId, message: Message) -> Message:
    """The message with what kept it from being typed, if that was not the agent."""
    deliveries = tuple(
        one._replace(reason=waiting.reason)
        if one.state is DeliveryState.QUEUED
        and not one.reason
        and (waiting := courier.why_waiting(session_id, one.agent))
        else one
        for one in message.deliveries
    )
    return message._replace(deliveries=deliveries)


def _gone(courier: Courier, session_id: SessionId, message: Message) -> dict[str, Waiting]:
    """The agents that were found to have ended when it was to be typed."""
    queued = [delivery.agent for delivery in message.deliveries if delivery.state is DeliveryState.QUEUED]
    found = {agent: courier.why_waiting(session_id, agent) for agent in queued}
    return {agent: waiting for agent, waiting in found.items() if waiting and waiting.exited}


def with_reasons(world: World, session_id: SessionId, message: Message) -> Message:
    """The message with the reason why it waits, where it does."""

    def reasoned(delivery: Delivery) -> Delivery:
        if delivery.state is not DeliveryState.QUEUED:
            return delivery
        waiting = why_waiting(world, session_id, delivery.agent)
        return delivery._replace(reason=waiting.reason) if waiting else delivery

    return message._replace(deliveries=tuple(map(reasoned, message.deliveries)))


def _sent(session_id: SessionId, message: Message) -> Sent:
    agents = tuple(delivery.agent for delivery in message.deliveries)
    size = len(message.message.encode())
    return Sent(session_id, message.target, agents, size, message.id, message.deliveries)


def _under_way(message: Message) -> list[str]:
    return [delivery.agent for delivery in message.deliveries if delivery.state not in _ENDS]


def _check_known(session_id: SessionId, message: Message) -> None:
    """`Conflict` if a message that was sent before could not be delivered."""
    for delivery in message.deliveries:
        if delivery.state is DeliveryState.UNDELIVERED:
            raise Conflict(
                f"Message {message.id} was sent before and not delivered to agent {delivery.agent}: {delivery.reason}",
                f"mas inbox {session_id}",
            )
