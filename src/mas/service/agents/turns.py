"""Turns: an event for each that an agent has finished, told once."""

from __future__ import annotations

from mas.model.errors import MasError
from mas.model.ids import SessionId
from mas.model.transcript import Turn
from mas.model.views import wire
from mas.service.agents.transcript import transcript_table, turns_of
from mas.service.world import World
from mas.store.agent.told_turns import keep_told, last_told

# An event is news: it has the beginning of an answer.
_LONGEST = 2_000


def tell_turns(world: World, session_id: SessionId, agent: str) -> bool:
    """Add an event for each turn that was finished since the last one told of.

    Returns whether nothing more is expected: the newest turn was told just now, or there is nothing to read. False
    means that the program may not have written its last turn yet.
    """
    try:
        table = transcript_table(world, session_id, agent)
        if not table.format:
            return True
        turns = turns_of(world, session_id, agent, table)
    except MasError:
        # It was stopped, moved or damaged meanwhile.
        return True
    paths = world.layout.session(session_id)
    told = last_told(paths, agent)
    news = _news(turns, told)
    for turn in news:
        _tell(world, session_id, agent, turn)
    try:
        if news:
            keep_told(paths, agent, news[-1].id)
        elif told is None:
            keep_told(paths, agent, "")
    except OSError:
        # The disk is full: then it is told once more, which is better than never.
        pass
    return bool(news) and news[-1].id == turns[-1].id


def _news(turns: tuple[Turn, ...], told: str | None) -> list[Turn]:
    """The finished turns after the one that was told; if that is not known, no more than the newest."""
    finished = [turn for turn in turns if turn.finished and (turn.parts or turn.tokens.total)]
    places = [place for place, turn in enumerate(finished) if turn.id == told]
    if places:
        return finished[places[-1] + 1 :]
    return finished if told == "" else finished[-1:]


def _tell(world: World, session_id: SessionId, agent: str, turn: Turn) -> None:
    world.events.add(
        "turn",
        session_id,
        agent,
        turn=turn.id,
        conversation=turn.conversation,
        text=turn.answer[:_LONGEST],
        model=turn.model,
        tools=sum(part.kind == "tool" for part in turn.parts),
        tokens=wire(turn.tokens),
        started_at=turn.started_at,
        ended_at=turn.ended_at,
    )
