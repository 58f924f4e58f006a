"""Send: a message is kept first, then typed to every agent it is for."""

from __future__ import annotations

import os

from mas.model.errors import AgentExited, Conflict, MasError, NoTmux
from mas.model.ids import SessionId, parse_name
from mas.model.message import Delivery, DeliveryState, Message, parse_message, parse_message_id
from mas.model.reports import Sent
from mas.model.session import Session, Status
from mas.model.state import State
from mas.model.team import Agent
from mas.runtime.runtime import Place
from mas.service.inbox import settle_typing
from mas.service.routing import recipients
from mas.service.states import told
from mas.service.talk import live_panes
from mas.service.team import place_of
from mas.service.world import World
from mas.store.messages import Mailbox


def send(
    world: World,
    session_id: SessionId,
    target: str,
    message: str,
    sender: str | None = None,
    message_id: str | None = None,
) -> Sent:
    """Type a message to every agent that `target` means; nobody gets it if one of them has ended.

    Whatever becomes of it, the message is kept. With the id of one that was sent before, nothing is typed and
    the answer is what became of that.
    """
    text = parse_message(message)
    name = parse_message_id(message_id) if message_id is not None else f"m-{os.urandom(8).hex()}"
    sender = parse_name(sender) if sender is not None else None
    session = world.records.load(session_id)
    agents = recipients(world.records.load_run(session_id).team, sender, target)
    now = world.now()
    queued = tuple(Delivery(agent.id, DeliveryState.QUEUED, now) for agent in agents)
    new = Message(name, sender, target, text, now, queued)
    with world.messages().open(session_id) as mailbox:
        settle_typing(world, session_id, mailbox)
        # Nobody is told that it was sent before its next step, which brings both to the disk.
        if not mailbox.add(new, lasting=False):
            return _sent_before(session_id, mailbox.get(name))
        deliveries = _Sending(world, session, mailbox, new).to(agents)
    size = len(text.encode())
    world.logs.session(session_id, f"send from={sender or 'person'} to={target} bytes={size} id={name}")
    world.registry.touch(session_id)
    return _sent(session_id, new._replace(deliveries=deliveries))


class _Sending:
    """One message on its way."""

    def __init__(self, world: World, session: Session, mailbox: Mailbox, message: Message) -> None:
        self._world = world
        self._session = session
        self._mailbox = mailbox
        self._message = message
        self._told = False

    def to(self, agents: tuple[Agent, ...]) -> tuple[Delivery, ...]:
        """Type it to all of them. Where that ends early, so does the message: the rest is undelivered."""
        try:
            place, panes = self._panes_of(agents)
            self._check_prompts(agents)
        except MasError as error:
            self._undelivered(agents, error.message)
            raise
        typed = []
        for position, agent in enumerate(agents):
            # Others may be typing to the agent: their text and ours must not be mixed.
            with self._world.messages().typing(self._session.id, agent.id):
                self._mailbox.begin(self._message.id, agent.id, self._world.now())
                try:
                    self._check_prompts((agent,))
                    self._type(place, panes[agent.id], agent)
                except MasError as error:
                    doubt = "; it may have arrived" if isinstance(error, NoTmux) else ""
                    self._undelivered((agent,), error.message + doubt)
                    self._undelivered(agents[position + 1 :], f"not typed: {error.message}")
                    raise
                typed += self._step((agent,), DeliveryState.TYPED)
        return tuple(typed)

    def _check_prompts(self, agents: tuple[Agent, ...]) -> None:
        """`Conflict` if an agent waits for an answer: the text would be lost, and its Enter would be the answer."""
        for agent in agents:
            state = told(self._world, self._session.id, agent.id)
            if state.state is State.BLOCKED:
                asks = f" ({state.words})" if state.words else ""
                raise Conflict(
                    f"Agent {agent.id} waits for an answer{asks}; nothing was typed",
                    f"mas attach {self._session.id} {agent.id}",
                )

    def _panes_of(self, agents: tuple[Agent, ...]) -> tuple[Place, dict[str, str]]:
        """Where to type. Of one agent the record is enough: a paste looks for itself; of several all must live."""
        session = self._session
        place = place_of(session)
        recorded = {agent.id: agent.pane for agent in session.agents if agent.pane}
        if place and session.status is Status.ACTIVE and len(agents) == 1 and agents[0].id in recorded:
            return place, recorded
        place, panes = live_panes(self._world, session)
        ended = [agent.id for agent in agents if agent.id not in panes]
        if ended:
            raise _not_running(ended, session.id)
        return place, {agent: state.pane for agent, state in panes.items()}

    def _type(self, place: Place, pane: str, agent: Agent) -> None:
        delay = self._world.providers().submit_delay(agent.provider or "", agent.command)
        try:
            self._world.runtime.paste(place, pane, self._message.message, delay)
        except AgentExited:
            # The whole team may be gone, which is the better thing to say.
            live_panes(self._world, self._session)
            raise _not_running([agent.id], self._session.id) from None

    def _undelivered(self, agents: tuple[Agent, ...], reason: str) -> None:
        if agents:
            self._step(agents, DeliveryState.UNDELIVERED, reason)

    def _step(self, agents: tuple[Agent, ...], state: DeliveryState, reason: str | None = None) -> list[Delivery]:
        ids = [agent.id for agent in agents]
        stepped = self._mailbox.step(self._message.id, ids, state, self._world.now(), reason)
        if not self._told:
            # Not before the first step: whoever listens can wait, the agent should not.
            self._told = True
            self._tell(DeliveryState.QUEUED)
        for agent in ids:
            self._tell(state, agent)
        return stepped

    def _tell(self, state: DeliveryState, agent: str | None = None) -> None:
        """Tell whoever listens how far the message is, with one agent or with all."""
        message = self._message
        self._world.events.add(
            "message",
            self._session.id,
            agent,
            message_id=message.id,
            target=message.target,
            sender=message.sender,
            state=state,
        )


def _sent(session_id: SessionId, message: Message) -> Sent:
    agents = tuple(delivery.agent for delivery in message.deliveries)
    size = len(message.message.encode())
    return Sent(session_id, message.target, agents, size, message.id, message.deliveries)


def _sent_before(session_id: SessionId, message: Message) -> Sent:
    """What became of a message that was sent before: an error if it then was one."""
    for delivery in message.deliveries:
        if delivery.state is DeliveryState.UNDELIVERED:
            raise Conflict(
                f"Message {message.id} was sent before and not delivered to agent {delivery.agent}: {delivery.reason}",
                f"mas inbox {session_id}",
            )
    return _sent(session_id, message)


def _not_running(agents: list[str], session_id: SessionId) -> AgentExited:
    return AgentExited(f"Not running: agent {', '.join(agents)}", f"mas show {session_id}")
