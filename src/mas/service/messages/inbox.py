"""Inbox: the messages of a session and their deliveries."""

from __future__ import annotations

from mas.model.errors import BadInput, MasError
from mas.model.ids import SessionId, shown
from mas.model.message import Box, DeliveryState, Message, MessageList
from mas.model.session import Status
from mas.service.messages.send import with_reasons
from mas.service.upkeep.reconcile import entries_of
from mas.service.world import World

_LARGEST_PAGE = 10_000


def messages(world: World, session_id: SessionId, agent: str | None, limit: int, offset: int, box: str) -> MessageList:
    """Messages of the session, or of one agent, newest last: the `limit` before the `offset` newest."""
    if not 0 <= limit <= _LARGEST_PAGE or not 0 <= offset < 1 << 63:
        raise BadInput(f"limit must be from 0 to {_LARGEST_PAGE}, and offset must be 0 or more")
    if box not in set(Box):
        raise BadInput(f"No box {shown(box)} (there are: {', '.join(Box)})")
    session = world.records.load(session_id)
    if agent is not None:
        session.agent(agent)
    store = world.messages()
    found: list[Message] = []
    total = 0
    if store.exists(session_id):
        with store.open(session_id) as mailbox:
            found, total = mailbox.page(limit, offset, agent, Box(box))
    kept = store.kept_aside(session_id)
    reasoned = (with_reasons(world, session_id, message) for message in found)
    return MessageList(tuple(reasoned), total, tuple(f"Older, damaged messages are kept in {path}" for path in kept))


def message_counts(world: World) -> dict[str, int]:
    """How many deliveries in active sessions are in each state."""
    total = {state.value: 0 for state in DeliveryState}
    store = world.messages()
    for entry in entries_of(world):
        if entry.status is not Status.ACTIVE or not store.exists(entry.session_id):
            continue
        try:
            with store.open(entry.session_id) as mailbox:
                for state, count in mailbox.counts().items():
                    total[state] += count
        except MasError:
            # An error in one session is reported when that session is shown.
            continue
    return total
