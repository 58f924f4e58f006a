"""Prompts: an agent's first message, from the configuration."""

from __future__ import annotations

from mas.model.ids import SessionId
from mas.model.message import Delivery, DeliveryState, Message
from mas.model.run import Run
from mas.service.messages.deliver import tell
from mas.service.messages.send import Order
from mas.service.world import World

_NEVER_READY = "it does not report when it is ready for a message"


def check_prompts(run: Run) -> None:
    """`BadInput` if a prompt cannot be a message."""
    _orders(run)


def keep_prompts(world: World, session_id: SessionId, run: Run) -> list[Message]:
    """Keep the prompts of a session that is being made: they are typed once their agents are idle."""
    orders = _orders(run)
    if not orders:
        return []
    kept = [_message(world, run, order) for order in orders]
    with world.messages().open(session_id) as mailbox:
        for message in kept:
            mailbox.add(message)
    return kept


def _orders(run: Run) -> list[Order]:
    return [Order(agent.id, agent.prompt) for agent in run.team.agents() if agent.prompt]


def _message(world: World, run: Run, order: Order) -> Message:
    (agent,) = run.team.targets(order.target)
    now = world.now()
    delivery = Delivery(agent.id, DeliveryState.QUEUED, now)
    if not world.providers().sources(agent.provider or "", agent.command):
        delivery = Delivery(agent.id, DeliveryState.UNDELIVERED, now, _NEVER_READY)
    return Message(order.id, None, agent.id, order.text, now, (delivery,))


def tell_prompts(world: World, session_id: SessionId, kept: list[Message]) -> tuple[str, ...]:
    """Announce the waiting prompts as events; returns warnings about those that cannot be delivered."""
    warnings = []
    for message in kept:
        (delivery,) = message.deliveries
        tell(world, session_id, message, delivery.state)
        if delivery.state is DeliveryState.UNDELIVERED:
            warnings.append(f"Agent {delivery.agent} did not get its prompt: {delivery.reason} (mas send --force)")
    return tuple(warnings)
