"""Approvals: the questions that agents wait with, and the results of answers."""

from typing import NamedTuple


class Approval(NamedTuple):
    """An agent that waits for an answer. Where MAS cannot give it, `why_not` says why and `hint` what helps.

    `screen` is what the agent's terminal shows, where its program does not say itself what it asks.
    """

    session_id: str
    session_name: str | None
    agent: str
    unit: str
    role: str
    provider: str
    kind: str
    text: str
    source: str
    since: str
    can_answer: bool
    why_not: str = ""
    hint: str = ""
    screen: str = ""


class ApprovalList(NamedTuple):
    """All that waits, the longest first."""

    approvals: tuple[Approval, ...]
    warnings: tuple[str, ...] = ()


class AgentAnswer(NamedTuple):
    """An answer that was taken: to what (`kind`, `text`), and how the agent is since."""

    session_id: str
    agent: str
    allowed: bool
    kind: str
    text: str
    state: str
    state_text: str
    state_source: str
