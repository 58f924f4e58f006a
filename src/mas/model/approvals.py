"""Approvals: the questions that agents wait with, and the results of answers."""

from typing import NamedTuple


class Approval(NamedTuple):
    """An agent that is waiting for a decision. If MAS cannot answer it, `whyNot` says why and `hint` what to do.

    `screen` is the agent's screen, if its program does not report what it asks.
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
    """All waiting agents, longest wait first."""

    approvals: tuple[Approval, ...]
    warnings: tuple[str, ...] = ()


class AgentAnswer(NamedTuple):
    """An answer that an agent received: to which question (`kind`, `text`), and the agent's state after it."""

    session_id: str
    agent: str
    allowed: bool
    kind: str
    text: str
    state: str
    state_text: str
    state_source: str
