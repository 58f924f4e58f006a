"""Routing: which agents a message is for, and which agents an agent may write to and read."""

from __future__ import annotations

from mas.model.errors import Forbidden, NoAgent
from mas.model.team import Agent, Team, may_write


def recipients(team: Team, sender: str | None, target: str) -> tuple[Agent, ...]:
    """The agents that `target` means. Without a sender it is from a person, who may write to anyone.

    An agent that writes to a group it is in does not get its own message.
    """
    meant = team.targets(target)
    if sender is None:
        return meant
    check_sender(team, sender)
    others = tuple(agent for agent in meant if agent.id != sender or agent.id == target)
    if not others:
        raise NoAgent(f"There is no agent in {target} except the sender {sender}", "mas show")
    for agent in others:
        if rule := may_write(team, sender, agent.id):
            raise Forbidden(f"Agent {sender} may not write to {agent.id} ({rule})", "mas show")
    return others


def check_sender(team: Team, sender: str) -> None:
    """`NoAgent` if the team has no such agent: every message has a real sender."""
    ids = [agent.id for agent in team.agents()]
    if sender not in ids:
        raise NoAgent(f"The sender {sender!r} is not an agent of this session (it has: {' '.join(ids)})", "mas show")


def check_may_read(team: Team, reader: str, agent: str) -> None:
    """`Forbidden` if the agent `reader` may not see what `agent` shows: it may read those it may write to."""
    ids = {known.id for known in team.agents()}
    for name in (reader, agent):
        if name not in ids:
            raise NoAgent(f"No agent {name!r} in this session (there are: {' '.join(sorted(ids))})", "mas show")
    if rule := may_write(team, reader, agent):
        raise Forbidden(f"Agent {reader} may not read the screen of {agent} ({rule})", "mas show")
